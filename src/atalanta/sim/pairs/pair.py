"""The pair of a simulation, and its faults. They have a random generator of their own."""

from __future__ import annotations

from typing import Final

from atalanta.ha import RELEASED, LeaseTerms
from atalanta.sim.node_machine import serving
from atalanta.sim.nodes import PORT, Shape, backup_name, node_maker
from atalanta.sim.pairs.machine import PairMachine
from atalanta.sim.pairs.shared_folder import SharedFolder
from atalanta.sim.world.machine_clock import DRIFT_PPM
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World

EVERY_NS: Final = (SECOND // 2, SECOND, 3 * SECOND)
LENGTHS_NS: Final = (SECOND // 4, SECOND // 2, SECOND)  # of a lease
PAUSE_MIN_NS: Final = SECOND // 10
PAUSE_MAX_NS: Final = (SECOND, 3 * SECOND, 10 * SECOND)
ABSENCE_NS: Final = (SECOND // 100, 3 * SECOND)
COMMITS_MAX: Final = 12
STANDING_SHARE: Final = 0.4  # of the pauses: the monotonic clock stands still, too


class Pair:
    """Node `shape.pair` on two machines: a primary, which has the node's name, and a backup."""

    def __init__(self, world: World, network: Network, count: int, shape: Shape) -> None:
        self.world = world
        self.index = shape.pair
        self.random = world.random("pair faults")
        self.every_ns = self.random.choice(EVERY_NS)
        self.until = 0.0
        self.over = False
        folder = SharedFolder(f"n{shape.pair}")
        terms = LeaseTerms(world.random("lease").choice(LENGTHS_NS), DRIFT_PPM)
        names = (f"n{shape.pair}", backup_name(shape.pair))
        self.primary, self.backup = self.machines = [
            PairMachine(
                world, network, name, PORT, node_maker(shape.pair, count, shape, name), folder, terms, number
            )
            for number, name in enumerate(names)
        ]  # fmt: skip
        self.primary.partner, self.backup.partner = self.backup, self.primary
        self.backups = [self.backup]
        for machine in self.machines:
            machine.join(self.machines)
            machine.on_died = self._start_later
        network.partners[self.primary.name] = [self.backup.name]

    def begin(self, until: float) -> None:
        """Begins the faults; they end after `until` seconds of virtual time."""
        self.until = until
        self.world.at(SECOND, self._strike)

    def end(self) -> None:
        """Ends every fault and cancels the planned ones."""
        self.over = True
        for machine in self.machines:
            machine.pause_after_look_ns = 0
            machine.dies_in_takeover = False
            machine.find_folder()
            machine.resume()

    def _strike(self) -> None:
        if self.over or self.world.seconds() >= self.until:
            return
        draw = self.random.random()
        machine = serving(self.machines)
        length_ns = self.random.randint(PAUSE_MIN_NS, self.random.choice(PAUSE_MAX_NS))
        if draw < 0.25:
            machine.pause(length_ns, self.random.random() < STANDING_SHARE)
        elif draw < 0.43:
            self._pause_at_commit(machine, length_ns)
        elif draw < 0.53:
            machine.pause_after_look_ns = length_ns
        elif draw < 0.67:
            machine.lose_folder(length_ns)
        elif draw < 0.74:
            self._crash(machine)
        elif draw < 0.78:
            for each in self.machines:
                self._crash(each)
        elif draw < 0.85:
            if machine.up:
                machine.stop()
                self._start_later(machine)
        elif draw < 0.91:
            self._fail_back()
        elif draw < 0.95:
            self._crash(machine)
            machine.partner.dies_in_takeover = True
        else:
            machine.partner.pause(length_ns, False)
        self.world.at(self.random.randint(1, 2 * self.every_ns), self._strike)

    def _pause_at_commit(self, machine: PairMachine, length_ns: int) -> None:
        """Pauses the machine in the middle of a commit, mostly with its clock. Some commits end after it."""
        life = machine.life

        def pause() -> None:
            if machine.life == life and not self.over:
                if self.random.random() < 0.5:
                    machine.lose_folder(length_ns)
                machine.pause(length_ns, self.random.random() < 1 - STANDING_SHARE)

        machine.disk.strike_at_commit(self.random.randint(1, COMMITS_MAX), pause)

    def _crash(self, machine: PairMachine) -> None:
        if machine.up:
            machine.crash()
            machine.disk.slow = 1
            self._start_later(machine)

    def _start_later(self, machine: PairMachine) -> None:
        def again() -> None:
            if not machine.up:
                machine.start()

        self.world.at(self.random.randint(*ABSENCE_NS), again)

    def _fail_back(self) -> None:
        """Gives the folder back to the primary, if it waits for that."""
        backup = self.backup
        if self.primary.up and self.primary.standby():
            backup.end_in_order(RELEASED)
            self._start_later(backup)
