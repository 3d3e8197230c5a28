"""The stream of journal blocks: a follower's files are equal to those of the active node, byte for byte.

A block has a name: number of its segment, offset, length, lsns, epoch, and checksum. The checksum of a block's header
covers the journal's id and the segment number, so members of a group share the journal id, and a block fits in one
place only.

The stream has four items: the header of a segment, a block, the deletion of the oldest segments, and a jump. After a
jump the journal begins again with a later segment, because the active node has deleted those in between. What lived
there was appended again further on, so a journal that has jumped is complete when it reaches the end.

`BlockReceiver` checks what arrives and says where it is written. It accepts blocks in order: a gap, a repeat or a
damaged block is refused, and the stream begins again with an offer. ha/replication/journal_reader.py makes the
stream, ha/replication/journal_copy.py writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from atalanta.store.block import BlockError, decode_block_head, decode_records
from atalanta.store.errors import JournalDamaged, JournalForeign
from atalanta.store.segment import SEGMENT_HEAD_SIZE, Segment, decode_segment_head, segment_name


class BlockRefused(Exception):
    """A block or segment that does not continue the journal. Nothing of it was accepted."""


@dataclass(frozen=True)
class BlockName:
    """A block of `length` bytes at `offset` of segment `number`: records `first` to `last` of `epoch`.

    `checksum` is the crc32c of the records.
    """

    number: int
    offset: int
    length: int
    first: int
    last: int
    epoch: int
    checksum: int

    @property
    def end(self) -> int:
        """Returns the offset behind the block."""
        return self.offset + self.length


@dataclass(frozen=True)
class SegmentItem:
    """The header of segment `number`, a file of `size` bytes; its first block follows."""

    number: int
    size: int
    head: bytes


@dataclass(frozen=True)
class BlockItem:
    """The block at `offset` of segment `number`: header and records, up to lsn `last`."""

    number: int
    offset: int
    data: bytes
    last: int


@dataclass(frozen=True)
class DropItem:
    """The deletion of all segments before `first`: what is sent so far replaces them."""

    first: int


@dataclass(frozen=True)
class JumpItem:
    """The journal begins again with the segment that follows; all former segments go."""


StreamItem: TypeAlias = SegmentItem | BlockItem | DropItem | JumpItem


@dataclass(frozen=True)
class Write:
    """The bytes to write at `offset` of `segment`. A new file begins with offset 0."""

    segment: Segment
    offset: int
    data: bytes


def name_of(segment: Segment, offset: int, data: bytes, position: int = 0) -> BlockName | None:
    """Returns the name of the block at `position` of `data`. None if no whole block of that segment is there."""
    head = decode_block_head(segment.seal, data, position, segment.block_head_size)
    if head is None:
        return None
    start = position + segment.block_head_size
    try:
        decode_records(head, data[start : start + head.length])
    except BlockError:
        return None
    last = head.first + head.count - 1
    length = segment.block_head_size + head.length
    return BlockName(segment.number, offset, length, head.first, last, head.epoch, head.checksum)


def blocks_of(segment: Segment, data: bytes, offset: int = SEGMENT_HEAD_SIZE) -> Iterator[BlockName]:
    """Yields the blocks of a segment file with content `data`, from `offset` to the first place without a whole one."""
    while True:
        name = name_of(segment, offset, data, offset)
        if name is None:
            return
        yield name
        offset = name.end


class BlockReceiver:
    """The receiving end of a stream: the journal ends at `offset` of `segment`, with lsn `last` of `epoch`.

    Without a block there is no journal yet; it may begin with any segment, because the active node may have deleted
    the older ones.
    """

    def __init__(
        self,
        journal_id: bytes,
        segment: Segment | None = None,
        offset: int = 0,
        last: int = 0,
        epoch: int = 0,
    ) -> None:
        self.journal_id = journal_id
        self.segment = segment
        self.offset = offset
        self.last = last
        self.epoch = epoch

    def on_segment(self, item: SegmentItem) -> Write:
        """Accepts the header of the next segment file, or of the last one again while it is empty. BlockRefused."""
        number = item.number
        if self.segment is not None and self.last > 0:
            expected = self.segment.number + (self.offset > SEGMENT_HEAD_SIZE)
            if number != expected:
                raise BlockRefused(f"segment {number} where {expected} belongs")
        try:
            segment = decode_segment_head(item.head, segment_name(number), item.size, self.journal_id)
        except (JournalDamaged, JournalForeign) as error:
            raise BlockRefused(str(error)) from None
        if segment is None or len(item.head) != SEGMENT_HEAD_SIZE:
            raise BlockRefused(f"the header of segment {number} does not match its checksum or its size, {item.size}")
        self.segment = segment
        self.offset = SEGMENT_HEAD_SIZE
        return Write(segment, 0, item.head)

    def on_block(self, item: BlockItem) -> tuple[BlockName, Write]:
        """Accepts the next block: header and records. Raises BlockRefused."""
        segment = self.segment
        number = segment.number if segment is not None else 0
        here = f"the block for segment {item.number}, offset {item.offset}"
        if segment is None or item.number != number or item.offset != self.offset:
            raise BlockRefused(f"{here}, where segment {number}, offset {self.offset} belongs")
        name = name_of(segment, item.offset, item.data)
        if name is None or name.length != len(item.data):
            raise BlockRefused(f"{here} does not match its checksum")
        # The first block of a journal that begins late may have any lsn.
        if name.first != self.last + 1 and (self.last or number == 1):
            raise BlockRefused(f"record {name.first} where {self.last + 1} belongs")
        if name.epoch < self.epoch:
            raise BlockRefused(f"{here} has epoch {name.epoch}, after one of epoch {self.epoch}")
        if name.end > segment.size:
            raise BlockRefused(f"the block of record {name.first} exceeds its file of {segment.size} bytes")
        self.offset = name.end
        self.last = name.last
        self.epoch = name.epoch
        return name, Write(segment, item.offset, item.data)

    def on_jump(self) -> None:
        """Forgets the journal so far: any segment may follow."""
        self.segment = None
        self.offset = 0
        self.last = 0
