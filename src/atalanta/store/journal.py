"""The journal: append, group commit, durability.

One commit is in flight at a time and writes one block. Records appended meanwhile go into the next commit, which
starts when the first completes. So under load a commit carries many records, and a single record does not wait
for others. A failed write or sync ends the journal: after a failed fsync the contents of the disk are unknown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final

import google_crc32c
from librt.strings import BytesWriter

from atalanta.kernel import ports
from atalanta.kernel.ports import Disk, Timers, Trace
from atalanta.store.block import BLOCK_HEAD_SIZE, EPOCH_MAX, encode_block_head
from atalanta.store.commit_buffer import CommitBuffer
from atalanta.store.compaction import Compaction
from atalanta.store.config import JournalConfig
from atalanta.store.errors import JournalDamaged, JournalFailed
from atalanta.store.ports import JournalGroup, JournalListener, LiveRecordsPort, Replay
from atalanta.store.recovery import CUT_NOTHING, read_back
from atalanta.store.recovery_report import RecoveredState, RecoveryReport
from atalanta.store.segment import (
    SEGMENT_HEAD_SIZE,
    SEGMENT_VERSION,
    Segment,
    is_spare,
    spare_name,
)

# The size of a segment for one large record is rounded up to a multiple of this, in bytes.
SIZE_STEP: Final = 4096
# Maximum number of files of deleted segments that are kept for reuse.
SET_ASIDE_MAX: Final = 2
# Keys of the timers.
PREFIX: Final = "store."
COMPACT_TIMER: Final = "store.compact"
COMMIT_TIMER: Final = "store.commit"
# Acknowledgements without a waiting client are written with the next message's record, or alone after this time.
IDLE_RECORDS_NS: Final = 5_000_000


class BlockInFlight:
    """The block that is being written at `offset` of `segment`: records `first` to `last`."""

    def __init__(
        self, segment: Segment, offset: int, first: int, last: int, head: bytes, records: bytes
    ) -> None:
        self.segment = segment
        self.offset = offset
        self.first = first
        self.last = last
        self.head = head
        self.records = records


class Journal(ports.JournalPort):
    """The journal of one node. Call `listen` and `recover` first, once."""

    def __init__(
        self,
        disk: Disk,
        config: JournalConfig,
        timers: Timers,
        trace: Trace,
        plain_kind: int = -1,
        passing_kinds: bytes = b"",
    ) -> None:
        """`plain_kind`: the kind of records that `forget` is called for; `passing_kinds` need never be kept."""
        self.disk = disk
        self.config = config
        self.timers = timers
        self.trace = trace
        self.listener: JournalListener
        self._on_failed: Callable[[int, str], None]
        self.live_records: LiveRecordsPort | None = None
        self.failed: str | None = None
        self.last = 0
        self.durable = 0
        # Segments with blocks, oldest first; then at most one that is prepared and still empty.
        self.segments: list[Segment] = []
        self.spares: list[Segment] = []
        self._near: Segment | None = (
            None  # segment of the last `forget`: the next is most likely there, too
        )
        self.no_room: bool = False
        self.set_aside: list[str] = []  # names of files of the usual size that new segments reuse
        self.total_bytes = 0
        # Bytes of records handed to the disk since the start of the process.
        self.written_bytes = 0
        self._block_size_bytes_max = config.block_size_bytes_max
        self._position = 0
        # The epoch of the next block.
        self._epoch = 0
        self.waiting = CommitBuffer(config.block_size_bytes_max)
        # Somebody waits for one of the buffered records.
        self._hurried: bool = False
        self._idle_timer: bool = False  # COMMIT_TIMER is set
        self.plain_kind = plain_kind
        self.passing_kinds = passing_kinds
        # Plain records that were forgotten before they were committed.
        self._early: list[int] = []
        # Its last lsn is its commit token. Followers get it from here (ha/replication/journal_reader.py).
        self.block_in_flight: BlockInFlight | None = None
        self.group: JournalGroup | None = None
        # Last lsn handed to the disk.
        self._started = 0
        self._compaction = Compaction(self)
        if google_crc32c.implementation != "c":
            trace.event(
                "journal_checksum_slow", {"why": "google-crc32c runs without its C extension"}
            )

    # --- life -------------------------------------------------------------------------------------

    def listen(self, listener: JournalListener, on_failed: Callable[[int, str], None]) -> None:
        """Sets who hears that records are durable, and who hears, once, why no further ones will be."""
        self.listener = listener
        self._on_failed = on_failed

    def recover(
        self, replay: Replay, live_records: LiveRecordsPort | None = None, cut: int = CUT_NOTHING
    ) -> RecoveryReport:
        """Replays all records, repairs the tail, and makes the journal ready to append.

        `live_records` finds the records that the compaction keeps; without it there is no compaction. Blocks behind
        lsn `cut` leave the journal (recovery.read_back).
        Raises JournalDamaged, JournalForeign or OSError when the folder cannot be trusted or read. Errors of
        `replay` pass through. In all these cases the disk is not changed.
        """
        if self.segments:
            raise RuntimeError("a journal recovers once")
        state = read_back(self.disk, self.config, replay, cut)
        if not state.report.cut.exists():
            self._take_set_aside(state)
        self.take_over(state, live_records)
        return state.report

    def take_over(self, state: RecoveredState, live_records: LiveRecordsPort | None) -> None:
        """Makes the journal ready to append to files that are as in `state`, and durable. Called once."""
        if self.segments:
            raise RuntimeError("a journal recovers once")
        self.live_records = live_records
        self.segments = state.segments
        self.spares = state.spares
        self.set_aside = state.set_aside
        self._position = state.position
        epochs = state.report.epochs
        if epochs:
            self._epoch = epochs[len(epochs) - 1][0]
        self.last = self.durable = self._started = state.report.last
        for segment in self.segments:
            self.total_bytes += segment.size
            segment.others = 1
        if not self.segments:
            if not self.spares or self.spares[0].version < SEGMENT_VERSION:
                self._replace_spares(self.config.segment_size_bytes, 1)
            self._advance()
        elif self.segments[len(self.segments) - 1].version < SEGMENT_VERSION:
            self._position = self.segments[len(self.segments) - 1].size  # full: a new file follows

    def begin_epoch(self, epoch: int) -> None:
        """Begins an epoch with the next block. ValueError unless it is higher than all before.

        RuntimeError while records wait to be durable: they belong to the epoch before.
        """
        if not self._epoch < epoch <= EPOCH_MAX:
            raise ValueError(f"epoch {epoch} after epoch {self._epoch}")
        if not self.segments or not self.idle():
            raise RuntimeError("an epoch begins between two blocks")
        self._epoch = epoch

    def _take_set_aside(self, state: RecoveredState) -> None:
        """Takes over the spare files of an earlier process that have the configured segment size."""
        for name in self.disk.names():
            if is_spare(name):
                if (
                    len(state.set_aside) < SET_ASIDE_MAX
                    and self.disk.recycles()
                    and self.disk.size(name) == self.config.segment_size_bytes
                ):
                    state.set_aside.append(name)
                else:
                    self.disk.delete(name)

    def written_lsn(self) -> int:
        """Returns the last lsn that is on the disk or in flight to it."""
        return self._started

    def idle(self) -> bool:
        """Returns whether every appended record is durable."""
        return self.last == self.durable

    # --- appending --------------------------------------------------------------------------------

    def append(self, kind: int, payload: bytes) -> int:
        """Appends a record (kernel.ports.JournalPort.append). The next `flush` or completed commit writes it."""
        self.begin(kind).write(payload)
        return self.end()

    def append_idle(self, kind: int, payload: bytes) -> int:
        """Implements kernel.ports.JournalPort.append_idle."""
        hurried = self._hurried
        lsn = self.append(kind, payload)
        self._hurried = hurried
        return lsn

    def hurry(self) -> None:
        """Implements kernel.ports.JournalPort.hurry."""
        self._hurried = True

    def begin(self, kind: int) -> BytesWriter:
        """Implements kernel.ports.JournalPort.begin."""
        if self.failed is not None:
            raise JournalFailed(self.failed)
        self._hurried = True
        return self.waiting.begin(kind)

    def end(self) -> int:
        """Implements kernel.ports.JournalPort.end."""
        self.waiting.end()
        self.last += 1
        return self.last

    def forget(self, lsn: int) -> None:
        """Implements kernel.ports.JournalPort.forget."""
        if lsn > self._started:
            self._early.append(lsn)
            return
        near = self._near
        if near is not None and near.first <= lsn <= near.last:
            near.plain -= 1
            return
        segments = self.segments
        # Nearly always the record is in the newest or the oldest segment.
        segment = segments[len(segments) - 1]
        if lsn < segment.first:
            segment = segments[0]
            if lsn > segment.last:
                segment = segments[bisect_right(segments, lsn, key=_first_of) - 1]
        if segment.first <= lsn <= segment.last:
            segment.plain -= 1
            self._near = segment

    def _count(self, segment: Segment, kinds: bytearray) -> None:
        """Counts the records of a block in their segment; `_started` is the lsn of the last of them."""
        if segment.first == 0:
            segment.first = self._started - len(kinds) + 1
        segment.last = self._started
        plain = kinds.count(self.plain_kind) if self.plain_kind >= 0 else 0
        passing = 0
        if plain < len(kinds):
            passing = len(kinds) - len(kinds.translate(None, self.passing_kinds))
        segment.plain += plain
        segment.others += len(kinds) - plain - passing
        if self._early:
            early = self._early
            self._early = [lsn for lsn in early if lsn > self._started]
            segment.plain -= len(early) - len(self._early)

    def flush(self, now: int) -> None:
        """Starts a commit of the appended records if none is in flight. Called once per event-loop iteration."""
        if self.block_in_flight is None and self.waiting.count:
            if self._hurried:
                self._commit()
            elif not self._idle_timer:
                self._idle_timer = True
                self.timers.set(COMMIT_TIMER, now + IDLE_RECORDS_NS)
        if self.group is not None:
            self.group.after_flush(now)

    def on_timer(self, now: int, key: str) -> None:
        """Handles a timer of the journal."""
        if key == COMMIT_TIMER:
            self._idle_timer = False
            self.hurry()
        elif key == COMPACT_TIMER and self.compact_step(now):
            self.timers.set(COMPACT_TIMER, now)

    def _commit(self) -> None:
        """Writes as many buffered records as fit into one block of the current segment."""
        if not self.segments:
            raise RuntimeError("recover before the first commit")
        first_size = self.waiting.first_size()
        if first_size > self._room():
            self._next_segment(first_size)
        taken = self.waiting.take(min(self._room(), self._block_size_bytes_max))
        count = len(taken.kinds)
        if self.waiting.count == 0:
            self._hurried = False
        segment = self.segments[len(self.segments) - 1]
        head = encode_block_head(segment.seal, self._started + 1, count, taken.data, self._epoch)
        self._started += count
        self._count(segment, taken.kinds)
        position = self._position
        self.block_in_flight = BlockInFlight(
            segment, position, self._started - count + 1, self._started, head, taken.data
        )
        self._position += len(head) + len(taken.data)
        segment.end = self._position
        self.written_bytes += len(taken.data)
        self.disk.commit(segment.name, position, head, self._started, taken.data)
        if not self.spares and self._position * 2 > segment.size and not self.no_room:
            self._create(self.config.segment_size_bytes, segment.number + 1, True)

    # --- segments ---------------------------------------------------------------------------------

    def _room(self) -> int:
        """Returns the bytes left for records of one more block in the current segment; may be negative."""
        segment = self.segments[len(self.segments) - 1]
        return segment.size - self._position - BLOCK_HEAD_SIZE

    def _next_segment(self, record_size: int) -> None:
        """Switches to a new segment that can hold a record of this size."""
        needed = SEGMENT_HEAD_SIZE + BLOCK_HEAD_SIZE + record_size
        if self._position == SEGMENT_HEAD_SIZE:
            # The current segment is empty and too small. It is replaced, so that no number is skipped.
            self.spares.insert(0, self.segments.pop())
            self.total_bytes -= self.spares[0].size
        spares = self.spares
        if not spares or spares[0].size < needed or spares[0].version < SEGMENT_VERSION:
            size = self.config.segment_size_bytes
            if size < needed:
                size = -(-needed // SIZE_STEP) * SIZE_STEP
            self._replace_spares(size, self._next_number())
        self._advance()

    def _replace_spares(self, size: int, number: int) -> None:
        """Creates the next segment in place of those that were prepared."""
        for spare in reversed(self.spares[1:]):
            self.disk.delete(spare.name)  # else a crash could leave it behind an incomplete file
        self.spares.clear()
        self._create(size, number)

    def _next_number(self) -> int:
        if self.spares:
            return self.spares[0].number
        return self.segments[len(self.segments) - 1].number + 1

    def _create(self, size: int, number: int, spare: bool = False) -> None:
        used_before = size == self.config.segment_size_bytes and len(self.set_aside) > 0
        segment = Segment(self.config.journal_id, number, size, used_before)
        head = segment.head()
        if used_before:
            self.disk.reuse(self.set_aside.pop(), segment.name, head)
        elif spare:
            self.disk.create_spare(segment.name, size, head)
        else:
            self.disk.create(segment.name, size, head)
        self.spares.append(segment)

    def _advance(self) -> None:
        segment = self.spares.pop(0)
        self.segments.append(segment)
        self.total_bytes += segment.size
        self._position = SEGMENT_HEAD_SIZE

    def drop_oldest(self) -> None:
        """Deletes the oldest segment, for the compaction: no live record has its only durable copy there."""
        segment = self.segments.pop(0)
        self.total_bytes -= segment.size
        if segment is self._near:
            self._near = None
        if (
            segment.size == self.config.segment_size_bytes
            and len(self.set_aside) < SET_ASIDE_MAX
            and not self.no_room
            and self.disk.recycles()
        ):
            name = spare_name(segment.number)
            self.disk.set_aside(segment.name, name)
            self.set_aside.append(name)
        else:
            self.disk.delete(segment.name)

    # --- answers of the disk ----------------------------------------------------------------------

    def on_committed(self, now: int, token: int) -> None:
        """Records that the block in flight is on the disk, starts the next commit, tells the listener or the group."""
        if self.failed is not None:
            return
        flight = self.block_in_flight
        if flight is None or token != flight.last:
            raise ValueError(f"commit {token} completed, records up to {self._started} were written")
        self.block_in_flight = None
        if self.waiting.count and self._hurried:
            self._commit()
        if self.group is None:
            self.confirm(now, token)
        else:
            self.group.on_stored(now, token)

    def confirm(self, now: int, lsn: int) -> None:
        """Records that everything up to `lsn` is durable, on all nodes that must have it, and informs the listener.

        A `group` calls it. Only then segments whose records it replaces are deleted.
        """
        if self.failed is not None:
            return
        self.durable = lsn
        self._compaction.on_durable()
        self.listener.on_durable(now, lsn)
        if self.wants_compaction():  # the listener may have failed the journal: mypy takes `failed` for None here
            self.timers.set(COMPACT_TIMER, now)

    def on_failed(self, now: int, why: str) -> None:
        """Records that a job of the disk failed: no further lsn is reported durable."""
        if self.failed is not None:
            return
        self.failed = why
        self.waiting = CommitBuffer(self._block_size_bytes_max)
        self.block_in_flight = None
        self._on_failed(now, why)
        if self.group is not None:
            self.group.resign(now, f"journal failed: {why}")

    def set_room(self, room: bool, name: str = "") -> None:
        """Records whether the disk has room for new files; the spare `name`, if any, could not be made.

        Without room no file is kept for reuse: the disk needs it for its reserve.
        """
        self.no_room = not room
        self.spares = [segment for segment in self.spares if segment.name != name]
        while self.no_room and self.set_aside:
            self.disk.delete(self.set_aside.pop())

    # --- compaction -------------------------------------------------------------------------------

    def wants_compaction(self) -> bool:
        """Returns whether `compact_step` has work now."""
        return self.failed is None and self._compaction.has_work()

    def compact_step(self, now: int) -> bool:
        """Compacts a bounded part of the oldest segment. Returns whether to call again at once.

        After False, ask `wants_compaction` when further records are durable. A damaged segment fails the
        journal: it could not be recovered from, and must not be deleted either.
        """
        if not self.wants_compaction():
            return False
        try:
            return self._compaction.step(now)
        except (JournalDamaged, OSError) as error:
            self.on_failed(now, f"compaction: {error}")
            return False


def _first_of(segment: Segment) -> int:
    return segment.first
