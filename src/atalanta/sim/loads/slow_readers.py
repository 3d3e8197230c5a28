"""Peers that read slowly: data accumulates at the sender, which is notified."""

from __future__ import annotations

from typing import Final

from atalanta.sim.checks.ledger import Ledger
from atalanta.sim.host import Host
from atalanta.sim.subject import Subject
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World

SHARE: Final = 0.15
STALL_MS: Final = (50, 900)
SLOW_NS_MAX: Final = 8 * SECOND  # longer than the TTL of a cluster connection


class SlowReaders(Subject):
    """The load: sometimes a node or a client reads only in short intervals for some seconds."""

    def __init__(self, world: World, network: Network, ledger: Ledger) -> None:
        super().__init__(world, network, ledger)
        self.random = world.random("slow readers")
        self.every_ns = self.random.choice((2 * SECOND, 5 * SECOND))
        self.over = False
        network.choke_bytes = self.random.choice((500, 5_000, 50_000))

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        self._later()

    def _later(self) -> None:
        self.world.at(self.random.randint(1, 2 * self.every_ns), self._slow_down)

    def _slow_down(self) -> None:
        if self.over:
            return
        name = self.random.choice(self.hosts).name
        if self.random.random() < 0.3:
            name = f"c{self.random.randrange(len(self.hosts))}"  # a consumer of orders
        self.world.note(f"{name} reads slowly")
        self._stall(name, self.world.now + self.random.randint(1, SLOW_NS_MAX))
        self._later()

    def _stall(self, name: str, until: int) -> None:
        self.network.read_again(name)
        if self.over or self.world.now >= until:
            return
        self.network.stall(name)
        delay_ns = self.random.randint(*STALL_MS) * 1_000_000
        self.world.at(delay_ns, lambda: self._stall(name, until))

    def repair(self) -> None:
        super().repair()
        self.over = True
        for name in list(self.network.stalled):
            self.network.read_again(name)
