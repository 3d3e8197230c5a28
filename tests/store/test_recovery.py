"""Reading back: torn tails are cut, damage is reported with its place, nothing is lost."""

from __future__ import annotations

import pytest
from google_crc32c import value as crc32c

from atalanta.store.block import BLOCK_HEAD_SIZE
from atalanta.store.config import JournalConfig
from atalanta.store.errors import JournalDamaged, JournalForeign
from atalanta.store.journal import Journal
from atalanta.store.segment import (
    OLDEST_VERSION,
    SEGMENT_CRC,
    SEGMENT_HEAD,
    SEGMENT_HEAD_SIZE,
    SEGMENT_VERSION,
    Segment,
)
from tests.store.blocks import encode_record
from tests.store.journal_rig import FIRST, JOURNAL_ID, SECOND, Rig, config, encode_block


def two_blocks(second: list[bytes]) -> tuple[Rig, int, int]:
    """A journal of a block with `one` and a block with `second`; where that begins and ends."""
    rig = Rig()
    rig.start()
    rig.commit(b"one")
    begin = rig.end_of_first_block()
    rig.commit(*second)
    end = begin + len(bytes(rig.disk.files[FIRST][begin:]).rstrip(b"\0"))
    return rig, begin, end


def restore(rig: Rig, image: bytes) -> None:
    rig.disk.crash()
    rig.disk.files = {FIRST: bytearray(image)}


def test_an_empty_folder_is_an_empty_journal() -> None:
    rig = Rig()
    assert rig.start().records == []
    assert (rig.report.records, rig.report.last, rig.report.torn_bytes) == (0, 0, 0)


def test_kinds_payloads_and_lsns_come_back() -> None:
    rig = Rig()
    rig.start()
    rig.journal.append(0, b"")
    rig.journal.append(255, b"\0" * 100)
    rig.commit(b"ATBK")
    assert rig.restart().records == [(1, 0, b""), (2, 255, b"\0" * 100), (3, 1, b"ATBK")]
    assert (rig.report.first, rig.report.last, rig.report.blocks) == (1, 3, 1)
    assert rig.journal.append(1, b"next") == 4


def test_a_tail_torn_at_every_byte() -> None:
    rig, begin, end = two_blocks([b"two", b"three" * 3])
    whole = bytes(rig.disk.files[FIRST])
    for kept in range(begin, end):
        restore(rig, whole[:kept] + bytes(len(whole) - kept))
        assert rig.start().payloads() == [b"one"], kept
        assert rig.disk.files[FIRST][begin:].count(0) == len(whole) - begin
        rig.commit(b"new")
        assert rig.restart().payloads() == [b"one", b"new"], kept


