"""Client counts that members send to each other, as a notification type of Atalanta.

The notification is a message on the notification address, read by each peer's bridge. A real Artemis does not subscribe
to this type and never sends it, so no client is redirected to it.

A node with several cluster connections sends one count for each, and every peer receives all. A peer takes the count
whose connector is the one the node announces to it. Names of cluster connections may differ between nodes; the name
decides only if two cluster connections of a node announce the same connector.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from atalanta.kernel.broker.notifications import Notifications, Properties
from atalanta.message.message import Message
from atalanta.wire.openwire.server.peer_brokers import PeerBroker

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
BROKER: Final = "_ATALANTA_Name"
OPENWIRE: Final = "_ATALANTA_OpenWire"
HEARTBEAT_NS: Final = 5_000_000_000
URIS_MAX: Final = 16
TEXT_MAX: Final = 4096  # characters of a broker's name, or of its URIs
URI: Final = re.compile(r"(tcp|ssl)://[\w.:\[\]%-]{1,280}", re.ASCII)


class ClientCount:
    """The last count of a member, received at `received_ns`. `accepts`: it takes clients of others.

    `bound` of the clients prefer a zone. `up_ns` is the time for which it had been up. `told` is what its OpenWire
    clients are told of it.
    """

    def __init__(
        self, clients: int, bound: int, zone: str | None, accepts: bool, up_ns: int, received_ns: int, told: PeerBroker
    ) -> None:
        self.clients = clients
        self.bound = bound
        self.zone = zone
        self.accepts = accepts
        self.up_ns = up_ns
        self.received_ns = received_ns
        self.told = told


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
        PeerBroker(_text(properties.get(BROKER)), _uris(_text(properties.get(OPENWIRE)))),
    )


def _text(value: object) -> str:
    """Returns a text of reasonable length, "" for anything else."""
    return value if isinstance(value, str) and len(value) <= TEXT_MAX else ""


def _uris(text: str) -> tuple[str, ...]:
    """Returns the URIs in a list with commas; what is none is left out."""
    return tuple(part for part in text.split(",")[:URIS_MAX] if URI.fullmatch(part))


def _number(value: object) -> int | None:
    """Returns a whole number that is not negative, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


class PublishedCount:
    """The counts that this node sends for one cluster connection: at each change, and every five seconds.

    A peer whose link comes up gets the last one with the rest of the state that it asks for.

    `source`: node id, cluster connection, host:port of its connector. `told` is what OpenWire clients are told of
    this node.
    """

    def __init__(self, notifications: Notifications, source: tuple[str, str, str], told: PeerBroker) -> None:
        self.notifications = notifications
        self.source = source
        self.told = told
        self.last: tuple[int, int, bool] = (-1, 0, True)
        self.last_at: int = 0

    def withdraw(self) -> None:
        """Leaves the count out of what peers ask for: the cluster connection is gone."""
        _, name, _ = self.source
        self.notifications.standing.pop(f"{KIND} {name}", None)

    def publish(self, now: int, count: ClientCount) -> None:
        """Sends the count to all peers if it is due."""
        news = (count.clients, count.bound, count.accepts)
        if news == self.last and now - self.last_at < HEARTBEAT_NS:
            return
        self.last = news
        self.last_at = now
        node_id, name, connector = self.source
        properties: Properties = {
            NODE: node_id,
            NAME: name,
            CONNECTOR: connector,
            CLIENTS: count.clients,
            BOUND: count.bound,
            ZONE: count.zone,
            ACCEPTS: count.accepts,
            UP: count.up_ns,
            BROKER: count.told.name,
            OPENWIRE: ",".join(count.told.uris),
        }
        self.notifications.standing[f"{KIND} {name}"] = (KIND, properties)
        self.notifications.publish(now, KIND, properties)
