"""Disks without room for some seconds: nodes go on with their reserve, refuse messages, and take them again later."""

from __future__ import annotations

from typing import Final

from atalanta.sim.checks.ledger import Ledger
from atalanta.sim.host import Host
from atalanta.sim.nodes import Shape
from atalanta.sim.subject import Subject
from atalanta.sim.world.disk import RESERVED
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World

SHARE: Final = 0.3
# A file of the reserve has room for a segment, a page, and some of what a node writes by itself (a real segment of
# 10 MiB has room for that, but the segments here are small).
MARGIN_BYTES: Final = 3_000
LEFT_BYTES: Final = (0, 0, 5_000, 60_000)
FULL_NS: Final = (SECOND, 8 * SECOND)
SCAN_NS: Final = SECOND


class FullDisks(Subject):
    """The load: now and then other programs take the room of a node's disk, and give it back."""

    def __init__(self, world: World, network: Network, ledger: Ledger, shape: Shape) -> None:
        super().__init__(world, network, ledger)
        self.reserve_bytes = shape.segment_bytes + shape.page_bytes + MARGIN_BYTES
        self.random = world.random("full disks")
        self.over = False

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        for host in hosts:
            host.disk.keep_reserve(self.reserve_bytes)
            host.on_started.append(self._scan)
        self._later()

    def _scan(self, host: Host) -> None:
        self._scan_life(host, host.life)

    def _scan_life(self, host: Host, life: int) -> None:
        if host.life == life:
            host.scan_disk()
            self.world.at(SCAN_NS, lambda: self._scan_life(host, life))

    def _later(self) -> None:
        self.world.at(self.random.randint(1, 4 * SECOND), self._fill)

    def _fill(self) -> None:
        if self.over:
            return
        host = self.random.choice(self.hosts)
        disk = host.disk
        if disk.room_bytes < 0 and disk.reserve == RESERVED:
            disk.set_room(disk.used_bytes() + self.random.choice(LEFT_BYTES))
            self.world.note(f"the disk of {host.name} has room for {disk.room_bytes} bytes")
            self.world.at(self.random.randint(*FULL_NS), lambda: self._give_back(host))
        self._later()

    def _give_back(self, host: Host) -> None:
        if host.disk.room_bytes >= 0:
            host.disk.set_room(-1)
            self.world.note(f"the disk of {host.name} has room again")

    def repair(self) -> None:
        super().repair()
        self.over = True
        for host in self.hosts:
            self._give_back(host)
