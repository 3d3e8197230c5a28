"""Recovery of the journal: complete blocks are replayed, a torn tail is cut, damage is reported.

Only one commit is in flight at a time. So an incomplete block can come from a crash only if nothing was
committed after it. Then it is the torn tail. Its records were never confirmed, and it is overwritten with zeros,
so that its bytes are never misread later. In a file that was another segment before, this is done only if the
header of the block is complete. Without a complete header the bytes cannot be told from old blocks, and are not
taken for a new one.

If a later block exists, the bad block had been durable. Then recovery raises JournalDamaged with file and
offset, and does not skip the block. A flipped bit in the very last block cannot be told from a torn write; the
report has the number of bytes cut.

The last accepted block is written and synced once more. After the kill of a process, or after a failed sync, the
block may be readable and yet not be on the disk.

A member of a group may have blocks that no other member has. `cut` leaves out those behind an lsn
(store/tail_cut.py).
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel.ports import Disk
from atalanta.store.block import (
    BLOCK_HEAD_SIZE,
    BLOCK_MAGIC,
    BlockError,
    BlockHead,
    Record,
    decode_block_head,
    decode_records,
    split_records,
)
from atalanta.store.config import JournalConfig
from atalanta.store.errors import JournalDamaged
from atalanta.store.file_window import FileWindow
from atalanta.store.ports import Replay
from atalanta.store.recovery_report import FileRange, RecoveredState, RecoveryReport
from atalanta.store.segment import (
    SEGMENT_HEAD_SIZE,
    Segment,
    decode_segment_head,
    segment_name,
    segment_number,
)

ZERO: Final = b"\0"
CUT_NOTHING: Final = 1 << 62


def read_back(
    disk: Disk, config: JournalConfig, replay: Replay, cut: int = CUT_NOTHING
) -> RecoveredState:
    """Replays all records up to lsn `cut`, then repairs the tail. Raises JournalDamaged, JournalForeign or OSError.

    Holds one block in memory. After the first two errors the disk is unchanged. Blocks behind `cut` leave the journal
    with jobs of the disk: they are gone when a later job is durable, and a crash before that may keep some of them.
    """
    recovery = JournalRecovery(disk, config, replay, cut)
    recovery.read()
    recovery.repair()
    return recovery.state


def read_front(disk: Disk, config: JournalConfig, replay: Replay) -> RecoveredState:
    """Does the same as `read_back` for a damaged journal, which ends behind its last whole block before the damage.

    The rest is kept aside: `report.cut`. Another member of the group has what it had. JournalForeign or OSError.
    """
    recovery = JournalRecovery(disk, config, replay)
    try:
        recovery.read()
    except JournalDamaged:
        recovery.leave_damage()
    recovery.repair()
    return recovery.state


class JournalRecovery:
    """Reads a journal folder once."""

    def __init__(
        self, disk: Disk, config: JournalConfig, replay: Replay, cut: int = CUT_NOTHING
    ) -> None:
        self.state = RecoveredState(RecoveryReport())
        self._disk = disk
        self._config = config
        self._replay = replay
        self._report = self.state.report
        # Lsn of the next block; 0 = unknown, if the oldest segments were deleted.
        self._expected = 0
        self._last_block: FileRange | None = None
        self._segment: Segment | None = None  # the one that is being read
        # The first incomplete block, and the bytes there that must be zeroed.
        self._torn: FileRange | None = None
        self._leftovers: FileRange | None = None
        # Kind and payload of the records of the torn block, as far as they can be told apart.
        self._torn_records: list[tuple[int, bytes]] = []
        self._epoch = 0  # of the last block
        self._cut_lsn = cut
        self._cut = self._report.cut

    # --- reading ----------------------------------------------------------------------------------

    def read(self) -> None:
        """Reads all segments in order; changes nothing on the disk."""
        names = self._segment_names()
        if names and segment_number(names[0]) == 1:
            self._expected = 1
        for name in names:
            if self.state.incomplete:
                raise JournalDamaged(self.state.incomplete, 0, f"incomplete, but {name} follows")
            self._read_segment(FileWindow(self._disk, name, self._config.read_size_bytes))
        report = self._report
        if report.blocks + self._cut.blocks == 0 and names and segment_number(names[0]) != 1:
            why = "no whole block is left, and all earlier segments are gone"
            raise JournalDamaged(names[0], SEGMENT_HEAD_SIZE, why)
        report.segments = len(names)
        if names:
            report.first_segment = segment_number(names[0])
            self._check_last(names[len(names) - 1])
        report.last = max(0, self._expected - 1)
        if self._cut.blocks > 0:
            self._leave_out()
        leftovers = self._leftovers
        if leftovers is not None:
            report.torn_bytes = leftovers.end - leftovers.offset
            report.torn_at = f"{leftovers.name}, offset {leftovers.offset}"

    def _leave_out(self) -> None:
        """Leaves the blocks behind the cut out of the state: the journal ends before them."""
        state = self.state
        report = self._report
        report.last = min(report.last, self._cut_lsn) if report.blocks > 0 else 0
        report.expected = ""
        self._cut.take_empty(state.spares, state.incomplete)
        state.spares = []
        for cut in self._cut.ranges:
            if cut.begin == SEGMENT_HEAD_SIZE:
                state.segments.remove(cut.segment)
        state.position = SEGMENT_HEAD_SIZE
        if state.segments:
            state.position = state.segments[len(state.segments) - 1].end

    def leave_damage(self) -> None:
        """Leaves everything behind the last whole block out of the state, after JournalDamaged."""
        state = self.state
        last = self._last_block
        segment = self._segment
        front = 0  # the number of the last segment that stays
        if last is not None and segment is not None:
            if last.name == segment.name and segment not in state.segments:
                state.segments += [*state.spares, segment]
            kept = state.segments[len(state.segments) - 1]
            front = kept.number
            state.position = last.end
            self._cut.add_damaged(kept, last.end)
        state.spares = []
        state.incomplete = ""
        self._leftovers = None
        self._report.last = self._expected - 1 if last is not None else 0
        for name in self._disk.names():
            number = segment_number(name)
            if number > front:
                size = self._disk.size(name)
                self._cut.add_damaged(Segment(self._config.journal_id, number, size, False), SEGMENT_HEAD_SIZE)

    def _check_last(self, name: str) -> None:
        """Names the file behind the last one if it is missing: it is created when the last one is half full."""
        segments = self.state.segments
        if segments:
            last = segments[len(segments) - 1]
            if last.name == name and self.state.position * 2 > last.size:
                self._report.expected = segment_name(last.number + 1)

    def _segment_names(self) -> list[str]:
        names: list[str] = []
        for name in self._disk.names():
            number = segment_number(name)
            if number == 0:
                continue
            if names and segment_number(names[len(names) - 1]) + 1 != number:
                missing = segment_name(segment_number(names[len(names) - 1]) + 1)
                raise JournalDamaged(missing, 0, f"the file is missing, but {name} is there")
            names.append(name)
        return names

    def _read_segment(self, window: FileWindow) -> None:
        head = window.get(0, SEGMENT_HEAD_SIZE)
        self._report.bytes += window.size
        segment = decode_segment_head(head, window.name, window.size, self._config.journal_id)
        if segment is None:
            # Either a crash cut off the creation of the file: the journal creates it again when needed. Or the file is
            # damaged: then it holds data.
            self.state.incomplete = window.name
            begin = min(SEGMENT_HEAD_SIZE, window.size)
            if self._find_leftovers(window, begin, "the header is not whole", None) is not None:
                why = "the header is not whole, but the file was written to"
                raise JournalDamaged(window.name, 0, why)
            return
        self._segment = segment
        blocks = self._report.blocks + self._cut.blocks
        position = self._read_blocks(window, segment)
        why = f"the block of record {self._expected} is not whole"
        leftovers = self._find_leftovers(window, position, why, segment)
        if segment.used_before:
            leftovers = self._torn_block(window, position)
        if leftovers is not None:
            self._found_torn(leftovers)
            self._leftovers = leftovers
        state = self.state
        state.spares.append(segment)
        if self._report.blocks + self._cut.blocks > blocks:
            state.segments += state.spares
            state.spares = []
            state.position = position

    def _torn_block(self, window: FileWindow, position: int) -> FileRange | None:
        """Returns the range of a torn block in a reused file: its header is complete, its records are not."""
        torn = self._torn
        if torn is None or torn.name != window.name:
            return None
        return FileRange(window.name, position, torn.end, torn.why)

    def _read_blocks(self, window: FileWindow, segment: Segment) -> int:
        """Replays block after block. Returns the offset of the first one that is missing or incomplete."""
        position = SEGMENT_HEAD_SIZE
        head_size = segment.block_head_size
        while True:
            data = window.get(position, head_size)
            head = decode_block_head(segment.seal, data, 0, head_size)
            if head is None:
                return position
            self._check_order(window, position, head_size, head)
            start = position + head_size
            end = start + head.length
            try:
                records = decode_records(head, window.get(start, head.length))
            except BlockError as error:
                if self._torn is None:
                    self._torn_records = split_records(window.get(start, head.length))
                self._found_torn(FileRange(window.name, start + error.offset, end, error.why))
                return position
            self._expected = head.first + head.count
            if head.first > self._cut_lsn:
                self._cut.add(segment, position, end, head)
            else:
                segment.end = end
                self._take(FileRange(window.name, position, end, ""), head, records)
            position = end

    def _take(self, place: FileRange, head: BlockHead, records: list[Record]) -> None:
        """Replays one block."""
        if self._expected - 1 > self._cut_lsn:
            raise ValueError(f"record {self._cut_lsn} does not end a block: {place.name}, offset {place.offset}")
        for record in records:
            self._replay.on_record(record.lsn, record.kind, record.payload)
        report = self._report
        if report.blocks == 0:
            report.first = head.first
        if report.blocks == 0 or head.epoch > self._epoch:
            report.epochs.append((head.epoch, head.first))
        self._epoch = head.epoch
        self._last_block = place
        report.blocks += 1
        report.records += head.count

    def _check_order(
        self, window: FileWindow, position: int, head_size: int, head: BlockHead
    ) -> None:
        """Checks that the block continues lsns and epochs of the one before, and that no torn block precedes it."""
        torn = self._torn
        if torn is not None:
            where = f"{window.name}, offset {position}"
            raise self._damaged(torn, f"record {head.first} follows in {where}")
        if self._expected == 0:
            self._expected = head.first
        if head.first != self._expected:
            why = f"record {head.first} where {self._expected} belongs"
            raise JournalDamaged(window.name, position, why)
        if head.epoch < self._epoch:
            why = f"the block of record {head.first} has epoch {head.epoch}, after one of epoch {self._epoch}"
            raise JournalDamaged(window.name, position, why)
        if position + head_size + head.length > window.size:
            why = f"the block of record {head.first} exceeds its file"
            raise JournalDamaged(window.name, position, why)

    def _found_torn(self, found: FileRange) -> None:
        """Records a torn block. Only the last commit can be torn: a torn block in a second file means damage."""
        torn = self._torn
        if torn is None:
            self._torn = found
        elif torn.name != found.name:
            raise self._damaged(torn, f"{found.name} was written to after it")

    def _find_leftovers(
        self, window: FileWindow, begin: int, why: str, segment: Segment | None
    ) -> FileRange | None:
        """Returns the range from `begin` to the last non-zero byte. A later block in it raises JournalDamaged."""
        end = 0
        offset = begin
        size = self._config.read_size_bytes
        # Most of a new file is zeros: to compare them is many times faster than to search for the last other byte.
        zeros = bytes(min(size + BLOCK_HEAD_SIZE, max(0, window.size - begin)))
        while offset < window.size:
            # A header may span two reads.
            data = window.get(offset, size + BLOCK_HEAD_SIZE)
            if data != zeros[: len(data)]:
                used = len(data[:size].rstrip(ZERO))
                if used > 0:
                    end = offset + used
                    self._reject_later_block(window, data, offset, begin, why, segment)
            offset += size
        return None if end == 0 else FileRange(window.name, begin, end, why)

    def _reject_later_block(
        self,
        window: FileWindow,
        data: bytes,
        offset: int,
        begin: int,
        why: str,
        segment: Segment | None,
    ) -> None:
        if segment is None:
            return  # no block is valid without the header of its file
        index = data.find(BLOCK_MAGIC)
        while index >= 0:
            # A header with an earlier lsn is the torn block itself, or an old block inside a message body.
            head = decode_block_head(segment.seal, data, index, segment.block_head_size)
            if head is not None and head.first > self._expected and offset + index > begin:
                torn = self._torn
                if torn is None:
                    torn = FileRange(window.name, begin, begin, why)
                    start = begin + segment.block_head_size
                    self._torn_records = split_records(window.get(start, max(0, offset + index - start)))
                where = f"{window.name}, offset {offset + index}"
                raise self._damaged(torn, f"record {head.first} follows in {where}")
            index = data.find(BLOCK_MAGIC, index + 1)

    def _damaged(self, torn: FileRange, follows: str) -> JournalDamaged:
        return JournalDamaged(torn.name, torn.offset, f"{torn.why}, but {follows}", self._torn_records)

    # --- repair -----------------------------------------------------------------------------------

    def repair(self) -> None:
        """Makes the accepted blocks durable and clears the tail, before the first append."""
        leftovers = self._leftovers
        if leftovers is not None:
            self._zero(leftovers)
        last = self._last_block
        if last is not None:
            block = self._disk.read(last.name, last.offset, last.end - last.offset)
            self._disk.repair(last.name, last.offset, block)
        for spare in self.state.spares:
            self._disk.repair(spare.name, 0, spare.head())
        if self._cut.exists():
            self._cut.start(self._disk)

    def _zero(self, file_range: FileRange) -> None:
        size = self._config.read_size_bytes
        for begin in range(file_range.offset, file_range.end, size):
            self._disk.repair(file_range.name, begin, bytes(min(size, file_range.end - begin)))
