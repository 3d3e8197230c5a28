"""The cut of a journal's tail: what is left, what is kept aside, and power cuts in the middle of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from atalanta.ha.replication.block_stream import blocks_of
from atalanta.runtime.disk.disk import FileDisk
from atalanta.sim.world.disk import SimDisk
from atalanta.store.recovery import JournalRecovery, read_back
from atalanta.store.segment import SEGMENT_HEAD_SIZE, Segment, segment_name
from atalanta.store.tail_cut import CUT_PREFIX
from tests.store.grown_journal import grown, images
from tests.store.journal_rig import JOURNAL_ID, Collector, Rig, config
from tests.store.key_table import Table
from tests.store.version_7 import version_7


def cut(rig: Rig, lsn: int) -> list[tuple[int, int, bytes]]:
    """Starts with a cut; returns the records that are left."""
    rig.disk.crash()
    replay = Collector()
    state = read_back(rig.disk, rig.config, replay, lsn)
    rig.report = state.report
    return replay.records


def blocks(disk: SimDisk, prefix: str) -> dict[int, bytes]:
    """Returns the blocks in the files of a folder whose names begin with `prefix`, by their first lsn."""
    found = {}
    for name, content in disk.files.items():
        if name.startswith(prefix):
            number = int(name[-24:-4])
            segment = Segment(JOURNAL_ID, number, len(content), False)
            for block in blocks_of(segment, bytes(content)):
                found[block.first] = bytes(content[block.offset : block.end])
    return found


def test_a_cut_behind_every_block() -> None:
    rig, ends = grown()
    before = images(rig)
    records = rig.restart().records
    whole = blocks(rig.disk, "journal-0")
    for end in [0, *ends]:
        rig.disk.crash()
        rig.disk.files = {name: bytearray(content) for name, content in before.items()}
        replay = Collector()
        rig.disk.attach(lambda token: None, rig.failures.append)
        state = read_back(rig.disk, rig.config, replay, end)
        rig.settle()
        assert replay.records == [record for record in records if record[0] <= end]
        assert state.report.last == end
        aside = blocks(rig.disk, CUT_PREFIX)
        assert aside == {first: block for first, block in whole.items() if first > end}
        assert state.report.cut.blocks == len(aside)
        assert state.report.cut.size_bytes() == sum(map(len, aside.values()))
        assert state.report.cut.names() == [name for name in sorted(rig.disk.files) if name.startswith(CUT_PREFIX)]
        assert rig.restart().records == replay.records
        assert rig.report.torn_bytes == 0 and rig.report.cut.blocks == 0
        rig.commit(b"new")
        assert rig.restart().records == [*replay.records, (end + 1, 1, b"new")]


def test_a_cut_of_the_whole_journal_leaves_an_empty_one() -> None:
    rig, _ = grown()
    assert cut(rig, 0) == []
    rig.settle()
    assert [name for name in rig.disk.names() if not name.startswith(CUT_PREFIX)] == []


def test_the_names_say_epoch_lsn_and_segment() -> None:
    rig, ends = grown()
    cut(rig, ends[18])
    first = rig.report.cut.names()[0]
    number = int(first[-24:-4])
    assert first == f"cut-{0:010d}-{ends[18] + 1:020d}-{number:020d}.log"
    assert rig.report.cut.names()[-1].startswith(f"cut-{7:010d}-")
    assert rig.report.epochs == [(0, 1)]


def test_nothing_is_cut_behind_the_last_record_and_nothing_inside_a_block() -> None:
    rig, ends = grown()
    before = images(rig)
    assert len(cut(rig, ends[-1] + 5)) == ends[-1]
    assert rig.report.cut.blocks == 0
    rig.settle()
    assert images(rig) == before
    inside = next(end - 1 for end in ends if end - 1 not in ends and end > 1)
    with pytest.raises(ValueError, match=f"record {inside} does not end a block"):
        cut(rig, inside)
    assert images(rig) == before


def journal_of(rig: Rig) -> list[int]:
    """Returns the lsns that a recovery finds; it changes nothing."""
    replay = Collector()
    JournalRecovery(rig.disk, rig.config, replay).read()
    return [lsn for lsn, _, _ in replay.records]


@pytest.mark.parametrize("number", [0, 5, 19, 30, 39])
def test_a_power_cut_at_every_step(number: int) -> None:
    """What a crash leaves is the journal up to some block of the old tail; the next start cuts the rest."""
    rig, ends = grown()
    before = images(rig)
    whole = blocks(rig.disk, "journal-0")
    end = ends[number]
    complete = 0
    for steps in range(40):
        for seed in range(8):
            rig.disk.crash()
            rig.disk.files = {name: bytearray(content) for name, content in before.items()}
            rig.disk._random.seed(seed)
            cut(rig, end)
            done = sum(rig.schedule.step() for _ in range(steps))
            complete += done < steps
            rig.disk.crash()
            left = journal_of(rig)
            assert left == list(range(1, len(left) + 1)) and len(left) >= end
            aside = blocks(rig.disk, CUT_PREFIX)
            kept = blocks(rig.disk, "journal-0")
            assert {**aside, **kept} == whole, "no block is lost"
            replay = cut(rig, end)
            rig.settle()
            assert len(replay) == end
            assert {**aside, **blocks(rig.disk, CUT_PREFIX), **blocks(rig.disk, "journal-0")} == whole
            assert len(rig.restart().records) == end
    assert complete > 0, "some of the steps must be behind the last job"


def test_a_torn_tail_is_cut_with_the_rest() -> None:
    rig, ends = grown()
    name = rig.journal.segments[-1].name
    rig.disk.flip_bit(name, rig.journal.segments[-1].end - 2)
    records = cut(rig, ends[10])
    rig.settle()
    assert len(records) == ends[10]
    assert rig.report.torn_bytes > 0
    assert rig.restart().records == records


@pytest.mark.parametrize("length", [0, 40, 64, 500])
def test_an_incomplete_file_behind_the_cut_goes(length: int) -> None:
    rig, ends = grown()
    name = segment_name(rig.journal.segments[-1].number + 1)
    rig.disk.crash()
    rig.disk.files[name] = bytearray(length)
    records = cut(rig, ends[10])
    rig.settle()
    assert name not in rig.disk.files
    assert rig.restart().records == records


def test_a_cut_in_reused_files_and_numbers_that_come_again() -> None:
    for seed in range(30):
        draw = random.Random(seed)
        table = Table(config(4096), seed)
        table.start()
        table.work(draw, 80, 20, 300)
        table.rig.flush()
        table.rig.settle()
        table.compact()
        table.rig.settle()
        replay = table.rig.restart()
        first, last = table.rig.report.first, table.rig.report.last
        stored = blocks(table.rig.disk, "journal-0")
        ends = sorted(lsn - 1 for lsn in stored if lsn > first)
        end = draw.choice(ends)
        kept = cut(table.rig, end)
        assert kept == [record for record in replay.records if record[0] <= end]
        table.rig.settle()
        assert [each for each in table.rig.start().records] == kept
        assert last > end
        for number in range(60):
            table.rig.commit(b"again" * number)
        again = table.rig.restart().records
        assert again[: len(kept)] == kept
        assert [payload for _, _, payload in again[len(kept) :]] == [b"again" * number for number in range(60)]


def test_a_journal_of_version_7_is_cut() -> None:
    rig, payloads = version_7()
    rig.start()
    kept = cut(rig, 6)
    rig.settle()
    assert [payload for _, _, payload in kept] == payloads[:6]
    assert rig.report.cut.blocks == 12
    rig.start()
    rig.commit(b"new")
    assert rig.restart().payloads() == [*payloads[:6], b"new"]


def test_a_cut_on_a_real_disk(tmp_path: Path) -> None:
    rig, ends = grown()
    for name, content in images(rig).items():
        (tmp_path / name).write_bytes(content)
    end = ends[5]

    def nothing(*_: object) -> None:
        return None

    disk = FileDisk(tmp_path, nothing, nothing, nothing)
    assert disk.read(segment_name(1), 0, 4) == b"ATLJ"
    replay = Collector()
    state = read_back(disk, rig.config, replay, end)
    segment = state.segments[-1]
    disk.commit(segment.name, state.position, b"behind the cut", 1)
    disk.close()
    content = (tmp_path / segment.name).read_bytes()
    assert content[state.position :].rstrip(b"\0") == b"behind the cut"
    assert content[SEGMENT_HEAD_SIZE : state.position] == images(rig)[segment.name][SEGMENT_HEAD_SIZE : state.position]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted([*state.report.cut.names(), *(segment.name for segment in state.segments)])
