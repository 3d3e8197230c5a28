"""Nodes in a row, each with a cluster connection to the next."""

from __future__ import annotations

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from tests.cluster.cluster_rig import Rig


def chain(max_hops: int, mode: str = "ON_DEMAND") -> tuple[Rig, list[Host]]:
    """n0 -> n1 -> n2 (and back); n1 has no queue of its own."""

    def direct(config: ClusterConnectionConfig) -> None:
        config.max_hops = max_hops
        config.allow_direct_connections_only = True

    rig = Rig()
    ends = [queue("orders", "orders", ANYCAST), queue("archive", "prices", MULTICAST)]
    middle = [queue("other", "other", ANYCAST)]
    for index, peers in enumerate(([1], [0, 2], [1])):
        rig.node(peers=peers, change=direct, queues=middle if index == 1 else ends, mode=mode)
    for host in rig.hosts:
        host.start()
    rig.run(5)
    return rig, rig.hosts
