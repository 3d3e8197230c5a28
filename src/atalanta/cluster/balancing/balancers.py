"""The node's part for client rebalancing: one Rebalance for each cluster connection.

A client belongs to the cluster connection of its acceptor. Timer keys are "rebalance.<number of the cluster
connection>.<rest>".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from atalanta.cluster.balancing.member_brokers import MemberBrokers
from atalanta.cluster.balancing.newcomers import Newcomers
from atalanta.cluster.balancing.rebalance import Rebalance
from atalanta.cluster.native_config import OwnSettings
from atalanta.cluster.part import Part
from atalanta.wire.connection import ClientConnection
from atalanta.wire.openwire.server.protocol import peer_brokers_of

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import ClusterConnection
    from atalanta.cluster.connection.cluster_connections import ClusterConnections
    from atalanta.wire.connection import TransportConnection
    from atalanta.wire.endpoint import AcceptorConfig

PREFIX: Final = "rebalance."


class Balancers(Part):
    """`by_number` is in the order of the cluster connections; `connections` and `acceptors` are the node's."""

    def __init__(
        self,
        own: OwnSettings,
        clusters: ClusterConnections,
        connections: Mapping[int, TransportConnection],
        acceptors: Mapping[str, AcceptorConfig],
        leaving: Callable[[], bool],
    ) -> None:
        self.own = own
        self.clusters = clusters
        self.connections = connections
        self.acceptors = acceptors
        self.leaving = leaving
        self.by_number: list[Rebalance] = []
        self.made = 0
        for cluster in clusters.connections:
            self._make(cluster)
        clusters.host.register_routing(Newcomers(self.of))
        self.members: MemberBrokers | None = None
        peers = peer_brokers_of(clusters.host)
        if peers is not None:
            self.members = MemberBrokers(self, peers)
            peers.members = self.members

    def _make(self, cluster: ClusterConnection) -> Rebalance:
        prefix = f"{PREFIX}{self.made}."
        self.made += 1
        made = Rebalance(self.own, self.clusters, cluster, self.connections, self.acceptors, prefix)
        made.leaving = self.leaving
        self.by_number.append(made)
        return made

    def follow(self, now: int) -> None:
        """Takes changed cluster connections and acceptors: others are told of those for OpenWire."""
        for each in list(self.by_number):
            if each.cluster not in self.clusters.connections:
                self.by_number.remove(each)
                each.stop(now)
                each.published.withdraw()
        known = [each.cluster for each in self.by_number]
        for cluster in self.clusters.connections:
            if cluster not in known:
                self._make(cluster).start(now)
        for each in self.by_number:
            each.follow_acceptors()

    def start(self, now: int) -> None:
        for each in self.by_number:
            each.start(now)

    def stop(self, now: int) -> None:
        for each in self.by_number:
            each.stop(now)

    def on_timer(self, now: int, key: str) -> None:
        if self.clusters.broker.stopping:
            return
        for each in self.by_number:
            if key.startswith(each.prefix):
                each.on_tick(now)
        if self.members is not None:
            self.members.observe(now)

    def of(self, conn: int) -> Rebalance:
        """Returns the Rebalance of the cluster connection of `conn`'s acceptor; of the first one for -1."""
        connection = self.connections.get(conn)
        if not isinstance(connection, ClientConnection):
            return self.by_number[0]
        cluster = self.clusters.of_acceptor(connection)
        return next(each for each in self.by_number if each.cluster is cluster)
