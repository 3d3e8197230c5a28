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

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings
    from atalanta.cluster.topology.topology import Member

KIND: Final = "ATALANTA_CLIENTS"
NODE: Final = "_ATALANTA_Node"
CLIENTS: Final = "_ATALANTA_Clients"
ZONE: Final = "_ATALANTA_Zone"
ACCEPTS: Final = "_ATALANTA_Accepts"
BOUND: Final = "_ATALANTA_Bound"
UP: Final = "_ATALANTA_Up"
NAME: Final = "_ATALANTA_Cluster"
CONNECTOR: Final = "_ATALANTA_Door"


class ClientCount:
    """The last count of a member, received at `received_ns`. `accepts`: it takes clients of others.

    `bound` of the clients prefer a zone. `up_ns` is the time for which it had been up.
    """

    def __init__(
        self, clients: int, bound: int, zone: str | None, accepts: bool, up_ns: int, received_ns: int
    ) -> None:
        self.clients = clients
        self.bound = bound
        self.zone = zone
        self.accepts = accepts
        self.up_ns = up_ns
        self.received_ns = received_ns


def read_count(
    now: int,
    message: Message,
    member: Member,
    config: ClusterConnectionConfig,
    settings: ClusterSettings,
) -> ClientCount | None:
    """Returns the count in a notification; None if it is not that member's count in the cluster of `config`."""
    properties = message.properties
    if properties.get("_AMQ_NotifType") != KIND or properties.get(NODE) != member.node_id:
        return None
    if member.primary is None or properties.get(CONNECTOR) != member.primary.address:
        return None
    name = properties.get(NAME)
    if name != config.name and any(name == each.name for each in settings.cluster_connections):
        return None
    clients = _number(properties.get(CLIENTS))
    if clients is None:
        return None
    zone = properties.get(ZONE)
    return ClientCount(
        clients,
        min(_number(properties.get(BOUND)) or 0, clients),
        zone if isinstance(zone, str) and zone else None,
        properties.get(ACCEPTS) is not False,
        _number(properties.get(UP)) or 0,
        now,
    )


def _number(value: object) -> int | None:
    """Returns a whole number that is not negative, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def publish_count(
    notifications: Notifications, now: int, source: tuple[str, str, str], count: ClientCount
) -> None:
    """Publishes the count to all peers. `source`: node id, cluster connection, host:port of its connector."""
    node_id, name, connector = source
    notifications.publish(
        now,
        KIND,
        {
            NODE: node_id,
            NAME: name,
            CONNECTOR: connector,
            CLIENTS: count.clients,
            BOUND: count.bound,
            ZONE: count.zone,
            ACCEPTS: count.accepts,
            UP: count.up_ns,
        },
    )
