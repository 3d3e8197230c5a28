"""The replay of a journal's copy while it grows, so that a takeover does not read the journal.

It reads what is durable from the disk: blocks that were stored a moment ago are in the page cache. So nothing waits in
memory, and a follower that has just started reads its journal in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.store.block import BlockError, decode_block_head, decode_records
from atalanta.store.errors import JournalDamaged
from atalanta.store.segment import SEGMENT_HEAD_SIZE, Segment

if TYPE_CHECKING:
    from atalanta.ha.replication.journal_copy import JournalCopy
    from atalanta.kernel.ports import Disk
    from atalanta.store.ports import GrowingReplay
    from atalanta.store.recovery_report import RecoveredState

# Of one step: about two milliseconds of small messages.
STEP_BYTES: Final = 128 << 10
REST_BYTES: Final = 4 << 20  # of one read when everything is replayed at once


class CopyReplay:
    """The replay of one copy, from its oldest record on. `last` is the lsn of the last record that was replayed.

    Methods raise JournalDamaged, OSError and the errors of the replay: then it cannot be used any more.
    """

    def __init__(self, copy: JournalCopy, replay: GrowingReplay) -> None:
        self.last = 0
        self.records = 0
        self._copy = copy
        self._replay = replay
        self._segment: Segment | None = None
        self._offset = SEGMENT_HEAD_SIZE  # of the next block
        self._firsts: dict[int, int] = {}  # the lsn of the first record, by segment number
        self._oldest = 0  # the number of the oldest segment, as it is known here
        self._dropped_at = 0  # what replaces the deleted segments ends at this lsn, if that is not 0

    def has_work(self) -> bool:
        """Returns whether durable records are left."""
        copy = self._copy
        if self._segment is None and (not copy.segments or copy.segments[0].first > copy.stored):
            return False  # what is durable was deleted meanwhile
        return self.last < copy.stored

    def overtaken(self) -> bool:
        """Returns whether a segment is gone that was not replayed: another replay must begin."""
        segment, segments = self._segment, self._copy.segments
        if segment is None or not segments:
            return False
        following = 1 if self._offset >= segment.end else 0
        return segment.number + following < segments[0].number

    def follow(self, copy: JournalCopy) -> bool:
        """Goes on with another copy of the same journal, whose tail was cut. False if cut records were replayed."""
        if self.last > copy.stored:
            return False
        self._copy = copy
        segment = self._segment
        if segment is not None:
            self._segment = next((each for each in copy.segments if each.number == segment.number), None)
        return self._segment is not None or self.last == 0

    def step(self) -> None:
        """Replays the next records, about `STEP_BYTES` of them."""
        self._step(self._copy.disk, STEP_BYTES)

    def complete(self, disk: Disk) -> RecoveredState:
        """Replays what is left, and returns the state that a journal on `disk` goes on with (Journal.take_over)."""
        while self.has_work():
            self._step(disk, REST_BYTES)
        state = self._copy.state()
        state.report.records = self.records
        if state.segments:
            state.report.first_segment = state.segments[0].number
        return state

    def _step(self, disk: Disk, size_bytes: int) -> None:
        segment = self._next_segment()
        head_size = segment.block_head_size
        data = disk.read(segment.name, self._offset, min(size_bytes, segment.end - self._offset))
        position = 0
        while self.has_work() and position < len(data):
            head = decode_block_head(segment.seal, data, position, head_size)
            end = position + head_size + (head.length if head is not None else 0)
            if position > 0 and (head is None or end > len(data)):
                break  # the next step reads it
            if head is not None and end > len(data):
                data = disk.read(segment.name, self._offset, end)
            if head is None or (self.last > 0 and head.first != self.last + 1):
                raise JournalDamaged(segment.name, self._offset, f"the block of record {self.last + 1} is not there")
            try:
                found = decode_records(head, data[position + head_size : end])
            except BlockError as error:
                raise JournalDamaged(segment.name, self._offset, error.why) from error
            self._firsts.setdefault(segment.number, head.first)
            for record in found:
                self._replay.on_record(record.lsn, record.kind, record.payload)
            self.records += len(found)
            self.last = head.first + head.count - 1
            self._offset += end - position
            position = end
        self._replay.settle()
        self._forget()

    def _next_segment(self) -> Segment:
        """Returns the segment with the next block, which is durable."""
        segments = self._copy.segments
        segment = self._segment
        if segment is None:
            segment = segments[0]
        elif self._offset >= segment.end:
            segment = segments[segment.number + 1 - segments[0].number]
            self._offset = SEGMENT_HEAD_SIZE
        self._segment = segment
        return segment

    def _forget(self) -> None:
        """Lets the replay forget the records of deleted segments, as soon as it has what replaces them."""
        first = self._copy.segments[0].number
        if first > self._oldest:
            if self._oldest > 0:
                self._dropped_at = self._copy.last
            self._oldest = first
        if 0 < self._dropped_at <= self.last:
            self._dropped_at = 0
            for number in [number for number in self._firsts if number < first]:
                del self._firsts[number]
            self._replay.forget_before(self._firsts.get(first, self.last + 1))