def test_pages_that_arrive_out_of_order() -> None:
    """Every subset of the pieces of the last block, as a disk may persist them."""
    rig, begin, end = two_blocks([b"a" * 40, b"b" * 40])
    whole = bytes(rig.disk.files[FIRST])
    pieces = 7
    size = -(-(end - begin) // pieces)
    for subset in range(1 << pieces):
        image = bytearray(whole)
        for piece in range(pieces):
            if not subset >> piece & 1:
                at = begin + piece * size
                image[at : min(end, at + size)] = bytes(min(end, at + size) - at)
        restore(rig, bytes(image))
        all_there = subset == (1 << pieces) - 1
        expected = [b"one", b"a" * 40, b"b" * 40] if all_there else [b"one"]
        assert rig.start().payloads() == expected
        assert rig.report.torn_bytes == 0 if all_there or subset == 0 else rig.report.torn_bytes > 0
        rig.commit(b"n")
        assert rig.restart().payloads() == [*expected, b"n"]


def test_every_flipped_bit_before_the_last_block_is_reported() -> None:
    rig, begin, _ = two_blocks([b"two"])
    whole = bytes(rig.disk.files[FIRST])
    for offset in range(SEGMENT_HEAD_SIZE, begin):
        restore(rig, whole)
        rig.disk.flip_bit(FIRST, offset, offset % 8)
        before = bytes(rig.disk.files[FIRST])
        with pytest.raises(JournalDamaged) as caught:
            rig.start()
        assert caught.value.name == FIRST
        assert SEGMENT_HEAD_SIZE <= caught.value.offset <= offset
        assert f"record 2 follows in {FIRST}, offset {begin}" in str(caught.value)
        assert rig.disk.files[FIRST] == before, "damage must be left as it is"


def test_the_offset_is_that_of_the_bad_block() -> None:
    rig = Rig()
    rig.start()
    rig.commit(b"a" * 10, b"b" * 10)
    begin = rig.end_of_first_block()
    rig.commit(b"c" * 10)
    rig.commit(b"later")
    records = begin + BLOCK_HEAD_SIZE
    rig.disk.flip_bit(FIRST, records + 9)
    with pytest.raises(JournalDamaged, match=f"offset {records}: the block of record 3 does not match"):
        rig.restart()


def test_damage_is_found_by_a_block_in_a_later_segment() -> None:
    rig = Rig(config(4096))
    rig.start()
    rig.commit(b"x" * 3000)
    rig.commit(b"y" * 3000)
    rig.disk.flip_bit(FIRST, 500)
    with pytest.raises(JournalDamaged, match=f"record 2 follows in {SECOND}") as caught:
        rig.restart()
    assert caught.value.name == FIRST


def test_a_lost_page_in_the_middle_is_damage() -> None:
    """The header of a block became zeros, like a clean end, but a later block follows."""
    rig = Rig(config(4096))
    rig.start()
    rig.commit(b"x" * 1000)
    begin = rig.end_of_first_block()
    rig.commit(b"y" * 1000)
    rig.commit(b"z" * 100)
    image = rig.disk.files[FIRST]
    image[begin : begin + 1033] = bytes(1033)
    with pytest.raises(JournalDamaged, match="record 3 follows"):
        rig.restart()


def test_a_wiped_end_of_a_sealed_segment_is_damage() -> None:
    rig = Rig(config(4096))
    rig.start()
    rig.commit(b"x" * 1000)
    begin = rig.end_of_first_block()
    rig.commit(b"y" * 1000)
    rig.commit(b"z" * 3000)
    assert SECOND in rig.disk.names()
    rig.disk.files[FIRST][begin:] = bytes(4096 - begin)
    with pytest.raises(JournalDamaged, match="record 3 where 2 belongs"):
        rig.restart()


@pytest.mark.parametrize("place", [SEGMENT_HEAD_SIZE + 6, 500])
def test_writing_on_after_damage_of_the_former_segment_is_noticed(place: int) -> None:
    """The first segment ends in a bad block, the second holds a torn one: two commits."""
    rig = Rig(config(4096))
    rig.start()
    rig.commit(b"x" * 3000)
    rig.commit(b"y" * 3000)
    rig.disk.flip_bit(FIRST, 500)
    rig.disk.flip_bit(SECOND, place)
    with pytest.raises(JournalDamaged) as caught:
        rig.restart()
    assert caught.value.name == FIRST


@pytest.mark.parametrize("wound", ["missing", "header", "short", "renamed"])
def test_segments_that_are_not_what_they_should_be(wound: str) -> None:
    rig = Rig(config(4096))
    rig.start()
    for _ in range(4):
        rig.commit(b"x" * 3000)
    files = rig.disk.files
    if wound == "missing":
        del files[SECOND]
    elif wound == "header":
        files[SECOND][20] ^= 1
    elif wound == "short":
        del files[SECOND][2000:]
    else:
        files[FIRST], files[SECOND] = files[SECOND], files[FIRST]
    with pytest.raises(JournalDamaged) as caught:
        rig.restart()
    assert caught.value.name == (FIRST if wound == "renamed" else SECOND)


def test_the_last_segment_with_records_but_without_a_header() -> None:
    rig = Rig(config(4096))
    rig.start()
    rig.commit(b"x")
    rig.disk.files[FIRST][0] ^= 1
    with pytest.raises(JournalDamaged, match="header is not whole") as caught:
        rig.restart()
    assert caught.value.name == FIRST


@pytest.mark.parametrize("length", [0, 1, 63, 64, 100, 4095])
def test_a_segment_whose_creation_was_cut_off_is_made_anew(length: int) -> None:
    rig = Rig(config(4096))
    rig.start()
    rig.commit(b"x" * 3000)
    del rig.disk.files[SECOND][length:]
    assert rig.restart().payloads() == [b"x" * 3000]
    rig.commit(b"y" * 3000)
    assert rig.restart().payloads() == [b"x" * 3000, b"y" * 3000]


def test_the_journal_of_another_node_is_refused() -> None:
    rig = Rig()
    rig.start()
    rig.commit(b"x")
    rig.config = JournalConfig(bytes(16), segment_size_bytes=4096)
    with pytest.raises(JournalForeign, match=f"belongs to node {JOURNAL_ID.hex()}"):
        rig.restart()


@pytest.mark.parametrize("version", [OLDEST_VERSION - 1, SEGMENT_VERSION + 1])
def test_a_folder_of_another_format_version_is_refused_and_not_changed(version: int) -> None:
    rig = Rig()
    rig.start()
    rig.commit(b"x")
    head = bytearray(rig.disk.files[FIRST][:SEGMENT_HEAD_SIZE])
    head[4:6] = version.to_bytes(2, "big")
    head[SEGMENT_HEAD.size :] = SEGMENT_CRC.pack(crc32c(bytes(head[: SEGMENT_HEAD.size]))).ljust(
        SEGMENT_HEAD_SIZE - SEGMENT_HEAD.size, b"\0"
    )
    rig.disk.files[FIRST][:SEGMENT_HEAD_SIZE] = head
    before = {name: bytes(data) for name, data in rig.disk.files.items()}
    remedy = "empty its queues with the release that wrote it, then start this one with a new data folder"
    said = f"has format version {version}, this program reads {OLDEST_VERSION} to {SEGMENT_VERSION}: {remedy}$"
    with pytest.raises(JournalForeign, match=said):
        rig.restart()
    assert {name: bytes(data) for name, data in rig.disk.files.items()} == before


def test_journal_bytes_inside_a_message_are_no_blocks() -> None:
    """A body that holds blocks (another journal's, or old ones of this) and is torn: still torn."""
    foreign = encode_block(bytes(16), 900, 1, encode_record(1, b"s"))
    seal = Segment(JOURNAL_ID, 1, 4096, False).seal
    old = encode_block(seal, 1, 1, encode_record(1, b"one"))
    rig, _, end = two_blocks([foreign + old + b"tail"])
    rig.disk.flip_bit(FIRST, end - 1)
    assert rig.restart().payloads() == [b"one"]


def test_files_of_others_are_left_alone() -> None:
    rig = Rig()
    rig.disk.files["notes.txt"] = bytearray(b"mine")
    rig.disk.files["journal-1.log"] = bytearray(b"short")
    rig.start()
    rig.commit(b"x")
    assert rig.restart().payloads() == [b"x"]
    assert rig.disk.files["notes.txt"] == b"mine"


def test_reading_in_small_pieces_gives_the_same() -> None:
    payloads = [bytes([index]) * (index * 7 % 300) for index in range(150)]
    rig = Rig(config(4096))
    rig.start()
    for index in range(0, 150, 3):
        rig.commit(*payloads[index : index + 3])
    rig.config = config(4096, read_size_bytes=64)
    assert rig.restart().payloads() == payloads


def test_what_the_replay_raises_ends_the_recovery() -> None:
    rig = Rig()
    rig.start()
    rig.commit(b"x")

    class Refusing:
        def on_record(self, lsn: int, kind: int, payload: bytes) -> None:
            raise LookupError(f"record {lsn}")

    with pytest.raises(LookupError, match="record 1"):
        Journal(rig.disk, rig.config, rig.timers, rig.trace).recover(Refusing())
