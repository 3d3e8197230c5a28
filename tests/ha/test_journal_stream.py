"""A journal streamed to a follower: its files are equal, byte for byte, whatever the journal does meanwhile."""

from __future__ import annotations

import random
from collections import deque

import pytest

from atalanta.ha.replication.block_stream import (
    BlockItem,
    BlockRefused,
    DropItem,
    JumpItem,
    StreamItem,
    blocks_of,
)
from atalanta.ha.replication.epoch_table import agreement
from atalanta.ha.replication.journal_copy import JournalCopy
from atalanta.ha.replication.journal_reader import JournalReader
from atalanta.sim.world.disk import SimDisk
from atalanta.store.config import JournalConfig
from atalanta.store.errors import JournalDamaged
from atalanta.store.journal import Journal
from atalanta.store.recovery import CUT_NOTHING, read_back
from atalanta.store.recovery_report import RecoveryReport
from atalanta.store.segment import Segment, segment_number
from tests.share import share
from tests.store.journal_rig import JOURNAL_ID, Collector, Rig, Schedule, config
from tests.store.key_table import Table, apply
from tests.store.version_7 import version_7

BATCHES = 4
SEEDS_A_BATCH = 12


class Member:
    """A follower with a disk of its own; `start` is a process start, `crash` a power cut."""

    def __init__(self, settings: JournalConfig, seed: int = 1) -> None:
        self.config = settings
        self.schedule = Schedule()
        self.disk = SimDisk(self.schedule.at, random.Random(seed))
        self.copy: JournalCopy
        self.report: RecoveryReport

    def start(self, cut: int = CUT_NOTHING) -> list[tuple[int, int, bytes]]:
        """Recovers the copy; returns its records."""
        replay = Collector()
        state = read_back(self.disk, self.config, replay, cut)
        self.report = state.report
        self.copy = copy = JournalCopy(self.disk, self.config, state)
        self.disk.attach(copy.on_committed, copy.on_failed, lambda name: copy.set_room(False, name))
        return replay.records

    def crash(self) -> None:
        self.disk.crash()

    def settle(self) -> None:
        while self.schedule.step():
            pass


class Wire:
    """A connection: items in order, which arrive when a test says so."""

    def __init__(self, journal: Journal, member: Member) -> None:
        self.reader = JournalReader(journal, member.copy.last)
        self.member = member
        self.items: deque[StreamItem] = deque()
        self.jumps = 0

    def send(self, size_bytes: int) -> None:
        items = self.reader.take(size_bytes)
        self.jumps += sum(isinstance(item, JumpItem) for item in items)
        self.items.extend(items)

    def deliver(self, count: int = 1 << 30) -> None:
        while self.items and count > 0:
            self.member.copy.on_item(self.items.popleft())
            count -= 1

    def catch_up(self, size_bytes: int = 4096) -> None:
        while True:
            self.send(size_bytes)
            if not self.items:
                break
            self.deliver()
        self.member.settle()


def blocks_on(disk: SimDisk) -> dict[tuple[int, int], bytes]:
    """Returns all whole blocks of a folder by segment and offset."""
    found = {}
    for name, content in disk.files.items():
        number = segment_number(name)
        if number:
            segment = Segment(JOURNAL_ID, number, len(content), False)
            for block in blocks_of(segment, bytes(content)):
                found[number, block.offset] = bytes(content[block.offset : block.end])
    return found


def live(records: list[tuple[int, int, bytes]]) -> dict[int, tuple[int, bytes]]:
    table: dict[int, tuple[int, bytes]] = {}
    for lsn, kind, payload in records:
        apply(table, lsn, kind, payload)
    return table


def same_files(table: Table, member: Member, first: int) -> None:
    """Checks that the follower has the files of the journal, from segment `first` on, up to the last block."""
    disk = table.rig.disk
    for segment in table.journal.segments:
        if segment.end > 64 and segment.number >= first:
            assert disk.files[segment.name][: segment.end] == member.disk.files[segment.name][: segment.end]
            assert len(disk.files[segment.name]) == len(member.disk.files[segment.name])


def settings(draw: random.Random) -> JournalConfig:
    return JournalConfig(
        JOURNAL_ID,
        segment_size_bytes=draw.choice((1024, 4096, 16_384)),
        compact_min_segments=2,
        compact_percentage=draw.choice((30, 50, 75)),
        block_size_bytes_max=draw.choice((100, 1000, 100_000)),
        read_size_bytes=draw.choice((64, 999, 1 << 20)),
    )


