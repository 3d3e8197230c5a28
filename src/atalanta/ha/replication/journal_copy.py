"""The copy of another node's journal: a follower's files, written block by block as they arrive.

Each block is a commit of its own, like on the active node. So recovery finds at most one torn block, the last one.
The next segment file is prepared when the last one is half full, so that a new segment does not wait for it.

The first file of a copy appears together with its first block: a file without blocks, and none before it, could not
be told from damage.
"""

from __future__ import annotations

from collections import deque

from atalanta.ha.replication.block_stream import (
    BlockItem,
    BlockReceiver,
    DropItem,
    JumpItem,
    SegmentItem,
    StreamItem,
    Write,
)
from atalanta.kernel.ports import Disk
from atalanta.store.config import JournalConfig
from atalanta.store.recovery_report import RecoveredState
from atalanta.store.segment import SEGMENT_HEAD_SIZE, is_spare, spare_name


class JournalCopy:
    """The copy on one disk, whose answers come to `on_committed` and `on_failed`.

    `stored` is the last durable lsn, `last` the last received one. `waiting_bytes` were received and are not durable:
    the caller limits them.
    """

    def __init__(self, disk: Disk, config: JournalConfig, state: RecoveredState) -> None:
        """`state` is that of recovery.read_back, before any job other than those of a cut."""
        self.disk = disk
        self.config = config
        self.segments = state.segments
        self.failed: str | None = None
        self.stored: int = state.report.last
        self.waiting_bytes: int = 0
        self._report = state.report
        self._sizes: deque[tuple[int, int]] = deque()  # (last lsn, bytes) of the blocks that are being written
        self.cutting = state.report.cut.exists()  # files may be replaced: they must not be read
        self._gone = 0  # commits without an answer from before a jump
        self._opened: Write | None = None  # the header of a segment that has no block yet
        self._spare: str = ""  # an empty file for the next segment
        if not state.report.cut.exists():
            self._clean(state)
        epochs = state.report.epochs
        segment = self.segments[-1] if self.segments else None
        self._receiver = BlockReceiver(
            config.journal_id, segment, state.position, state.report.last, epochs[-1][0] if epochs else 0
        )

    def _clean(self, state: RecoveredState) -> None:
        """Deletes files without blocks: prepared segments, the last one first, and files for reuse."""
        if state.incomplete:
            self.disk.delete(state.incomplete)
        for spare in reversed(state.spares):
            self.disk.delete(spare.name)
        for name in self.disk.names():
            if is_spare(name):
                self.disk.delete(name)

    @property
    def last(self) -> int:
        """Returns the lsn of the last received record, 0 without any."""
        return self._receiver.last

    # --- the stream ---------------------------------------------------------------------------------------

    def on_item(self, item: StreamItem) -> None:
        """Accepts the next item of the stream. BlockRefused: nothing of it was accepted; the stream begins again."""
        if self.failed is not None:
            return
        if isinstance(item, BlockItem):
            self._on_block(item)
        elif isinstance(item, SegmentItem):
            self._opened = self._receiver.on_segment(item)
        elif isinstance(item, DropItem):
            self._on_drop(item)
        else:
            self._on_jump(item)

    def _on_block(self, item: BlockItem) -> None:
        name, write = self._receiver.on_block(item)
        epochs = self._report.epochs
        if not epochs or name.epoch > epochs[-1][0]:
            epochs.append((name.epoch, name.first))
        segment = write.segment
        if self._opened is not None:
            segment.first = name.first
            self._create(self._opened, write)
            self._opened = None
        segment.end = self._receiver.offset
        self._report.last = name.last
        self._sizes.append((name.last, len(write.data)))
        self.waiting_bytes += len(write.data)
        self.disk.commit(segment.name, write.offset, write.data, name.last)
        if not self._spare and segment.end * 2 > segment.size:
            self._spare = spare_name(segment.number + 1)
            self.disk.create_spare(self._spare, self.config.segment_size_bytes, b"")

    def _create(self, head: Write, block: Write) -> None:
        """Creates the file of a segment, which is the next one or the first."""
        segment = head.segment
        if not self.segments:
            temporary = spare_name(segment.number)
            self.disk.create(temporary, segment.size, head.data + block.data)
            self.disk.set_aside(temporary, segment.name)
            self._report.first = self._receiver.last
        elif self._spare and segment.size == self.config.segment_size_bytes:
            self.disk.reuse(self._spare, segment.name, head.data)
            self._spare = ""
        else:
            self.disk.create(segment.name, segment.size, head.data)
        self.segments.append(segment)

    def _on_drop(self, item: DropItem) -> None:
        segments = self.segments
        while len(segments) > 1 and segments[0].number < item.first:
            self.disk.delete(segments.pop(0).name)

    def _on_jump(self, item: JumpItem) -> None:
        """Deletes all segments, the last one first: what a crash leaves is a journal."""
        self._receiver.on_jump()
        self._opened = None
        if self._spare:
            self.disk.delete(self._spare)
            self._spare = ""
        while self.segments:
            self.disk.delete(self.segments.pop().name)
        self._report.epochs.clear()
        self._report.last = 0
        self.stored = 0
        self._gone += len(self._sizes)
        self._sizes.clear()
        self.waiting_bytes = 0

    # --- the answers of the disk ----------------------------------------------------------------------------

    def on_committed(self, token: int) -> None:
        """Records that everything up to lsn `token` is durable."""
        self.cutting = False
        if self._gone > 0:
            self._gone -= 1
            return
        last, size = self._sizes.popleft()
        if last != token:
            raise ValueError(f"commit {token} completed where {last} was expected")
        self.waiting_bytes -= size
        self.stored = token

    def on_failed(self, why: str) -> None:
        """Records that a job of the disk failed: nothing further is accepted or becomes durable."""
        self.failed = why

    def set_room(self, room: bool, name: str = "") -> None:
        """Records that the disk has or has no room; the prepared file `name`, if any, could not be made."""
        if name and name == self._spare:
            self._spare = ""

    # --- taking over ----------------------------------------------------------------------------------------

    def state(self) -> RecoveredState:
        """Returns the state that a journal goes on with (Journal.take_over). RuntimeError while blocks are written."""
        if self._sizes or self._gone or self.failed is not None:
            raise RuntimeError(f"{len(self._sizes) + self._gone} blocks are not durable; failure: {self.failed}")
        state = RecoveredState(self._report)
        state.segments = self.segments
        state.position = self.segments[-1].end if self.segments else SEGMENT_HEAD_SIZE
        if self._spare:
            state.set_aside.append(self._spare)
        return state
