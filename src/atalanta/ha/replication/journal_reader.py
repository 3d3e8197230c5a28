"""The reader of a journal for one follower: the items of the stream (block_stream.py), from an lsn on.

It reads sealed segments, oldest first, and then the growing one, while the journal goes on. The block that is being
written comes from memory, so it leaves before the own disk has it. All others are read from the disk, in steps of
about the size that the caller asks for.

If the compaction overtakes the reader, the stream jumps to the oldest segment that is left. This cannot happen for a
follower whose answers are required: the compaction waits for them (Journal.confirm).
"""

from __future__ import annotations

from atalanta.ha.replication.block_stream import (
    BlockItem,
    DropItem,
    JumpItem,
    SegmentItem,
    StreamItem,
)
from atalanta.store.block import BlockHead, decode_block_head
from atalanta.store.errors import JournalDamaged
from atalanta.store.file_window import FileWindow
from atalanta.store.journal import Journal
from atalanta.store.segment import SEGMENT_HEAD_SIZE, Segment


class JournalReader:
    """The journal behind lsn `last`, which is the last one that the follower has; 0 for a follower without a journal.

    ValueError if `last` is not the end of a block: then the journals differ, or the follower must cut its own first.
    Raises OSError and JournalDamaged.
    """

    def __init__(self, journal: Journal, last: int) -> None:
        self.last = last
        self._journal = journal
        self._disk = journal.disk
        # The block to send next is at this place.
        self._segment = journal.segments[0]
        self._offset = SEGMENT_HEAD_SIZE
        self._opened = False  # the header of the segment was sent
        self._jumps = False  # the first item is a jump
        # The follower may have segments before this one; they can go when `last` is `_drop_at`, if that is not 0.
        self._first = 0
        self._drop_first = 0
        self._drop_at = 0
        if last > 0:
            self._seek()

    # --- the first block ----------------------------------------------------------------------------------

    def _seek(self) -> None:
        """Finds the place behind record `last`."""
        journal = self._journal
        if self.last > journal.written_lsn():
            raise ValueError(f"record {self.last} is not there: the last one is {journal.written_lsn()}")
        flight = journal.block_in_flight
        if flight is not None and flight.first <= self.last:
            if flight.last != self.last:
                raise ValueError(f"record {self.last} does not end a block")
            self._segment = flight.segment
            self._offset = flight.segment.end
            self._opened = True
            return
        first = 0  # of the oldest record that is left
        for segment in reversed(journal.segments):
            head = self._head_at(segment, SEGMENT_HEAD_SIZE)
            if head is not None:
                first = head.first
                if first <= self.last:
                    self._seek_in(segment)
                    return
        self._jumps = first != self.last + 1

    def _seek_in(self, segment: Segment) -> None:
        window = FileWindow(self._disk, segment.name, self._journal.config.read_size_bytes)
        size = segment.block_head_size
        offset = SEGMENT_HEAD_SIZE
        end = self._end(segment)
        while offset < end:
            head = decode_block_head(segment.seal, window.get(offset, size), 0, size)
            if head is None:
                raise JournalDamaged(segment.name, offset, "no block begins here")
            offset += size + head.length
            last = head.first + head.count - 1
            if last == self.last:
                self._segment = segment
                self._offset = offset
                self._opened = True
                return
            if last > self.last:
                break
        raise ValueError(f"record {self.last} does not end a block")

    def _head_at(self, segment: Segment, offset: int) -> BlockHead | None:
        """Returns the header of the block at `offset`; None if no block is on the disk there."""
        if offset >= self._end(segment):
            return None
        size = segment.block_head_size
        head = decode_block_head(segment.seal, self._disk.read(segment.name, offset, size), 0, size)
        if head is None:
            raise JournalDamaged(segment.name, offset, "no block begins here")
        return head

    def _end(self, segment: Segment) -> int:
        """Returns the end of the blocks of a segment that are on the disk."""
        flight = self._journal.block_in_flight
        if flight is not None and flight.segment is segment:
            return flight.offset
        return segment.end

    # --- the stream ---------------------------------------------------------------------------------------

    def take(self, size_bytes: int) -> list[StreamItem]:
        """Returns the next items: about `size_bytes`, at least one block. An empty list: nothing is left to send."""
        items: list[StreamItem] = []
        if self._journal.failed is not None:
            return items
        left = size_bytes
        while left > 0 and self._to_next_block(items):
            left -= self._read(items, left)
        self._drop(items)
        return items

    def _to_next_block(self, items: list[StreamItem]) -> bool:
        """Goes on to the segment with the next block. Returns False if there is none yet."""
        segments = self._journal.segments
        first = segments[0].number
        while True:
            if self._jumps or self._overtaken(first):
                self._jumps = False
                self._go_to(segments[0])
                self.last = 0
                self._drop_at = 0
                self._first = first
                items.append(JumpItem())
            if not self._opened:
                # An empty segment may have been replaced by a larger one of its number.
                self._segment = segments[self._segment.number - first]
            if self._offset < self._segment.end:
                return True
            following = self._segment.number - first + 1
            if following >= len(segments):
                return False
            self._go_to(segments[following])

    def _overtaken(self, first: int) -> bool:
        """Returns whether a segment with blocks that were not sent is gone."""
        following = 1 if self._opened and self._offset >= self._segment.end else 0
        return self._segment.number + following < first

    def _go_to(self, segment: Segment) -> None:
        self._segment = segment
        self._offset = SEGMENT_HEAD_SIZE
        self._opened = False

    def _read(self, items: list[StreamItem], size_bytes: int) -> int:
        """Reads blocks of the current segment. Returns their size: more than `size_bytes` for a large first one."""
        segment = self._segment
        if not self._opened:
            self._opened = True
            items.append(SegmentItem(segment.number, segment.size, segment.head()))
        flight = self._journal.block_in_flight
        if flight is not None and flight.segment is segment and flight.offset == self._offset:
            self._add(items, flight.head + flight.records, flight.last)
            return len(flight.head) + len(flight.records)
        room = self._end(segment) - self._offset
        data = self._disk.read(segment.name, self._offset, min(room, max(size_bytes, segment.block_head_size)))
        position = 0
        while position < len(data):
            head = decode_block_head(segment.seal, data, position, segment.block_head_size)
            size = segment.block_head_size + head.length if head is not None else 0
            if position > 0 and (head is None or position + size > len(data)):
                break  # the next step reads it
            if head is not None and size > len(data):
                data = self._disk.read(segment.name, self._offset, size)
            block = data[position : position + size]
            if head is None or not head.matches(block[segment.block_head_size :]):
                raise JournalDamaged(segment.name, self._offset, "no whole block begins here")
            self._add(items, block, head.first + head.count - 1)
            position += size
        return position

    def _add(self, items: list[StreamItem], block: bytes, last: int) -> None:
        items.append(BlockItem(self._segment.number, self._offset, block, last))
        self._offset += len(block)
        self.last = last

    def _drop(self, items: list[StreamItem]) -> None:
        """Tells the follower which segments it can delete: it has what replaces them."""
        if self._drop_at == 0:
            first = self._journal.segments[0].number
            if first > self._first and self._journal.durable > 0:
                self._drop_first = first
                self._drop_at = self._journal.durable
        if 0 < self._drop_at <= self.last:
            self._drop_at = 0
            self._first = self._drop_first
            items.append(DropItem(self._first))
