"""The disk of a follower: its copy of the journal and its files, stored in the order of the stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from atalanta.cluster.replication.follower_files import FollowerFiles, WriteBarrier
from atalanta.cluster.replication.member_codec import (
    FileDeletion,
    JournalBlock,
    KeptFiles,
    LargeData,
    LargeEnd,
    PageFile,
)
from atalanta.ha.block_stream import DropPart, JumpPart, SegmentPart
from atalanta.ha.copy_replay import CopyReplay
from atalanta.ha.journal_copy import JournalCopy
from atalanta.store.recovery import CUT_NOTHING, read_back

if TYPE_CHECKING:
    from atalanta.kernel.ports import Disk, LargeFiles
    from atalanta.store.config import JournalConfig
    from atalanta.store.ports import GrowingReplay
    from atalanta.store.recovery_report import RecoveryReport

FileMessage: TypeAlias = PageFile | LargeData | LargeEnd | FileDeletion | KeptFiles
JournalMessage: TypeAlias = JournalBlock | SegmentPart | DropPart | JumpPart


def _nothing() -> None:
    return None


class _NoReplay:
    """A recovery whose records nobody needs."""

    def on_record(self, lsn: int, kind: int, payload: bytes) -> None:
        """Implements Replay.on_record."""


class FollowerStore:
    """The journal and the files. `report` and `copy` are those of the last `read`.

    Parts of the journal wait while a large body before them is being synced. `replay` takes the records of the copy to
    a new node; None without one.
    """

    def __init__(
        self,
        disk: Disk,
        large: LargeFiles,
        config: JournalConfig,
        prepare: Callable[[], GrowingReplay | None],
    ) -> None:
        """Reads the journal. Raises JournalDamaged, JournalForeign or OSError. `prepare`: that of BackupPorts."""
        self.barrier = WriteBarrier(disk)
        self.files = FollowerFiles(disk, large, config.journal_id, self.barrier)
        self.report: RecoveryReport
        self.copy: JournalCopy
        self.replay: CopyReplay | None = None
        self._prepare = prepare
        self._disk = disk
        self._config = config
        self._waiting: deque[JournalMessage | LargeEnd] = deque()
        self._waiting_bytes = 0
        self.read()

    @property
    def waiting_bytes(self) -> int:
        """Returns the bytes that were received and are not on the disk: the caller limits them."""
        return self.copy.waiting_bytes + self.files.waiting_bytes + self._waiting_bytes

    def read(self, cut: int = CUT_NOTHING) -> None:
        """Reads the journal while no job of the disk waits, and cuts it behind lsn `cut`. Errors as at the begin."""
        state = read_back(self._disk, self._config, _NoReplay(), cut)
        self.report = state.report
        self.copy = JournalCopy(self._disk, self._config, state)
        if self.replay is None or not self.replay.follow(self.copy):
            self.begin_replay()

    # --- the replay -------------------------------------------------------------------------------

    def begin_replay(self) -> None:
        """Begins the replay with an empty node: what the former one has is of no use."""
        replay = self._prepare()
        self.replay = None if replay is None else CopyReplay(self.copy, replay)

    def step(self) -> bool:
        """Replays some durable records. Returns whether more are left. Raises JournalDamaged, DecodeError or OSError.
        """
        if self.replay is not None and self.replay.overtaken():
            self.begin_replay()
        replay = self.replay
        if replay is None or not replay.has_work():
            return False
        replay.step()
        return replay.has_work()

    def end_replay(self) -> None:
        """Ends the replay for good: the node will read its journal."""
        self.replay = None
        self._prepare = _nothing

    # --- the stream -------------------------------------------------------------------------------

    def clear(self) -> None:
        """Forgets what waits: the stream has ended."""
        self._waiting.clear()
        self._waiting_bytes = 0

    def on_file(self, message: FileMessage) -> None:
        """Stores a file, or notes that one goes. ProtocolError."""
        files = self.files
        if isinstance(message, PageFile):
            files.on_page(message)
        elif isinstance(message, LargeData):
            files.on_large_data(message)
        elif isinstance(message, LargeEnd):
            files.on_large_end(message)
            self._waiting.append(message)
        elif isinstance(message, FileDeletion):
            files.on_deletion(message)
        else:
            files.on_kept(message)

    def add(self, message: JournalMessage) -> None:
        """Adds a part of the journal: `next` returns it."""
        self._waiting.append(message)
        if isinstance(message, JournalBlock):
            self._waiting_bytes += len(message.part.data)

    def next(self) -> JournalMessage | None:
        """Returns the next part of the journal, None if there is none or a large body before it is not synced."""
        waiting = self._waiting
        while waiting:
            message = waiting[0]
            if isinstance(message, LargeEnd):
                if not self.files.is_complete(message.file):
                    return None
                waiting.popleft()
                continue
            waiting.popleft()
            if isinstance(message, JournalBlock):
                self._waiting_bytes -= len(message.part.data)
            return message
        return None
