"""The stream of journal blocks: a follower's files are equal to those of the active node, byte for byte.

A block has a name: number of its segment, offset, length, lsns, and checksum. The checksum of a block's header
covers the journal's id and the segment number, so members of a group share the journal id, and a block fits in one
place only.

`blocks_of` finds the blocks of a segment, to send them. `BlockReceiver` checks what arrives and says where it is
written. It accepts blocks in order: a gap, a repeat or a damaged block is refused, and the stream begins again with
an offer (replication.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from atalanta.store.block import BLOCK_HEAD_SIZE, BlockError, decode_block_head, decode_records
from atalanta.store.errors import JournalDamaged, JournalForeign
from atalanta.store.segment import SEGMENT_HEAD_SIZE, check_segment_head, segment_name


class BlockRefused(Exception):
    """A block or segment that does not continue the journal. Nothing of it was accepted."""


@dataclass(frozen=True)
class BlockName:
    """A block of `length` bytes at `offset` of segment `number`: records `first` to `last`, crc32c `checksum`."""

    number: int
    offset: int
    length: int
    first: int
    last: int
    checksum: int

    @property
    def end(self) -> int:
        """Returns the offset behind the block."""
        return self.offset + self.length


@dataclass(frozen=True)
class Write:
    """The bytes to write at `offset` of the journal file `name` of `size` bytes. A new file begins with offset 0."""

    name: str
    size: int
    offset: int
    data: bytes


def name_of(journal_id: bytes, number: int, offset: int, data: bytes, position: int = 0) -> BlockName | None:
    """Returns the name of the block at `position` of `data`. None if no whole block of that segment is there."""
    head = decode_block_head(journal_id + number.to_bytes(8, "big"), data, position)
    if head is None:
        return None
    start = position + BLOCK_HEAD_SIZE
    try:
        decode_records(head, data[start : start + head.length])
    except BlockError:
        return None
    last = head.first + head.count - 1
    return BlockName(number, offset, BLOCK_HEAD_SIZE + head.length, head.first, last, head.checksum)


def blocks_of(journal_id: bytes, number: int, data: bytes, offset: int = SEGMENT_HEAD_SIZE) -> Iterator[BlockName]:
    """Yields the blocks of a segment file with content `data`, from `offset` to the first place without a whole one."""
    while True:
        name = name_of(journal_id, number, offset, data, offset)
        if name is None:
            return
        yield name
        offset = name.end


class BlockReceiver:
    """The receiving end of a stream: the journal ends at `offset` of segment `number`, with lsn `last`.

    With number 0 there is no journal yet; it may begin with any segment, because the active node may have deleted the
    older ones.
    """

    def __init__(self, journal_id: bytes, number: int = 0, size: int = 0, offset: int = 0, last: int = 0) -> None:
        """`size`: of the segment's file, in bytes."""
        self.journal_id = journal_id
        self.number = number
        self.size = size
        self.offset = offset
        self.last = last

    def on_segment(self, number: int, size: int, head: bytes) -> Write:
        """Accepts the header of the next segment file, of `size` bytes. Raises BlockRefused."""
        if self.number and number != self.number + 1:
            raise BlockRefused(f"segment {number} where {self.number + 1} belongs")
        name = segment_name(number)
        try:
            whole = check_segment_head(head, name, size, self.journal_id)
        except (JournalDamaged, JournalForeign) as error:
            raise BlockRefused(str(error)) from None
        if not whole or len(head) != SEGMENT_HEAD_SIZE:
            raise BlockRefused(f"the header of segment {number} does not match its checksum or its size, {size}")
        self.number = number
        self.size = size
        self.offset = SEGMENT_HEAD_SIZE
        return Write(name, size, 0, head)

    def on_block(self, number: int, offset: int, data: bytes) -> tuple[BlockName, Write]:
        """Accepts the next block: `data` is its header and its records. Raises BlockRefused."""
        if number != self.number or offset != self.offset:
            expected = f"segment {self.number}, offset {self.offset}"
            raise BlockRefused(f"a block for segment {number}, offset {offset}, where {expected} belongs")
        name = name_of(self.journal_id, number, offset, data)
        if name is None or name.length != len(data):
            raise BlockRefused(f"the block for segment {number}, offset {offset} does not match its checksum")
        # The first block of a journal that begins late may have any lsn.
        if name.first != self.last + 1 and (self.last or number == 1):
            raise BlockRefused(f"record {name.first} where {self.last + 1} belongs")
        if name.end > self.size:
            raise BlockRefused(f"the block of record {name.first} exceeds its file of {self.size} bytes")
        self.offset = name.end
        self.last = name.last
        return name, Write(segment_name(number), self.size, offset, data)
