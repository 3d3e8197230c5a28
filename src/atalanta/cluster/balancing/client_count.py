"""Client counts that members send to each other, as a notification type of Atalanta.

The notification is a message on the notification address, read by each peer's bridge. A real Artemis does not subscribe
to this type and never sends it, so no client is redirected to it.

A node with several cluster connections sends one count for each, and every peer receives all. A peer takes the count
whose connector is the one the node announces to it. Names of cluster connections may differ between nodes; the name
decides only if two cluster connections of a node announce the same connector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.broker.notifications import Notifications
from atalanta.message.message import Message
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import Cluster

KIND: Final = "ATALANTA_CLIENTS"
NODE: Final = "_ATALANTA_Node"
CLIENTS: Final = "_ATALANTA_Clients"
ZONE: Final = "_ATALANTA_Zone"
ACCEPTS: Final = "_ATALANTA_Accepts"
NAME: Final = "_ATALANTA_Cluster"
DOOR: Final = "_ATALANTA_Door"


class ClientCount:
    """The last count of a member, received at `heard_at` (ns). `accepts`: it takes clients of others."""

    def __init__(self, clients: int, zone: str | None, accepts: bool, heard_at: int) -> None:
        self.clients = clients
        self.zone = zone
        self.accepts = accepts
        self.heard_at = heard_at


def place_of(door: TransportConfiguration) -> str:
    """Returns the host:port by which the notification names a connector."""
    return f"{door.host}:{door.port}"


def read_count(now: int, message: Message, cluster: Cluster, node_id: str) -> ClientCount | None:
    """Returns the count in a notification; None if it is none of that member in that cluster."""
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
    """Publishes the count to all peers. `source`: node id, cluster connection, host:port of its connector."""
    node_id, name, door = source
    notifications.publish(
        now,
        KIND,
        {NODE: node_id, NAME: name, DOOR: door, CLIENTS: clients, ZONE: zone, ACCEPTS: accepts},
    )
