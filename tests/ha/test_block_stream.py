"""The stream of blocks: what a real journal has written arrives byte for byte, and nothing else is accepted."""

from __future__ import annotations

import pytest

from atalanta.ha.replication.block_stream import (
    BlockItem,
    BlockName,
    BlockReceiver,
    BlockRefused,
    SegmentItem,
    Write,
    blocks_of,
)
from atalanta.store.block import BLOCK_HEAD_SIZE
from atalanta.store.segment import SEGMENT_HEAD_SIZE, Segment, segment_number
from tests.store.journal_rig import JOURNAL_ID, Rig, config

SEGMENT_BYTES = 1024


def written(count: int = 40) -> Rig:
    """Returns a journal with some segments, a few records in each block."""
    rig = Rig(config(SEGMENT_BYTES))
    rig.start()
    for number in range(count):
        rig.commit(*[f"record {number}.{part}".encode() * 3 for part in range(1 + number % 3)])
    return rig


def files(rig: Rig) -> list[tuple[int, bytes]]:
    """Returns the segments of a journal: number and content."""
    names = [segment.name for segment in rig.journal.segments]
    return [(segment_number(name), rig.disk.read(name, 0, rig.disk.size(name))) for name in names]


def names(number: int, content: bytes) -> list[BlockName]:
    return list(blocks_of(Segment(JOURNAL_ID, number, len(content), False), content))


def blocks(number: int, content: bytes) -> list[tuple[BlockName, BlockItem]]:
    return [(name, part(name, content[name.offset : name.end])) for name in names(number, content)]


def part(name: BlockName, data: bytes) -> BlockItem:
    return BlockItem(name.number, name.offset, data, name.last)


def head(number: int, content: bytes) -> SegmentItem:
    return SegmentItem(number, len(content), content[:SEGMENT_HEAD_SIZE])


