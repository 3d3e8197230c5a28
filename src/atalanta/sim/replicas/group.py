"""The replicated group of a simulation, and its faults. They have a random generator of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.ha.lease import LeaseTerms
from atalanta.sim.checks.replay import check_replay_of
from atalanta.sim.nodes import PORT, Shape, machines_of, node_maker
from atalanta.sim.replicas.machine import DRIFT_PPM, ReplicaMachine
from atalanta.sim.replicas.members import Members
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World

EVERY_NS: Final = (SECOND // 2, SECOND, 3 * SECOND)
LENGTHS_NS: Final = (SECOND // 4, SECOND // 2, SECOND)  # of a lease
LOOK_NS: Final = SECOND // 2  # between two looks at a group that is at rest
FAULT_MIN_NS: Final = SECOND // 100
FAULT_MAX_NS: Final = (SECOND, 3 * SECOND, 10 * SECOND)
ABSENCE_NS: Final = (SECOND // 100, 3 * SECOND)
COMMITS_MAX: Final = 12
ORDER_NS: Final = 3 * SECOND  # between two orders of an operator


class ReplicaGroup:
    """Node `shape.group` on several machines: a primary, which has the node's name, and its backups."""

    def __init__(self, world: World, network: Network, count: int, shape: Shape) -> None:
        self.world = world
        self.network = network
        self.random = world.random("group faults")
        self.every_ns = self.random.choice(EVERY_NS)
        self.until = 0.0
        self.over = False
        self.members = Members(world, f"n{shape.group}", self.random.random() < 0.5)
        self.register = self.members.register
        self.looks = 0  # comparisons of a follower with its node
        terms = LeaseTerms(world.random("lease").choice(LENGTHS_NS), DRIFT_PPM)
        names = machines_of(shape.group, shape)
        self.orders = world.random("orders")
        far = names[-1] if len(names) > 2 and self.orders.random() < 0.5 else ""
        self.machines = [
            ReplicaMachine(
                world, network, name, PORT, node_maker(shape.group, count, shape, name), self.members,
                terms,
                names[0] == name, shape, name == far,
            )
            for name in names
        ]  # fmt: skip
        self.members.machines.extend(self.machines)
        for index, machine in enumerate(self.machines):
            machine.life = index * 1_000_000  # one node has no life twice
            machine.stops = self.machines[0].stops  # one node has one list of its graceful stops
            machine.on_died = self._start_later
        network.partners[names[0]] = names[1:]
        self.primary = self.machines[0]
        self.backups = self.machines[1:]

    def takeovers(self) -> int:
        return sum(machine.takeovers for machine in self.machines)

    def losses(self) -> int:
        """Returns how many nodes have learned that their epoch was over."""
        return sum(machine.losses for machine in self.machines)

    # -- looks ----------------------------------------------------------------------------------
    def _look(self) -> None:
        """Compares each member in sync with the node, at a moment when everything is confirmed.

        A machine that took over now must have the same messages.
        """
        active = self.members.serving()
        if self.members.quiet():
            for machine in self.members.in_sync():
                if machine is not active and not machine.disk.failed:
                    self.looks += 1
                    check_replay_of(active, machine.name, machine.disk, machine.large)
        self.world.at(self.random.randint(1, 2 * LOOK_NS), self._look)

    # -- faults ---------------------------------------------------------------------------------
    def begin(self, until: float) -> None:
        """Begins the faults; they end after `until` seconds of virtual time."""
        self.until = until
        self.world.at(SECOND, self._strike)
        if any(machine.asynchronous for machine in self.machines):
            self.world.at(ORDER_NS, self._order)

    def watch(self) -> None:
        """Begins the looks."""
        self.world.at(SECOND, self._look)

    def end(self) -> None:
        """Ends every fault and cancels the planned ones."""
        self.over = True
        self.register.heal()
        for machine in self.machines:
            machine.resume()
            machine.disk.slow = 1

    def _strike(self) -> None:
        if self.over or self.world.seconds() >= self.until:
            return
        draw = self.random.random()
        machine = self.random.choice(self.machines)
        if self.random.random() < 0.6:
            machine = next((each for each in self.machines if each is self.members.serving()), machine)
        length_ns = self.random.randint(FAULT_MIN_NS, self.random.choice(FAULT_MAX_NS))
        if draw < 0.12:
            machine.pause(length_ns)
        elif draw < 0.20:
            self._at_commit(machine, lambda: machine.pause(length_ns))
        elif draw < 0.28:
            self._crash(machine)
        elif draw < 0.36:
            self._at_commit(machine, lambda: self._crash(machine))
        elif draw < 0.42:
            for each in self.machines:
                self._crash(each)
        elif draw < 0.50:
            self._lose_disk(machine)
        elif draw < 0.66:
            self._partition(machine, length_ns)
        elif draw < 0.80:
            self._leave_register(machine, length_ns)
        elif draw < 0.84:
            self.register.away = True
            self.world.at(length_ns, self._register_back)
        elif draw < 0.90:
            machine.disk.slow = self.random.choice((20, 200))
            self.world.at(length_ns, lambda: self._fast(machine))
        elif draw < 0.96:
            machine.stop()
        else:
            self._cut(machine)
        self.world.at(self.random.randint(1, 2 * self.every_ns), self._strike)

    def _order(self) -> None:
        """Moves the service to the asynchronous member, or from it to another one."""
        if self.over or self.world.seconds() >= self.until:
            return
        away = self.members.serving().asynchronous
        self.orders.choice([each for each in self.machines if each.asynchronous != away]).order()
        self.world.at(self.orders.randint(SECOND, 2 * ORDER_NS), self._order)

    def _at_commit(self, machine: ReplicaMachine, strike: Callable[[], None]) -> None:
        """Strikes the machine in the middle of a commit."""
        life = machine.life
        machine.disk.strike_at_commit(
            self.random.randint(1, COMMITS_MAX),
            lambda: strike() if machine.life == life and not self.over else None,
        )

    def _crash(self, machine: ReplicaMachine) -> None:
        if machine.up:
            machine.crash()
            machine.disk.slow = 1
            self._start_later(machine)

    def _lose_disk(self, machine: ReplicaMachine) -> None:
        """Loses all files of a machine, if another member in sync has everything. It comes back as a new member."""
        others = [each for each in self.members.in_sync() if each is not machine and not each.asynchronous]
        if others:
            self.register.void_requests_of(machine)
            machine.lose_disk()
            self._start_later(machine)

    def _start_later(self, machine: ReplicaMachine) -> None:
        def again() -> None:
            if not machine.up:
                machine.start()

        self.world.at(self.random.randint(*ABSENCE_NS), again)

    def _partition(self, machine: ReplicaMachine, length_ns: int) -> None:
        """Cuts the link to another machine, in one direction or both."""
        other = self.random.choice([each for each in self.machines if each is not machine])
        ways = self.random.choice((((machine, other),), ((other, machine),), ((machine, other), (other, machine))))
        for source, target in ways:
            self.network.block(source.name, target.name)
        self.world.at(length_ns, lambda: self.network.unblock([(a.name, b.name) for a, b in ways]))

    def _leave_register(self, machine: ReplicaMachine, length_ns: int) -> None:
        """Takes requests, answers or both from a machine and its manager."""
        ways = (self.register.no_requests, self.register.no_answers)
        cut = self.random.choice((ways[:1], ways[1:], ways))
        for way in cut:
            way[machine.name] = True

        def back() -> None:
            for way in cut:
                way.pop(machine.name, None)

        self.world.at(length_ns, back)

    def _register_back(self) -> None:
        self.register.away = False

    def _fast(self, machine: ReplicaMachine) -> None:
        machine.disk.slow = 1

    def _cut(self, machine: ReplicaMachine) -> None:
        """Cuts a connection between two machines of the group."""
        streams = self.network.streams
        for connection in sorted(streams):
            stream = streams[connection]
            if stream.source is machine and stream.target in self.machines:
                self.network.cut_connection(connection)
