"""The members of a simulated group as they see each other: their register, and what the group has confirmed."""

from __future__ import annotations

from atalanta.cluster.replication import Candidate
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.node_machine import NodeMachine, serving
from atalanta.sim.replicas.guards import Guards
from atalanta.sim.replicas.register import SimRegister
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.store import SEGMENT_HEAD_SIZE, JournalConfig, page_number, segment_number
from atalanta.wire.core import TransportConfiguration


class SimMember(NodeMachine):
    """A machine of a group. `member` is the name of its data folder, `epoch` that of its last node."""

    member: str
    epoch: int

    def open_port(self) -> bool:
        """Returns whether clients can connect to the machine."""
        return any(owner is self for owner in self.network.listening.values())

    def has_dropped(self, number: int) -> bool:
        """Returns whether the machine has deleted a segment because a later epoch has compacted it."""
        found = [segment_number(name) for name in self.disk.files]
        return number < min([each for each in found if each] or [0])


class SimMembers:
    """The machines of a group. The first one is the primary."""

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        names: list[str],
        node_id: bytes,
        journal: JournalConfig,
        min_in_sync: int,
        coordinated: bool = True,
        far: str = "",
    ) -> None:
        """`names` are those of the machines; `far` is the asynchronous one, "" without one.

        `min_in_sync`: nothing is confirmed with fewer members in sync. `coordinated`: all folders have the node id from
        the configuration; else a new backup learns it.
        """
        self.name = name
        self.names = names
        self.node_id = node_id
        self.journal = journal
        self.coordinated = coordinated
        self.far = far
        self.ordered = False  # an operator wanted it to serve
        self.obeyed = False  # it has taken an epoch since
        self.min_in_sync = min_in_sync
        self.guards = Guards(world, network, name)
        self.register = SimRegister(world, name, self.check_order)
        self.machines: list[SimMember] = []
        self.confirmed = 0  # the last lsn that a node has confirmed

    def candidates(self, machine: SimMember) -> list[Candidate]:
        """Returns the other members, which a machine dials."""
        return [Candidate(name, name, machine.port, False) for name in self.names if name != machine.name]

    def announced(self, machine: SimMember) -> dict[str, TransportConfiguration]:
        """Returns the connector of a machine, by cluster connection."""
        return {"sim": TransportConfiguration.tcp(machine.name, machine.address, machine.port)}

    def is_far(self, machine: SimMember) -> bool:
        """Returns whether the machine is asynchronous."""
        return machine.name == self.far

    def order(self, machine: SimMember) -> None:
        """Records that an operator lets a machine serve."""
        if self.is_far(machine):
            self.ordered, self.obeyed = True, False

    def check_order(self, member: str) -> None:
        """Raises Violation if an asynchronous machine takes an epoch and was not told to. An order that is obeyed ends
        when another machine takes one; until then it may be passed on to the machine that serves meanwhile."""
        machine = next((each for each in self.machines if each.member == member), None)
        if machine is None:
            return  # nobody: the register is founded
        if not self.is_far(machine):
            self.ordered = self.ordered and not self.obeyed
            self.obeyed = False
        elif not self.ordered:
            raise Violation(f"{machine.name} is asynchronous, and takes over without an order")
        else:
            self.obeyed = True

    def in_sync(self) -> list[SimMember]:
        """Returns the machines that may take over by the register as it is."""
        value = self.register.value()
        names = value.in_sync if value is not None else ()
        return [machine for machine in self.machines if machine.member in names]

    def serving(self) -> SimMember:
        """Returns the machine whose node is active, or the primary."""
        return serving(self.machines)

    def quiet(self) -> bool:
        """Returns whether the active node has everything confirmed, and no machine is writing."""
        node = self.serving().node
        if node is None or node.failed is not None or not self.serving().current():
            return False
        return node.journal.idle() and not any(each.disk.busy() or each.large.busy() for each in self.machines)

    def note_confirmed(self, lsn: int) -> None:
        """Records that everything up to `lsn` is confirmed."""
        self.confirmed = max(self.confirmed, lsn)

    def check_journal(self, machine: SimMember, last: int) -> None:
        """Raises Violation if a member of the in-sync set has a journal that ends with `last`, before what is
        confirmed."""
        if last < self.confirmed and machine in self.in_sync():
            raise Violation(
                f"{machine.name} is in sync with a journal up to {last}, and {self.confirmed} is confirmed"
            )

    def check_number(self) -> None:
        """Raises Violation if fewer than `min_in_sync` members are in sync, while something is being confirmed."""
        value = self.register.value()
        if value is not None and len(value.in_sync) < self.min_in_sync:
            raise Violation(f"{self.name} confirms with {value.in_sync} in sync, not {self.min_in_sync} members")

    def left(self) -> list[str]:
        """Returns what is missing until every member is in sync and equal."""
        active = self.serving()
        if active.node is None or not active.may_send():
            return [f"no node of {self.register.name} serves: {self.register.value()}"]
        in_sync = self.in_sync()
        missing = [each.name for each in self.machines if each not in in_sync and not self.is_far(each)]
        if missing:
            return [f"{' '.join(missing)} not in sync"]
        if any(machine.node is not None for machine in self.machines if machine is not active):
            return ["two nodes"]
        if not self.quiet():
            return [f"{active.name} is writing"]
        waiting = [each.name for each in self.machines if each is not active and each.open_port()]
        if waiting:
            return [f"clients may wait at {' '.join(waiting)}"]
        found = []
        for machine in self.machines:
            if machine is not active:
                found += [f"{machine.name}: {each}" for each in different_files(active, machine)]
        return found


def different_files(active: NodeMachine, follower: NodeMachine) -> list[str]:
    """Returns the names of files that are not equal, once nothing is being written.

    Segments are compared up to the end of their blocks.
    """
    assert active.node is not None
    found = []
    segments = active.node.journal.segments
    for segment in segments:
        mine, other = active.disk.content(segment.name), follower.disk.content(segment.name)
        if segment.end > SEGMENT_HEAD_SIZE and mine[: segment.end] != other[: segment.end]:
            found.append(segment.name)
    for name in active.disk.names():
        if page_number(name) and follower.disk.content(name) != active.disk.content(name):
            found.append(name)
    for name in follower.disk.names():
        if 0 < segment_number(name) < segments[0].number or (page_number(name) and not active.disk.content(name)):
            found.append(f"{name} (left)")
    bodies, copies = active.large.contents, follower.large.contents
    for file in sorted({**bodies, **copies}):
        if bodies.get(file) != copies.get(file):
            found.append(f"large body {file}")
    return found
