"""Cleaning at the tail: the oldest segment is read, what is alive in it is appended again, it goes.

A segment is deleted only when everything that was appended up to the end of its cleaning is
durable: the relocated records, and the records that made the others dead. Segments go strictly in
order, so the record of a deletion never vanishes before the record of what it deletes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.ports import Disk
from atalanta.store.block import (
    BLOCK_HEAD_SIZE,
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


# More than compact_percentage can be, so that an honest `live_bytes` never gets there for long.
NEARLY_ALL_PERCENTAGE: Final = 85


class SegmentCursor:
    """Reads the records of a sealed segment step by step. Memory: one block."""

    def __init__(self, disk: Disk, segment: Segment, step_bytes: int) -> None:
        self.finished = False
        self._window = FileWindow(disk, segment.name, step_bytes)
        self._seal = segment.seal
        self._end = segment.end
        self._position = SEGMENT_HEAD_SIZE
        self._records: list[Record] = []
        self._next = 0

    def take(self, step_bytes: int) -> list[Record]:
        """The records of the next `step_bytes`; at least one, unless `finished` becomes true.

        JournalDamaged, OSError.
        """
        taken: list[Record] = []
        left = step_bytes
        while left > 0:
            if self._next == len(self._records):
                self._read_block()
                if self.finished:
                    break
                left -= BLOCK_HEAD_SIZE
            record = self._records[self._next]
            self._next += 1
            left -= record.size
            taken.append(record)
        return taken

    def _read_block(self) -> None:
        """The next block; `finished` if there is none."""
        window = self._window
        self._records = []
        self._next = 0
        if self._position >= self._end:
            self.finished = True
            return
        data = window.get(self._position, BLOCK_HEAD_SIZE)
        head: BlockHead | None = decode_block_head(self._seal, data)
        if head is None:
            raise JournalDamaged(window.name, self._position, "no block begins here")
        start = self._position + BLOCK_HEAD_SIZE
        if start + head.length > self._end:
            raise JournalDamaged(window.name, self._position, "a block exceeds its file")
        try:
            self._records = decode_records(head, window.get(start, head.length))
        except BlockError as error:
            raise JournalDamaged(window.name, start + error.offset, error.why) from error
        self._position = start + head.length


class Compaction:
    """Decides when to clean, and does it step by step."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._cursor: SegmentCursor | None = None
        # The segment under the cursor, or cleaned, goes when this lsn is durable; 0 = none.
        self._barrier = 0
        # A pass goes once over all that was there when it began; see `_end_of_pass`.
        self._pass_end = 0
        self._cleaned_bytes = 0
        self._relocated_bytes = 0
        # Bytes committed for others than us, when the last step was made.
        self._seen_bytes = 0
        self._resume_above_bytes = 0

    def wanted(self) -> bool:
        """Whether `step` has something to do: a segment half cleaned, or too much that is dead."""
        journal = self._journal
        if self._cursor is not None:
            return True
        keeper = journal.keeper
        if self._barrier != 0 or keeper is None or len(journal.segments) < 2:
            return False
        config = journal.config
        total = journal.total_bytes
        if total <= config.compact_min_segments * config.segment_size_bytes:
            return False
        if total <= self._resume_above_bytes:
            return False
        return keeper.live_bytes() * 100 < total * config.compact_percentage

    def step(self, now: int) -> bool:
        """Relocate what is alive in the next piece; whether more of this segment is left."""
        journal = self._journal
        keeper = journal.keeper
        if keeper is None:
            return False
        cursor = self._cursor
        if cursor is None:
            self._begin_pass()
            keeper.before_compaction(now)
            oldest = journal.segments[0]
            if oldest.others == 0 and oldest.plain == 0:
                # Nothing in it is of use: no need to read it. Usual where messages are soon consumed.
                self._barrier = journal.last
                self.on_durable()
                return self.wanted()
            cursor = self._begin()
        appended_bytes = journal.waiting.appended_bytes
        for record in cursor.take(self._step_bytes()):
            keeper.relocate(record.lsn, record.kind, record.payload)
        self._relocated_bytes += journal.waiting.appended_bytes - appended_bytes
        if not cursor.finished:
            return True
        self._cursor = None
        self._barrier = journal.last
        self.on_durable()
        return self.wanted()

    def on_durable(self) -> None:
        """Delete the cleaned segment once all it gave up is safe elsewhere."""
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
        """What to read now: enough to keep up with those who append, however slow the turns are.

        At the threshold `compact_percentage` of what is read is alive; to free twice what others
        append, 200 / (100 - percentage) times as much must be read.
        """
        journal = self._journal
        config = journal.config
        written = journal.written_bytes - self._relocated_bytes
        keep_up = (written - self._seen_bytes) * 200 // (100 - config.compact_percentage)
        self._seen_bytes = max(written, self._seen_bytes)
        return max(config.compact_step_bytes, min(keep_up, config.segment_size_bytes))

    def _end_of_pass(self) -> None:
        """A pass that had to relocate nearly all found more alive than `live_bytes` says.

        Then the files must grow before the next: a keeper that guesses too low would otherwise have
        the journal rewritten for ever.
        """
        self._pass_end = 0
        self._resume_above_bytes = 0
        if self._relocated_bytes * 100 > self._cleaned_bytes * NEARLY_ALL_PERCENTAGE:
            self._resume_above_bytes = self._journal.total_bytes * 3 // 2
