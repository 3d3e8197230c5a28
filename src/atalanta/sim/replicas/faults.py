"""The faults of a simulated group. They have a random generator of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.sim.replicas.machine import ReplicaMachine
from atalanta.sim.replicas.members import SimMember, SimMembers
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World

EVERY_NS: Final = (SECOND // 2, SECOND, 3 * SECOND)
FAULT_MIN_NS: Final = SECOND // 100
FAULT_MAX_NS: Final = (SECOND, 3 * SECOND, 10 * SECOND)
ORDER_NS: Final = 3 * SECOND  # between two orders of an operator
ABSENCE_NS: Final = (SECOND // 100, 3 * SECOND)
COMMITS_MAX: Final = 12
STARTED_SHARE: Final = 0.3  # of the crashes of a process with a guard: the one that was started ends
GUARD_NS: Final = (SECOND // 1_000, SECOND // 2)  # until its guard has ended the broker
LOCK_LOOK_NS: Final = SECOND // 50  # between two attempts to lock a folder
STANDING_SHARE: Final = 0.3  # of the pauses: the machine's clock stands still, too
ROOM_BYTES_MAX: Final = 20_000  # of a disk that is full soon
LOOK_NS: Final = SECOND // 10
RETURN_NS: Final = 6 * SECOND  # until a rolling restart goes on with the next machine


class GroupFaults:
    """The faults of the machines of node `index`, until `end`."""

    def __init__(
        self, world: World, network: Network, machines: list[ReplicaMachine], members: SimMembers, index: int
    ) -> None:
        self.world = world
        self.network = network
        self.machines = machines
        self.members = members
        self.register = members.register
        self.random = world.random(f"group faults {index}")
        self.every_ns = self.random.choice(EVERY_NS)
        self.until = 0.0
        self.over = False
        self.rolling = False
        self.rolled = 0  # machines restarted in turn
        self.given_back = 0
        self.orders = world.random(f"orders {index}")
        self.kills = world.random(f"kills {index}")

    def begin(self, until: float) -> None:
        """Begins the faults; they end after `until` seconds of virtual time."""
        self.until = until
        self.world.at(SECOND, self._strike)
        if self.members.far:
            self.world.at(ORDER_NS, self._order)

    def end(self) -> None:
        """Ends every fault and cancels the planned ones."""
        self.over = True
        self.register.heal()
        self.members.guards.heal()
        for machine in self.machines:
            machine.resume()
            self._fast(machine)
            self._empty(machine)

    def _strike(self) -> None:
        if self.over or self.world.seconds() >= self.until:
            return
        machine = self.random.choice(self.machines)
        if self.random.random() < 0.6:
            machine = self._serving() or machine
        length_ns = self.random.randint(FAULT_MIN_NS, self.random.choice(FAULT_MAX_NS))
        self._hit(self.random.random(), machine, length_ns)
        self.world.at(self.random.randint(1, 2 * self.every_ns), self._strike)

    def _hit(self, draw: float, machine: ReplicaMachine, length_ns: int) -> None:
        stands = self.random.random() < STANDING_SHARE
        if draw < 0.12:
            machine.pause(length_ns, stands)
        elif draw < 0.20:
            self._at_commit(machine, lambda: machine.pause(length_ns, stands))
        elif draw < 0.27:
            self._crash(machine)
        elif draw < 0.34:
            self._at_commit(machine, lambda: self._crash(machine))
        elif draw < 0.40:
            self._lose_power()
        elif draw < 0.47:
            self._lose_disk(machine)
        elif draw < 0.58:
            self._partition(machine, length_ns)
        elif draw < 0.62:
            self._isolate(machine, length_ns)
        elif draw < 0.74:
            self._leave_register(machine, length_ns)
        elif draw < 0.78:
            self.register.leave()
            self.world.at(length_ns, self.register.come_back)
        else:
            self._trouble(draw, machine, length_ns)

    def _trouble(self, draw: float, machine: ReplicaMachine, length_ns: int) -> None:
        if draw < 0.82:
            self._slow_down(machine, self.random.choice((20, 200, 2_000)))
            self.world.at(length_ns, lambda: self._fast(machine))
        elif draw < 0.85:
            machine.disk.set_room(machine.disk.used_bytes() + self.random.randint(0, ROOM_BYTES_MAX))
            self.world.at(length_ns, lambda: self._empty(machine))
        elif draw < 0.89:
            machine.stop()
        elif draw < 0.94:
            self._give_back()
        elif draw < 0.97:
            self._roll()
        else:
            self._cut(machine)

    def _serving(self) -> ReplicaMachine | None:
        return next((each for each in self.machines if each is self.members.serving()), None)

    # -- processes ------------------------------------------------------------------------------
    def _at_commit(self, machine: ReplicaMachine, strike: Callable[[], None]) -> None:
        """Strikes the machine in the middle of a commit."""
        life = machine.life
        machine.disk.strike_at_commit(
            self.random.randint(1, COMMITS_MAX),
            lambda: strike() if machine.life == life and not self.over else None,
        )

    def _crash(self, machine: ReplicaMachine) -> None:
        """Ends a process, or the one that was started above it: then the broker goes on until its guard ends it."""
        if not machine.up:
            return
        if machine.guard is not None and self.kills.random() < STARTED_SHARE:
            machine.lose_started(self.kills.randint(*GUARD_NS))
        else:
            machine.crash()
            self._fast(machine)
        self._start_later(machine)

    def _lose_power(self) -> None:
        """Takes the power from all machines."""
        for machine in self.machines:
            if machine.up:
                machine.end_at_once(False)
                self._fast(machine)
                self._start_later(machine)

    def _lose_disk(self, machine: ReplicaMachine) -> None:
        """Loses all files of a machine, if another member in sync has everything. It comes back as a new member."""
        others = [each for each in self.members.in_sync() if each is not machine and not self.members.is_far(each)]
        if others:
            self.register.void_requests_of(machine)
            machine.lose_disk()
            self._start_later(machine)

    def _start_later(self, machine: ReplicaMachine) -> None:
        def again() -> None:
            if machine.up and machine.is_doomed:  # its broker has the folder
                self.world.at(LOCK_LOOK_NS, again)
            elif not machine.up:
                machine.start()

        self.world.at(self.random.randint(*ABSENCE_NS), again)

    def _order(self) -> None:
        """Moves the service to the asynchronous member, or from it to another one."""
        if self.over or self.world.seconds() >= self.until:
            return
        away = self.members.is_far(self.members.serving())
        machine = self.orders.choice([each for each in self.machines if self.members.is_far(each) != away])
        backup = machine.backup
        if backup is not None and not machine.paused:
            self.world.note(f"{machine.name} is promoted")
            self.members.order(machine)
            backup.promote(machine.now(), lossy=False)
            machine.flush_later()
        self.world.at(self.orders.randint(SECOND, 2 * ORDER_NS), self._order)

    def _give_back(self) -> None:
        """Lets a backup that serves give the service back to its primary, or to another member, if one is in sync."""
        machine = self._serving()
        if machine is not None and self._followed(machine):
            self.given_back += 1
            machine.give_back()

    def _followed(self, machine: SimMember) -> bool:
        return any(
            each is not machine and each.up and each.node is None and not self.members.is_far(each)
            for each in self.members.in_sync()
        )

    def _roll(self) -> None:
        """Stops one machine after the other in good order, the active one last."""
        if not self.rolling:
            self.rolling = True
            active = self.members.serving()
            self._roll_on(sorted(self.machines, key=lambda machine: machine is active))

    def _roll_on(self, machines: list[ReplicaMachine]) -> None:
        if self.over or not machines:
            self.rolling = False
            return
        machine, *others = machines
        if machine.up:
            self.rolled += 1
            machine.stop()
        self._await_return(machine, others, self.world.now + RETURN_NS)

    def _await_return(self, machine: ReplicaMachine, others: list[ReplicaMachine], until: int) -> None:
        """Goes on when the machine is in sync again, or after a time."""
        back = machine.up and machine in self.members.in_sync() and machine.node is None
        if self.over or back or self.world.now > until:
            self._roll_on(others)
        else:
            self.world.at(LOOK_NS, lambda: self._await_return(machine, others, until))

    # -- network and disks ----------------------------------------------------------------------
    def _partition(self, machine: ReplicaMachine, length_ns: int) -> None:
        """Cuts the link to another machine, in one direction or both."""
        other = self.random.choice([each for each in self.machines if each is not machine])
        ways = self.random.choice((((machine, other),), ((other, machine),), ((machine, other), (other, machine))))
        self._block([(source.name, target.name) for source, target in ways], length_ns)

    def _isolate(self, machine: ReplicaMachine, length_ns: int) -> None:
        """Cuts a machine off from the others and from the manager. Clients may still reach it."""
        others = [each.name for each in self.machines if each is not machine]
        self._block([way for name in others for way in ((machine.name, name), (name, machine.name))], length_ns)
        self._take_register(machine, length_ns, (self.register.no_requests, self.register.no_answers))

    def _block(self, ways: list[tuple[str, str]], length_ns: int) -> None:
        for source, target in ways:
            self.network.block(source, target)
        self.world.at(length_ns, lambda: self.network.unblock(ways))

    def _leave_register(self, machine: ReplicaMachine, length_ns: int) -> None:
        """Takes requests, answers or both from a machine and its manager."""
        ways = (self.register.no_requests, self.register.no_answers)
        self._take_register(machine, length_ns, self.random.choice((ways[:1], ways[1:], ways)))

    def _take_register(
        self, machine: ReplicaMachine, length_ns: int, ways: tuple[dict[str, bool], ...]
    ) -> None:
        for way in ways:
            way[machine.name] = True

        def back() -> None:
            for way in ways:
                way.pop(machine.name, None)

        self.world.at(length_ns, back)

    def _fast(self, machine: ReplicaMachine) -> None:
        self._slow_down(machine, 1)

    def _slow_down(self, machine: ReplicaMachine, times: int) -> None:
        machine.disk.slow = times

    def _empty(self, machine: ReplicaMachine) -> None:
        """Gives the disk room again, which the process sees at once."""
        machine.disk.set_room(-1)
        machine.scan_disk()

    def _cut(self, machine: ReplicaMachine) -> None:
        """Cuts the machine's connections to the others of its group."""
        streams = self.network.streams
        for connection in sorted(streams):
            stream = streams[connection]
            if stream.source is machine and stream.target in self.machines:
                self.network.cut_connection(connection)