class Copy:
    """The files that a receiver has written."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}

    def write(self, write: Write) -> None:
        content = self.files.setdefault(write.segment.name, bytearray(write.segment.size))
        content[write.offset : write.offset + len(write.data)] = write.data


def copy_of(rig: Rig, first_segment: int = 1) -> tuple[Copy, BlockReceiver]:
    """Streams a journal, from a segment on, to an empty member."""
    copy, receiver = Copy(), BlockReceiver(JOURNAL_ID)
    for number, content in files(rig):
        if number < first_segment:
            continue
        copy.write(receiver.on_segment(head(number, content)))
        for name, data in blocks(number, content):
            accepted, write = receiver.on_block(data)
            assert accepted == name
            copy.write(write)
    return copy, receiver


def recovered(copy: Copy) -> list[tuple[int, int, bytes]]:
    """Returns the records that a node finds in the copied folder."""
    rig = Rig(config(SEGMENT_BYTES))
    for name, content in copy.files.items():
        rig.disk.create(name, len(content), bytes(content))
    rig.settle()
    return rig.start().records


def test_a_streamed_journal_is_equal_byte_for_byte() -> None:
    rig = written()
    copy, receiver = copy_of(rig)
    assert len(copy.files) > 3
    assert sorted(copy.files.values()) == sorted(content for _, content in files(rig))
    assert receiver.last == rig.journal.last
    assert recovered(copy) == rig.restart().records


def test_the_names_of_the_blocks_have_every_record_once() -> None:
    rig = written()
    following = 1
    for number, content in files(rig):
        offset = SEGMENT_HEAD_SIZE
        for name in names(number, content):
            assert (name.number, name.offset, name.first) == (number, offset, following)
            offset, following = name.end, name.last + 1
    assert following == rig.journal.last + 1


def test_a_journal_whose_first_segments_are_gone_begins_later() -> None:
    rig = written()
    copy, receiver = copy_of(rig, first_segment=3)
    assert receiver.last == rig.journal.last
    records = recovered(copy)
    assert records == [record for record in rig.restart().records if record[0] >= records[0][0]]
    assert records[0][0] > 1


def test_a_member_goes_on_where_its_journal_ends() -> None:
    rig = written(10)
    copy, receiver = copy_of(rig)
    again = BlockReceiver(JOURNAL_ID, receiver.segment, receiver.offset, receiver.last)
    rig.commit(b"one more")
    number, content = files(rig)[-1]
    _, data = blocks(number, content)[-1]
    if receiver.segment is None or number != receiver.segment.number:
        copy.write(again.on_segment(head(number, content)))
    copy.write(again.on_block(data)[1])
    assert recovered(copy)[-1][2] == b"one more"


def test_gaps_repeats_and_other_places_are_refused() -> None:
    rig = written()
    (number, content), (second, other), *_ = files(rig)
    (one, data), (two, more), *_ = blocks(number, content)
    receiver = BlockReceiver(JOURNAL_ID)
    with pytest.raises(BlockRefused, match="where segment 0, offset 0 belongs"):
        receiver.on_block(data)
    receiver.on_segment(head(number, content))
    receiver.on_segment(head(number, content))  # again, while it is empty
    with pytest.raises(BlockRefused, match=f"offset {two.offset}, where segment 1, offset 64 belongs"):
        receiver.on_block(more)
    with pytest.raises(BlockRefused, match=f"record {two.first} where 1 belongs"):
        receiver.on_block(part(one, more.data))
    receiver.on_block(data)
    with pytest.raises(BlockRefused, match="offset 64, where"):
        receiver.on_block(data)
    with pytest.raises(BlockRefused, match="segment 3 where 2 belongs"):
        receiver.on_segment(head(3, files(rig)[2][1]))
    with pytest.raises(BlockRefused, match="segment 1 where 2 belongs"):
        receiver.on_segment(head(number, content))
    # A segment was skipped in the middle: its records are missing.
    receiver.on_segment(head(second, other))
    name, late = blocks(second, other)[0]
    with pytest.raises(BlockRefused, match=f"record {name.first} where {one.last + 1} belongs"):
        receiver.on_block(late)


def test_a_block_of_a_lower_epoch_is_refused() -> None:
    rig = written(3)
    number, content = files(rig)[0]
    receiver = BlockReceiver(JOURNAL_ID, epoch=1)
    receiver.on_segment(head(number, content))
    with pytest.raises(BlockRefused, match="has epoch 0, after one of epoch 1"):
        receiver.on_block(blocks(number, content)[0][1])


def test_every_flipped_bit_of_a_block_is_refused() -> None:
    rig = written(3)
    number, content = files(rig)[0]
    name, block = blocks(number, content)[0]
    receiver = BlockReceiver(JOURNAL_ID)
    receiver.on_segment(head(number, content))
    data = block.data
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 4
        with pytest.raises(BlockRefused):
            receiver.on_block(part(name, bytes(damaged)))
    for cut in (data[:-1], data + b"\0", data[:BLOCK_HEAD_SIZE], b""):
        with pytest.raises(BlockRefused, match="checksum"):
            receiver.on_block(part(name, cut))
    assert receiver.on_block(block)[0] == name


def test_segments_of_other_journals_and_damaged_headers_are_refused() -> None:
    rig = written(3)
    number, content = files(rig)[0]
    whole = head(number, content)
    with pytest.raises(BlockRefused, match="belongs to node"):
        BlockReceiver(bytes(16)).on_segment(whole)
    with pytest.raises(BlockRefused, match="a renamed file"):
        BlockReceiver(JOURNAL_ID).on_segment(SegmentItem(2, whole.size, whole.head))
    for wrong_head, size in (
        (b"\1" + whole.head[1:], whole.size), (whole.head, whole.size - 1), (whole.head[:60], whole.size),
    ):  # fmt: skip
        with pytest.raises(BlockRefused, match="checksum or its size"):
            BlockReceiver(JOURNAL_ID).on_segment(SegmentItem(number, size, wrong_head))
