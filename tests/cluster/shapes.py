"""Clusters of a shape: who dials whom is all that differs. A node makes links to its own connectors only."""

from __future__ import annotations

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.settings.broker_config import QueueConfig
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from tests.cluster.cluster_rig import Client, Rig, cluster_of, linked

OTHER = [queue("other", "other", ANYCAST)]  # of a node that has nothing to do with the matter


def orders() -> list[QueueConfig]:
    return [queue("orders", "orders", ANYCAST)]


def chain(count: int) -> list[list[int]]:
    """One way: each dials the next one, the last one nobody."""
    return [[index + 1] for index in range(count - 1)] + [[]]


def two_way_chain(count: int) -> list[list[int]]:
    return [[n for n in (index - 1, index + 1) if 0 <= n < count] for index in range(count)]


def ring(count: int) -> list[list[int]]:
    return [[(index + 1) % count] for index in range(count)]


def two_way_ring(count: int) -> list[list[int]]:
    return [[(index - 1) % count, (index + 1) % count] for index in range(count)]


def star(count: int) -> list[list[int]]:
    """The first is the middle; it and the others dial each other."""
    return [list(range(1, count))] + [[0] for _ in range(count - 1)]


def symmetric(count: int) -> list[list[int]]:
    return [[n for n in range(count) if n != index] for index in range(count)]


class Shape(Rig):
    """`where` has the queue `orders`; the others have one of their own, so that nothing is theirs."""

    def __init__(
        self,
        shape: list[list[int]],
        max_hops: int,
        where: list[int],
        mode: str = "ON_DEMAND",
        delay_ms: int = -1,
        queues: list[QueueConfig] | None = None,
    ) -> None:
        super().__init__()
        self.shape = shape

        def direct(config: ClusterConnectionConfig) -> None:
            config.max_hops = max_hops
            config.allow_direct_connections_only = True
            if config.static_connectors == [config.connector]:
                config.static_connectors = []
            config.retry_interval_ms = 100

        for index, peers in enumerate(shape):
            holds = (queues or orders()) if index in where else OTHER
            self.node(peers=peers, change=direct, queues=holds, mode=mode, delay_ms=delay_ms)

    def begin(self, order: list[int] | None = None, seconds: float = 0.0) -> None:
        """Start the nodes in that order, with a pause between them, and wait until every link stands."""
        for index in order if order is not None else range(len(self.hosts)):
            self.hosts[index].start()
            self.run(seconds)
        self.stands()

    def stands(self) -> None:
        """Every node that is up has a link to each of its targets that is up."""

        def all_there() -> bool:
            return all(
                linked(host) == len([peer for peer in self.shape[at] if self.hosts[peer].up])
                for at, host in enumerate(self.hosts)
                if host.up
            )

        self.until(all_there, 40)
        self.run(1)

    def consumer(self, at: int, name: str = "orders", selector: str | None = None) -> Client:
        made = self.consuming(self.hosts[at], name, selector)
        self.run(0.5)
        return made

    def send(self, at: int, count: int, address: str = "orders", kind: int = ANYCAST) -> Client:
        """Durable messages 0, 1, 2 … from a new client there; all are answered."""
        return self.stored(self.hosts[at], address, numbers(range(count)), kind)


def numbers(*parts: range) -> list[bytes]:
    return [b"%d" % number for part in parts for number in part]


def told(host: Host) -> list[str]:
    """Cluster names of all remote bindings a node knows."""
    return sorted(
        name for record in cluster_of(host).peers.values() for name in record.bindings.bindings
    )


def subscriptions() -> list[QueueConfig]:
    return [queue("archive", "prices", MULTICAST)]
