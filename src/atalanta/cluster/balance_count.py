"""How many clients every member has, told to each other as a notification of our own.

The way is the one the members' other news go: a message on the notification address, read by each peer's bridge. A real
Artemis has its type in no filter and never sends one: it does not notice, and nobody is sent to it.

A node with several cluster connections tells one count for each, and all its peers hear all: they take the one whose
door is what the node announces to them. Names of cluster connections need not be the same everywhere; only where two
of a node announce the same door does the name tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.message import Message
from atalanta.kernel.notifications import Notifications
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.cluster.cluster import Cluster

KIND: Final = "ATALANTA_CLIENTS"
NODE: Final = "_ATALANTA_Node"
CLIENTS: Final = "_ATALANTA_Clients"
ZONE: Final = "_ATALANTA_Zone"
ACCEPTS: Final = "_ATALANTA_Accepts"
NAME: Final = "_ATALANTA_Cluster"
DOOR: Final = "_ATALANTA_Door"


class ClientCount:
    """What a member said last, at `heard_at` of this node's clock. `accepts`: it takes clients of others."""

    def __init__(self, clients: int, zone: str | None, accepts: bool, heard_at: int) -> None:
        self.clients = clients
        self.zone = zone
        self.accepts = accepts
        self.heard_at = heard_at


def place_of(door: TransportConfiguration) -> str:
    """How it is told which door is meant."""
    return f"{door.host}:{door.port}"


def read_count(now: int, message: Message, cluster: Cluster, node_id: str) -> ClientCount | None:
    """None if the message is no such news of that member of that cluster."""
    properties = message.properties
    if properties.get("_AMQ_NotifType") != KIND or properties.get(NODE) != node_id:
        return None
    member = cluster.topology.members.get(node_id)
    if member is None or member.primary is None or properties.get(DOOR) != place_of(member.primary):
        return None
    name = properties.get(NAME)
    if name != cluster.config.name and name in cluster.clusters.by_name:
        return None
    clients = properties.get(CLIENTS)
    zone = properties.get(ZONE)
    if isinstance(clients, bool) or not isinstance(clients, int) or clients < 0:
        return None
    accepts = properties.get(ACCEPTS) is not False
    return ClientCount(clients, zone if isinstance(zone, str) and zone else None, accepts, now)


def tell_count(
    notifications: Notifications,
    now: int,
    source: tuple[str, str, str],
    clients: int,
    zone: str | None,
    accepts: bool,
) -> None:
    """To all peers that listen; `source` is the node's id, the name of the cluster connection, and its door."""
    node_id, name, door = source
    notifications.publish(
        now,
        KIND,
        {NODE: node_id, NAME: name, DOOR: door, CLIENTS: clients, ZONE: zone, ACCEPTS: accepts},
    )