class History:
    """One random history of an active node and its follower."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.table = Table(settings(self.draw), seed)
        self.table.start()
        self.member = Member(self.table.rig.config, seed + 1)
        self.member.start()
        # Every block that the active node ever wrote, by its place.
        self.ever: dict[tuple[int, int], set[bytes]] = {}
        self.wire = Wire(self.table.journal, self.member)
        self.epoch = 0
        self.jumps = 0
        self.drops = 0
        self.cuts = 0

    def turn(self) -> None:
        draw = self.draw
        self.table.work(draw, draw.randint(0, 8), draw.choice((5, 60)), draw.choice((20, 900, 5000)))
        self.remember()
        if draw.random() < 0.6:
            self.wire.send(draw.choice((1, 500, 5000, 100_000)))
            self.drops += sum(isinstance(item, DropItem) for item in self.wire.items)
            self.wire.deliver(draw.choice((0, 1, 5, 1 << 30)))
        for _ in range(draw.randint(0, 6)):
            self.member.schedule.step()
        chance = draw.random()
        if chance < 0.1:
            self.crash_member()
        elif chance < 0.15:
            self.new_epoch()
        if chance < 0.2:
            self.jumps += self.wire.jumps
            self.connect()

    def connect(self) -> None:
        """The offer: the follower cuts what the active node has not, and the stream begins."""
        journal, member = self.table.journal, self.member
        last = journal.written_lsn()
        epochs = self.table.rig.report.epochs or [(0, 1)]
        if self.epoch > epochs[-1][0]:
            epochs = [*epochs, (self.epoch, self.table.rig.report.last + 1)]
        end = agreement(tuple(member.report.epochs), member.copy.last, tuple(epochs), last)
        if end < member.copy.last:
            self.cuts += 1
            member.settle()
            before, own = blocks_on(member.disk), blocks_on(self.table.rig.disk)
            member.start(end)
            assert member.copy.last == end
            member.settle()
            kept = blocks_on(member.disk)
            for place, block in before.items():
                assert (place in kept) or own.get(place) != block, "what both have must stay"
        self.wire = Wire(journal, member)

    def remember(self) -> None:
        flight = self.table.journal.block_in_flight
        if flight is not None:
            self.ever.setdefault((flight.segment.number, flight.offset), set()).add(flight.head + flight.records)
        for place, block in blocks_on(self.table.rig.disk).items():
            self.ever.setdefault(place, set()).add(block)

    def crash_member(self) -> None:
        self.wire.send(3000)
        self.wire.deliver(2)
        stored = self.member.copy.stored
        self.member.crash()
        self.member.start()
        assert self.member.copy.last >= stored

    def new_epoch(self) -> None:
        """The active node crashes and begins an epoch; the follower cuts what that has not."""
        if self.draw.random() < 0.7:
            self.table.put(1, 50)
            self.table.rig.flush()
            self.remember()
            self.wire.catch_up()
        self.table.crash()
        self.table.start()
        self.epoch += 1
        self.table.journal.begin_epoch(self.epoch)
        if self.draw.random() < 0.5:
            self.member.crash()
        else:
            self.member.settle()
        self.member.start()
        self.member.settle()

    def finish(self) -> None:
        table, member = self.table, self.member
        table.rig.flush()
        table.rig.settle()
        self.remember()
        self.wire.catch_up(self.draw.choice((1, 5000)))
        # A crash of the active node may bring back a deleted file, which the follower has deleted.
        first = member.copy.segments[0].number if self.epoch else 1
        same_files(table, member, first)
        assert member.copy.stored == table.journal.durable
        for place, block in blocks_on(member.disk).items():
            assert block in self.ever[place]
        member.crash()
        assert live(member.start()) == table.live
        assert member.report.last == table.journal.last
        assert member.report.torn_bytes == 0


def histories(seeds: range) -> None:
    jumps = drops = cuts = 0
    for seed in seeds:
        history = History(seed)
        for _ in range(history.draw.randint(10, 60)):
            history.turn()
        history.finish()
        jumps += history.jumps
        drops += history.drops
        cuts += history.cuts
    assert jumps and drops and cuts, "the histories must have jumps, deletions and cuts"


@pytest.mark.parametrize("batch", share(range(BATCHES)))
def test_the_files_of_a_follower_are_equal(batch: int) -> None:
    histories(range(batch * SEEDS_A_BATCH, (batch + 1) * SEEDS_A_BATCH))


@pytest.mark.soak
@pytest.mark.parametrize("batch", range(40))
def test_the_files_of_a_follower_are_equal_in_many_histories(batch: int) -> None:
    histories(range(1000 + 50 * batch, 1050 + 50 * batch))


def grown(count: int = 30, segment_bytes: int = 1024) -> Rig:
    rig = Rig(config(segment_bytes))
    rig.start()
    for number in range(count):
        rig.commit(*[f"record {number}.{part}".encode() * 5 for part in range(1 + number % 3)])
    return rig


def test_the_block_in_flight_leaves_before_the_own_disk_has_it() -> None:
    rig = grown(1)
    member = Member(rig.config)
    member.start()
    wire = Wire(rig.journal, member)
    wire.catch_up()
    assert member.copy.stored == rig.journal.durable == 1
    rig.append(b"in flight")
    rig.flush()
    wire.catch_up()
    assert (member.copy.stored, rig.journal.durable) == (2, 1)
    again = JournalReader(rig.journal, 2)
    assert again.take(1000) == [DropItem(1)]
    assert again.take(1000) == []
    rig.settle()
    assert wire.reader.take(1000) == []


def test_reading_is_in_steps_of_the_size_asked_for() -> None:
    rig = grown(100, 16_384)
    rig.commit(b"large" * 10_000)
    reads: list[int] = []
    read = rig.disk.read

    def counted(name: str, offset: int, size: int) -> bytes:
        reads.append(size)
        return read(name, offset, size)

    rig.disk.read = counted  # type: ignore[method-assign]
    reader = JournalReader(rig.journal, 0)
    while items := reader.take(700):
        sizes = [len(item.data) for item in items if isinstance(item, BlockItem)]
        assert sum(sizes) - max(sizes) <= 700, "one large block, and no more than was asked for"
    assert max(size for size in reads if size < 50_000) <= 700
    assert reader.last == rig.journal.last


def test_a_reader_begins_behind_every_block_and_nowhere_else() -> None:
    rig = grown()
    ends = [item.last for item in JournalReader(rig.journal, 0).take(1 << 20) if isinstance(item, BlockItem)]
    for lsn in range(rig.journal.last + 3):
        if lsn == 0 or lsn in ends:
            items = JournalReader(rig.journal, lsn).take(1 << 20)
            assert [item.last for item in items if isinstance(item, BlockItem)] == [end for end in ends if end > lsn]
        else:
            with pytest.raises(ValueError, match=f"record {lsn} "):
                JournalReader(rig.journal, lsn)


def test_a_damaged_block_is_not_sent() -> None:
    rig = grown(3)
    rig.disk.flip_bit(rig.journal.segments[0].name, 64 + 32 + 40)
    with pytest.raises(JournalDamaged, match="offset 64: no whole block begins here"):
        JournalReader(rig.journal, 0).take(1000)


def test_a_gap_is_refused_and_nothing_is_written() -> None:
    rig = grown(4)
    member = Member(rig.config)
    member.start()
    segment, first, second, *_ = JournalReader(rig.journal, 0).take(1 << 20)
    member.copy.on_item(segment)
    with pytest.raises(BlockRefused):
        member.copy.on_item(second)
    member.settle()
    assert not member.disk.files
    member.copy.on_item(first)
    member.settle()
    assert member.copy.stored == 1


def test_a_follower_goes_on_as_the_journal() -> None:
    """The takeover: no file is read again, and what the former node has beyond it is cut when it returns."""
    rig = grown()
    member = Member(rig.config)
    member.start()
    wire = Wire(rig.journal, member)
    wire.send(1 << 20)
    wire.deliver(len(wire.items) - 4)
    member.settle()
    agreed = member.copy.last
    assert 0 < agreed < rig.journal.last
    heir = Rig(rig.config)
    heir.disk, heir.schedule = member.disk, member.schedule
    heir.journal = journal = Journal(heir.disk, heir.config, heir.timers, heir.trace)
    journal.listen(heir, heir.on_failed)
    heir.disk.attach(lambda token: journal.on_committed(0, token), heir.failures.append)
    journal.take_over(member.copy.state(), None)
    journal.begin_epoch(1)
    for number in range(20):
        heir.commit(b"of the new epoch" * number)
    # The old node returns as a follower.
    old = Member(rig.config)
    old.disk, old.schedule = rig.disk, rig.schedule
    old.disk.crash()
    kept = old.start(agreed)
    assert [lsn for lsn, _, _ in kept] == list(range(1, agreed + 1))
    assert old.report.cut.blocks > 0 and old.report.epochs == [(0, 1)]
    wire = Wire(journal, old)
    wire.catch_up()
    old.crash()
    assert old.start() == heir.restart().records
    assert old.report.epochs == heir.report.epochs == [(0, 1), (1, agreed + 1)]
    assert heir.report.last == agreed + 20


def test_a_journal_of_version_7_is_streamed_as_it_is() -> None:
    rig, payloads = version_7()
    rig.start()
    member = Member(rig.config)
    member.start()
    wire = Wire(rig.journal, member)
    wire.catch_up()
    rig.commit(b"new")
    wire.catch_up()
    member.crash()
    assert [payload for _, _, payload in member.start()] == [*payloads, b"new"]


class Group:
    """A group whose answers a test gives."""

    def __init__(self) -> None:
        self.stored: list[int] = []

    def on_stored(self, now: int, lsn: int) -> None:
        self.stored.append(lsn)

    def after_flush(self, now: int) -> None:
        """It sends nothing."""

    def resign(self, now: int, why: str) -> None:
        raise AssertionError(why)


def test_nothing_counts_as_durable_and_nothing_is_deleted_before_the_group_says_so() -> None:
    table = Table(config(1024))
    table.start()
    journal = table.journal
    group = journal.group = Group()
    for key in range(40):
        table.put(key % 3, 200)
        table.rig.flush()
        table.rig.settle()
        table.compact()
    table.rig.settle()
    assert group.stored and group.stored[-1] > 40
    assert journal.durable == 0 and table.rig.durable == []
    assert journal.segments[0].number == 1
    journal.confirm(0, group.stored[-1])
    assert table.rig.durable == [group.stored[-1]]
    assert journal.segments[0].number == 2
