"""The members of a cluster, as the OpenWire clients of a node are told of them.

A client that prefers a zone is told of the members of this zone first. A real Artemis member does not tell its OpenWire
acceptors, so clients are not told of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from atalanta.cluster.balancing.newcomers import place_of
from atalanta.wire.openwire.server.peer_brokers import (
    ClusterMembers,
    PeerBroker,
    PeerBrokers,
    ToldMembers,
    uri_of,
)

if TYPE_CHECKING:
    from atalanta.cluster.balancing.balancers import Balancers
    from atalanta.cluster.balancing.rebalance import Rebalance
    from atalanta.wire.connection import ClientConnection
    from atalanta.wire.core.transport import TransportConfiguration
    from atalanta.wire.endpoint import AcceptorConfig


def own_broker(
    name: str, acceptors: Sequence[AcceptorConfig], connector: TransportConfiguration
) -> PeerBroker:
    """Returns this node with its acceptors for OpenWire; those at the port of the connector come first."""
    serving = [each for each in acceptors if each.auto_start and each.serves("OPENWIRE")]
    serving.sort(key=lambda each: each.port != connector.port)
    return PeerBroker(name, tuple(uri_of(each, connector.host) for each in serving))


class MemberBrokers(ClusterMembers):
    """The members of all cluster connections. `seen`: what clients were told last."""

    def __init__(self, balancers: Balancers, peers: PeerBrokers) -> None:
        self.planned = True
        self.balancers = balancers
        self.peers = peers
        self.seen: list[tuple[str, tuple[str, ...], str]] = []

    def observe(self, now: int) -> None:
        """Tells the clients what has changed: the members, their acceptors, their zones."""
        found: list[tuple[str, tuple[str, ...], str]] = []
        for rebalance in self.balancers.by_number:
            for node_id, broker in members_of(rebalance, now).items():
                found.append((node_id, broker.uris, rebalance.zones.of_member(node_id)))
            presence = rebalance.zones.presence
            stable = [zone for zone in presence.since if presence.stable(now, zone)]
            found.append((rebalance.prefix, tuple(stable), ""))
        if found != self.seen:
            self.seen = found
            self.peers.changed(now)

    def own(self, connection: ClientConnection) -> PeerBroker | None:
        return self.balancers.of(connection.conn).published.told

    def told_to(self, now: int, connection: ClientConnection) -> ToldMembers:
        rebalance = self.balancers.of(connection.conn)
        zones = rebalance.zones
        members = members_of(rebalance, now)
        zone = zones.first_of(now, zones.preferred.of(connection), connection)
        near = [peer for node_id, peer in members.items() if zone is None or zones.of_member(node_id) == zone]
        far = [peer for peer in members.values() if peer not in near]
        return ToldMembers(near, far, zone is None or zone == zones.own)

    def is_member(self, node_id: str) -> bool:
        return any(rebalance.cluster.peers.get(node_id) is not None for rebalance in self.balancers.by_number)

    def of_node(self, connection: ClientConnection, node_id: str) -> PeerBroker | None:
        record = self.balancers.of(connection.conn).cluster.peers.get(node_id)
        if record is None or record.clients is None or not record.linked():
            return None
        return record.clients.told

    def place_at_login(self, now: int, connection: ClientConnection) -> str | None:
        rebalance = self.balancers.of(connection.conn)
        node_id = place_of(now, rebalance, connection)
        target = None if node_id is None else rebalance.target(node_id)
        if node_id is not None and target is not None:
            rebalance.redirects.tell(connection, node_id, target)
        return node_id

    def successor(self, connection: ClientConnection) -> PeerBroker | None:
        """Returns the target of a scale-down, or the backup of this node, at the connector that it announces."""
        chosen = self.balancers.clusters.host.successor
        if chosen is not None:
            return self.of_node(connection, chosen.node_id)
        rebalance = self.balancers.of(connection.conn)
        backup, acceptor = rebalance.cluster.local.backup, connection.acceptor
        if backup is None or acceptor is None or acceptor.port != rebalance.eligibility.connector.port:
            return None
        scheme = "tcp" if acceptor.tls is None else "ssl"
        return PeerBroker(rebalance.published.told.name, (f"{scheme}://{backup.address}",))


def members_of(rebalance: Rebalance, now: int) -> dict[str, PeerBroker]:
    """Returns the other members that take clients and serve OpenWire, by node id."""
    found: dict[str, PeerBroker] = {}
    for place in rebalance.places(now):
        record = rebalance.cluster.peers.get(place.node_id)
        if record is not None and record.clients is not None and record.clients.told.uris:
            found[place.node_id] = record.clients.told
    return found
