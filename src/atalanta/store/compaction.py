"""Compaction of the journal: live records of the oldest segment are appended again, then the segment is deleted.

A segment is deleted only when everything appended up to the end of its compaction is durable. This covers the
relocated records and the records that made the other records dead. Segments are deleted strictly in order. So
the record of a deletion is never lost before the record that it deletes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.ports import Disk
from atalanta.store.block import (
    BlockError,
    BlockHead,
    Record,
    decode_block_head,
    decode_records,
)
from atalanta.store.errors import JournalDamaged
from atalanta.store.file_window import FileWindow
from atalanta.store.segment import SEGMENT_HEAD_SIZE, Segment

if TYPE_CHECKING:
    from atalanta.store.journal import Journal


# Above the maximum of compact_percentage, so that a correct `live_bytes` does not stay above it for long.
NEARLY_ALL_PERCENTAGE: Final = 85


class SegmentCursor:
    """Reads the records of a sealed segment step by step. Holds one block in memory."""

    def __init__(self, disk: Disk, segment: Segment, step_bytes: int) -> None:
        self.finished = False
        self._window = FileWindow(disk, segment.name, step_bytes)
        self._segment = segment
        self._position = SEGMENT_HEAD_SIZE
        self._records: list[Record] = []
        self._next = 0

    def take(self, step_bytes: int) -> list[Record]:
        """Returns the records of the next `step_bytes`: at least one, unless `finished` becomes true.

        Raises JournalDamaged or OSError.
        """
        taken: list[Record] = []
        left = step_bytes
        while left > 0:
            if self._next == len(self._records):
                self._read_block()
                if self.finished:
                    break
                left -= self._segment.block_head_size
            record = self._records[self._next]
            self._next += 1
            left -= record.size
            taken.append(record)
        return taken

    def _read_block(self) -> None:
        """Reads the next block; sets `finished` at the end of the segment."""
        window = self._window
        segment = self._segment
        head_size = segment.block_head_size
        self._records = []
        self._next = 0
        if self._position >= segment.end:
            self.finished = True
            return
        data = window.get(self._position, head_size)
        head: BlockHead | None = decode_block_head(segment.seal, data, 0, head_size)
        if head is None:
            raise JournalDamaged(window.name, self._position, "no block begins here")
        start = self._position + head_size
        if start + head.length > segment.end:
            raise JournalDamaged(window.name, self._position, "a block exceeds its file")
        try:
            self._records = decode_records(head, window.get(start, head.length))
        except BlockError as error:
            raise JournalDamaged(window.name, start + error.offset, error.why) from error
        self._position = start + head.length


class Compaction:
    """Decides when to compact and compacts step by step."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._cursor: SegmentCursor | None = None
        # The oldest segment is deleted when this lsn is durable; 0 = none.
        self._barrier = 0
        # A pass covers all segments that exist when it begins; see `_end_of_pass`. Number of the last one, 0 = no
        # pass.
        self._pass_end = 0
        self._cleaned_bytes = 0
        self._relocated_bytes = 0
        # Bytes committed for other users than the compaction, at the time of the last step.
        self._seen_bytes = 0
        self._resume_above_bytes = 0

    def has_work(self) -> bool:
        """Returns whether `step` has work: a segment half compacted, or too large a share of dead records."""
        journal = self._journal
        if self._cursor is not None:
            return True
        live_records = journal.live_records
        if self._barrier != 0 or live_records is None or len(journal.segments) < 2:
            return False
        config = journal.config
        total = journal.total_bytes
        if journal.no_room and live_records.live_bytes() * 2 < total:
            return True  # the disk is full, whatever the journal's own limits say
        if total <= config.compact_min_segments * config.segment_size_bytes:
            return False
        if total <= self._resume_above_bytes:
            return False
        return live_records.live_bytes() * 100 < total * config.compact_percentage

    def step(self, now: int) -> bool:
        """Relocates the live records of the next bytes. Returns whether more of the compaction is left."""
        journal = self._journal
        live_records = journal.live_records
        if live_records is None:
            return False
        cursor = self._cursor
        if cursor is None:
            self._begin_pass()
            oldest = journal.segments[0]
            live_records.before_compaction(now, oldest.number + 1)
            if oldest.others == 0 and oldest.plain == 0:
                # No record of the segment is alive: no need to read it. Usual where messages are soon consumed.
                self._barrier = journal.last
                self.on_durable()
                return self.has_work()
            cursor = self._begin()
        appended_bytes = journal.waiting.appended_bytes
        for record in cursor.take(self._step_bytes()):
            live_records.relocate(record.lsn, record.kind, record.payload)
        self._relocated_bytes += journal.waiting.appended_bytes - appended_bytes
        if not cursor.finished:
            return True
        self._cursor = None
        self._barrier = journal.last
        self.on_durable()
        return self.has_work()

    def on_durable(self) -> None:
        """Deletes the compacted segment once all its live records are durable elsewhere."""
        journal = self._journal
        if self._barrier != 0 and journal.durable >= self._barrier:
            self._barrier = 0
            self._cleaned_bytes += journal.segments[0].size
            journal.drop_oldest()
            if journal.segments[0].number >= self._pass_end:
                self._end_of_pass()

    def _begin_pass(self) -> None:
        journal = self._journal
        if self._pass_end == 0:
            self._pass_end = journal.segments[len(journal.segments) - 1].number
            self._cleaned_bytes = 0
            self._relocated_bytes = 0
            self._seen_bytes = journal.written_bytes

    def _begin(self) -> SegmentCursor:
        journal = self._journal
        cursor = SegmentCursor(
            journal.disk,
            journal.segments[0],
            journal.config.compact_step_bytes,
        )
        self._cursor = cursor
        return cursor

    def _step_bytes(self) -> int:
        """Returns the bytes to read in this step: enough to keep up with the appended bytes at any event-loop
        speed.

        At the threshold, `compact_percentage` of the bytes read is alive. To free twice the appended bytes, 200
        / (100 - percentage) times as many must be read.
        """
        journal = self._journal
        config = journal.config
        written = journal.written_bytes - self._relocated_bytes
        keep_up = (written - self._seen_bytes) * 200 // (100 - config.compact_percentage)
        self._seen_bytes = max(written, self._seen_bytes)
        return max(config.compact_step_bytes, min(keep_up, config.segment_size_bytes))

    def _end_of_pass(self) -> None:
        """Ends a pass; delays the next one if nearly all bytes had to be relocated.

        Then more was alive than `live_bytes` says, and the files must grow before the next pass. Otherwise too
        low an estimate would make the journal rewrite itself for ever.
        """
        self._pass_end = 0
        self._resume_above_bytes = 0
        if self._relocated_bytes * 100 > self._cleaned_bytes * NEARLY_ALL_PERCENTAGE:
            self._resume_above_bytes = self._journal.total_bytes * 3 // 2
