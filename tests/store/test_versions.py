"""Epochs in the heads of blocks (format version 8), and folders of version 7: read, and gone on with."""

from __future__ import annotations

import pytest

from atalanta.store.block import BLOCK_HEAD_SIZE_7
from atalanta.store.errors import JournalDamaged
from atalanta.store.segment import SEGMENT_HEAD_SIZE, decode_segment_head, segment_name
from tests.store.blocks import encode_record
from tests.store.journal_rig import FIRST, JOURNAL_ID, SECOND, Rig, config, encode_block
from tests.store.version_7 import version_7

THIRD = segment_name(3)


def versions(rig: Rig) -> list[int]:
    """Returns the format version of each file of the journal."""
    found = []
    for name in rig.disk.names():
        segment = decode_segment_head(
            rig.disk.read(name, 0, SEGMENT_HEAD_SIZE), name, rig.disk.size(name), JOURNAL_ID
        )
        assert segment is not None
        found.append(segment.version)
    return found


def test_a_folder_of_version_7_is_read_and_gone_on_with() -> None:
    rig, payloads = version_7()
    assert rig.start().payloads() == payloads
    rig.settle()
    assert versions(rig) == [7, 7, 7], "a start alone changes nothing"
    rig.commit(b"new")
    assert versions(rig) == [7, 7, 8]
    replay = rig.restart()
    assert replay.payloads() == [*payloads, b"new"]
    assert [lsn for lsn, _, _ in replay.records] == list(range(1, len(payloads) + 2))
    rig.journal.begin_epoch(3)
    rig.commit(b"third epoch")
    assert rig.restart().payloads() == [*payloads, b"new", b"third epoch"]
    assert rig.report.epochs == [(0, 1), (3, len(payloads) + 2)]


@pytest.mark.parametrize("steps", range(4))
@pytest.mark.parametrize("seed", range(10))
def test_a_crash_at_the_change_of_the_version(steps: int, seed: int) -> None:
    rig, payloads = version_7()
    rig.disk._random.seed(seed)
    rig.start()
    rig.append(b"new")
    rig.flush()
    for _ in range(steps):
        rig.schedule.step()
    replay = rig.restart()
    assert replay.payloads() in (payloads, [*payloads, b"new"])
    rig.commit(b"newer")
    assert rig.restart().payloads() == [*replay.payloads(), b"newer"]


def test_the_torn_tail_of_version_7_is_cut() -> None:
    rig, payloads = version_7()
    end = len(bytes(rig.disk.files[SECOND]).rstrip(b"\0"))
    rig.disk.flip_bit(SECOND, end - 1)
    assert rig.start().payloads() == payloads[:-3]
    assert rig.report.torn_bytes > 0 and rig.report.torn_at.startswith(SECOND)
    rig.commit(b"new")
    assert rig.restart().payloads() == [*payloads[:-3], b"new"]


def test_damage_in_a_file_of_version_7_is_named() -> None:
    rig, _ = version_7()
    rig.disk.flip_bit(FIRST, SEGMENT_HEAD_SIZE + BLOCK_HEAD_SIZE_7 + 9)
    with pytest.raises(JournalDamaged, match="block of record 1 does not match") as caught:
        rig.start()
    assert caught.value.name == FIRST


def test_an_empty_folder_of_version_7_begins_again_in_version_8() -> None:
    rig, _ = version_7()
    third = rig.disk.files[THIRD]
    rig = Rig(config(4096))
    rig.disk.files[THIRD] = third
    with pytest.raises(JournalDamaged, match="earlier segments are gone"):
        rig.start()
    full, _ = version_7()
    rig = Rig(config(4096))
    rig.disk.files[FIRST] = bytearray(bytes(full.disk.files[FIRST][:SEGMENT_HEAD_SIZE]).ljust(4096, b"\0"))
    assert rig.start().records == []
    rig.commit(b"first")
    assert versions(rig)[0] == 8
    assert rig.restart().payloads() == [b"first"]


def test_the_epoch_table_is_that_of_the_blocks() -> None:
    rig = Rig(config(1024))
    rig.start()
    assert rig.report.epochs == []
    rig.commit(b"zero")
    for epoch in (1, 2, 9):
        rig.journal.begin_epoch(epoch)
        rig.commit(b"a" * 300)
        rig.commit(b"b" * 300, b"c" * 300)
    rig.restart()
    assert rig.report.epochs == [(0, 1), (1, 2), (2, 5), (9, 8)]
    rig.commit(b"the epoch of the last block goes on")
    rig.restart()
    assert rig.report.epochs[-1] == (9, 8)
    for epoch in (0, 8, 9, 1 << 32):
        with pytest.raises(ValueError, match=f"epoch {epoch} after epoch 9"):
            rig.journal.begin_epoch(epoch)


def test_an_epoch_does_not_begin_among_waiting_records() -> None:
    rig = Rig()
    rig.start()
    rig.append(b"waiting")
    with pytest.raises(RuntimeError, match="between two blocks"):
        rig.journal.begin_epoch(1)
    rig.flush()
    rig.settle()
    rig.journal.begin_epoch(1)


def test_a_block_of_a_lower_epoch_after_a_higher_one_is_refused() -> None:
    rig = Rig()
    rig.start()
    rig.journal.begin_epoch(5)
    rig.commit(b"one")
    end = rig.end_of_first_block()
    seal = rig.journal.segments[0].seal
    late = encode_block(seal, 2, 1, encode_record(1, b"late"), 4)
    rig.disk.crash()
    rig.disk.files[FIRST][end : end + len(late)] = late
    before = bytes(rig.disk.files[FIRST])
    with pytest.raises(JournalDamaged, match="the block of record 2 has epoch 4, after one of epoch 5") as caught:
        rig.start()
    assert (caught.value.name, caught.value.offset) == (FIRST, end)
    assert rig.disk.files[FIRST] == before
