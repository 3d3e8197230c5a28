"""A member is away for longer than its messages wait for it, and a third one has a backlog of the same address.

What was parked goes there, in front of what the sender's node sent there later: what waits there of one sender is in
the order in which it was sent, and so does the slow consumer get it.
"""

from __future__ import annotations

from typing import Final

from atalanta.cluster.cluster import Cluster
from atalanta.cluster.late import PART, LateArrivals
from atalanta.cluster.parked import PARKED
from atalanta.kernel.reference import DELIVERING, READY
from atalanta.sim.absence_load import LATE_NS, RETURNS_MAX, Absences, InOrder, SlowConsumer
from atalanta.sim.faults import start
from atalanta.sim.host import Host
from atalanta.sim.ledger import PARCELS, Ledger
from atalanta.sim.network import Network
from atalanta.sim.nodes import Shape
from atalanta.sim.return_order import HERE, ReturnOrder
from atalanta.sim.world import SECOND, World

SHARE: Final = 0.15
LOOK_NS: Final = SECOND // 100
CRASHES: Final = 0.2  # of the moments at which something is on its way to its place
SLOWNESS_NS: Final = (300_000_000, 1_000_000_000)


class Thirds(Absences):
    """Senders at `near`, consumers at `far`, which dies again and again, and at `third`, where they are slow."""

    def __init__(
        self, world: World, network: Network, ledger: Ledger, nodes: int, shape: Shape
    ) -> None:
        super().__init__(world, network, ledger, nodes, shape)
        others = [index for index in range(nodes) if index not in (self.near, self.far)]
        self.third = self.random.choice(others)
        self.ordered = [self.near, self.far, self.third]
        self.rates = (20.0, 40.0)

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self._make_senders(hosts, seconds)
        near, far, third = hosts[self.near], hosts[self.far], hosts[self.third]
        self.taker = InOrder(
            self.world, self.network, "a-third", third, self.ledger, self.departed,
            LateOrder(third, PARCELS),
        )  # fmt: skip
        self.taker.slowness_ns = self.random.choice(SLOWNESS_NS)
        near.late = PARKED
        third.late = PART
        near.late_by_ns = third.late_by_ns = LATE_NS
        self.distant = SlowConsumer(self.world, self.network, "a-far", far.name, self.ledger)
        self.takers.append(self.taker)
        self.world.at(LOOK_NS, self._a_few_at_a_time)
        self._begin()

    def _a_few_at_a_time(self) -> None:
        """Now and then it crashes while they are on their way to their places."""
        if self.over:
            return
        host = self.hosts[self.third]
        part = None if host.node is None else host.node.parts[PART]
        if isinstance(part, LateArrivals):
            part.moves_max = RETURNS_MAX
            late = part.queue()
            if late is not None and late.message_count > 0 and self.answers.random() < CRASHES:
                host.crash()
                host.disk.slow = 1
                self.world.at(self.answers.randint(1, 2 * SECOND), self._third_is_back)
        self.world.at(LOOK_NS, self._a_few_at_a_time)

    def _third_is_back(self) -> None:
        start(self.hosts[self.third])

    def _empty_handed(self) -> None:
        """The third is slow, and stays: else it would get nothing."""


class LateOrder(ReturnOrder):
    """What is stored there, and has no place yet, is promised too."""

    def _promise_here(self, cluster: Cluster) -> None:
        super()._promise_here(cluster)
        out = dict(self.newest)
        for reference, _, sender, number in self.waiting(cluster, self.queue):
            if reference.state == DELIVERING:
                out[sender] = max(number, out.get(sender, -1))
        late = f"{cluster.broker.config.internal_naming_prefix}{PART}"
        for reference, key, sender, number in self.waiting(cluster, late):
            if reference.state == READY and number > out.get(sender, -1):
                self.promised[key] = HERE
