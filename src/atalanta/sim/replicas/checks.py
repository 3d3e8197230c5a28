"""The checks of a simulated group: what is confirmed is on the disk of every member that may take over."""

from __future__ import annotations

from atalanta.cluster.replication import FileChanges
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.replicas.members import SimMember, SimMembers
from atalanta.store import SEGMENT_HEAD_SIZE, Journal, Segment, decode_block_head, page_name


class ConfirmedBlocks:
    """The blocks of an epoch that its node has confirmed: each is looked for once, before an answer leaves."""

    def __init__(self, members: SimMembers, machine: SimMember, journal: Journal) -> None:
        self.members = members
        self.machine = machine
        self.journal = journal
        self.durable = 0
        self.recovered = journal.durable
        segment = journal.segments[-1]
        self.number = segment.number
        self.offset = segment.end

    def check(self) -> None:
        """Raises Violation for a confirmed block that a member of the in-sync set has not got on its disk."""
        journal = self.journal
        if journal.durable == self.durable:
            return
        self.durable = journal.durable
        self.members.note_confirmed(self.durable)
        if self.durable > self.recovered and self.machine.current():
            self.members.check_number()
        holders = self.members.in_sync()
        segments = {segment.number: segment for segment in journal.segments}
        while True:
            segment = segments.get(self.number)
            last = 0 if segment is None else self._check_block(segment, holders)
            if last < 0:
                return
            if last == 0:
                later = [number for number in segments if number > self.number]
                if not later:
                    return
                self.number = min(later)
                self.offset = SEGMENT_HEAD_SIZE

    def _check_block(self, segment: Segment, holders: list[SimMember]) -> int:
        """Returns the last lsn of the next block; 0 if the segment has no further one, -1 if that is not confirmed."""
        head_size = segment.block_head_size
        content = self.machine.disk.content(segment.name)
        data = bytes(content[self.offset : self.offset + head_size])
        head = decode_block_head(segment.seal, data, 0, head_size)
        if head is None:
            return 0
        last = head.first + head.count - 1
        if last > self.durable:
            return -1
        end = self.offset + head_size + head.length
        block = content[self.offset : end]
        for holder in holders:
            if holder.disk.content(segment.name)[self.offset : end] != block:
                if not holder.has_dropped(segment.number):
                    raise Violation(
                        f"{self.machine.name} has confirmed records up to {last}, which {holder.name} lacks"
                    )
        self.offset = end
        return last


class ConfirmedFiles:
    """The page files and large bodies of an epoch: once a record names one and is confirmed, every member of the
    in-sync set must have it."""

    def __init__(
        self, members: SimMembers, machine: SimMember, journal: Journal, changes: FileChanges
    ) -> None:
        self.members = members
        self.machine = machine
        self.journal = journal
        self.changes = changes
        # By number: the lsn that is confirmed no earlier than the record that names the file.
        self.pages = dict.fromkeys(changes.pages, 0)
        self.bodies = {file: 0 for file, body in changes.bodies.items() if body.ended}

    def check(self) -> None:
        """Raises Violation for a file that a member in sync has not got on its disk."""
        journal, changes = self.journal, self.changes
        if not changes.pages and not changes.bodies:
            return
        for number in changes.pages:
            if self.pages.setdefault(number, journal.last) <= journal.durable:
                self._look_for(number, True)
        for file, body in changes.bodies.items():
            if body.ended and self.bodies.setdefault(file, journal.last + 1) <= journal.durable:
                self._look_for(file, False)

    def _look_for(self, number: int, page: bool) -> None:
        known = self.pages if page else self.bodies
        if known[number] < 0:
            return  # it was there
        machine = self.machine
        if not machine.current():
            return  # the members of a later epoch may have deleted it
        for holder in self.members.in_sync():
            if page:
                name = page_name(number)
                there = holder.disk.content(name) == machine.disk.content(name)
            else:
                name = f"large body {number}"
                there = holder.large.safe(number) is not None
            if not there:
                raise Violation(
                    f"{machine.name} has confirmed records up to {self.journal.durable}, and {holder.name} lacks {name}"
                )
        known[number] = -1
