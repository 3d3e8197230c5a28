"""Replicated groups of a rehearsal: the members that files describe, each with a disk of its own, and their register.

A member runs the product's `Backup` and `Node`, as every machine of a simulated group does. The manager answers
always here. A process that is killed proves nothing: the others wait for the lease.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from atalanta.cluster.replication import Candidate
from atalanta.ha import LeaseTerms
from atalanta.sim.host import Host, MakeNode
from atalanta.sim.replicas.machine import ReplicaMachine
from atalanta.sim.replicas.members import SimMember, SimMembers
from atalanta.sim.world.machine_clock import DRIFT_PPM
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.store import JournalConfig
from atalanta.wire.core import TransportConfiguration


@dataclass
class FileGroup:
    """A group as its files describe it: the labels of its members, the first one is the primary."""

    labels: list[str]
    name: str
    node_id: bytes
    journal: JournalConfig
    lease_ms: int
    min_in_sync: int


@dataclass
class FileSeat:
    """The place of one node in its group: the members that it dials, and what it announces to them."""

    group: FileGroup
    candidates: list[Candidate]
    announced: dict[str, TransportConfiguration] = field(default_factory=dict)


class FileMembers(SimMembers):
    """The members of a group, as they see each other."""

    def __init__(self, world: World, network: Network, group: FileGroup) -> None:
        super().__init__(
            world, network, group.name, group.labels, group.node_id, group.journal, group.min_in_sync
        )
        self.guards.heal()
        self.register.heal()
        self.seats: dict[str, FileSeat] = {}

    def take_seat(self, machine: SimMember, seat: FileSeat) -> None:
        """Adds a machine at its place."""
        self.machines.append(machine)
        machine.join(self.machines)
        self.seats[machine.name] = seat

    def candidates(self, machine: SimMember) -> list[Candidate]:
        return self.seats[machine.name].candidates

    def announced(self, machine: SimMember) -> dict[str, TransportConfiguration]:
        return self.seats[machine.name].announced


class FileMember(ReplicaMachine):
    """The machine of one member. It stays down when it was killed or stopped, until it is started."""

    def __init__(
        self,
        world: World,
        network: Network,
        label: str,
        listeners: list[tuple[str, int, str]],
        make: MakeNode,
        members: FileMembers,
        seat: FileSeat,
    ) -> None:
        """`listeners` are host, port and acceptor of each place where the active node listens."""
        host, port, _ = listeners[0] if listeners else (label, 0, "")
        terms = LeaseTerms(seat.group.lease_ms * 1_000_000, DRIFT_PPM)
        super().__init__(world, network, label, port, make, members, terms, seat.group.labels.index(label))
        self.address = host
        self.places = listeners
        self.listeners = {port: acceptor for _, port, acceptor in listeners}
        self.on_started.append(self._listen)
        members.take_seat(self, seat)

    def _listen(self, host: Host) -> None:
        for place, port, _ in self.places:
            self.network.listen(self, place, port)

    def crash(self) -> None:
        """Ends the process and its guard at once."""
        self.end_at_once(False)

    def _again_later(self) -> None:
        """Leaves the process down."""
