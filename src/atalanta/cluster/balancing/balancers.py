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
        self.clusters = clusters
        self.connections = connections
        self.by_number: list[Rebalance] = []
        for cluster in clusters.connections:
            prefix = f"{PREFIX}{len(self.by_number)}."
            made = Rebalance(own, clusters, cluster, connections, acceptors, prefix)
            made.leaving = leaving
            self.by_number.append(made)
        clusters.host.register_routing(Newcomers(self.of))
        self.members: MemberBrokers | None = None
        peers = peer_brokers_of(clusters.host)
        if peers is not None:
            self.members = MemberBrokers(self, peers)
            peers.members = self.members

    def follow_acceptors(self) -> None:
        """Takes changed acceptors: others are told of those for OpenWire."""
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
        number = key[len(PREFIX) :].partition(".")[0]
        self.by_number[int(number)].on_tick(now)
        if self.members is not None:
            self.members.observe(now)

    def of(self, conn: int) -> Rebalance:
        """Returns the Rebalance of the cluster connection of `conn`'s acceptor; of the first one for -1."""
        connection = self.connections.get(conn)
        if not isinstance(connection, ClientConnection):
            return self.by_number[0]
        cluster = self.clusters.of_acceptor(connection)
        return self.by_number[self.clusters.connections.index(cluster)]
