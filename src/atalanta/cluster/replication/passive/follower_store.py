"""The disk of a follower: its copy of the journal and its files, stored in the order of the stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from atalanta.cluster.replication.member_codec import (
    FileDeletion,
    JournalBlock,
    KeptFiles,
    LargeData,
    LargeEnd,
    PageFile,
)
from atalanta.cluster.replication.passive.backup_config import nothing
from atalanta.cluster.replication.passive.disk_check import DiskCheck
from atalanta.cluster.replication.passive.follower_files import FollowerFiles, WriteBarrier
from atalanta.ha.replication.block_stream import DropItem, JumpItem, SegmentItem
from atalanta.ha.replication.copy_replay import CopyReplay
from atalanta.ha.replication.journal_copy import JournalCopy
from atalanta.kernel.broker.damaged_records import DamagedRecords, RecordedQueueNames
from atalanta.store.errors import JournalDamaged
from atalanta.store.recovery import CUT_NOTHING, read_back, read_front

if TYPE_CHECKING:
    from atalanta.kernel.ports import Disk, LargeFiles, Trace
    from atalanta.store.config import JournalConfig
    from atalanta.store.ports import GrowingReplay
    from atalanta.store.recovery_report import RecoveredState, RecoveryReport

FileMessage: TypeAlias = PageFile | LargeData | LargeEnd | FileDeletion | KeptFiles
JournalMessage: TypeAlias = JournalBlock | SegmentItem | DropItem | JumpItem


class FollowerStore:
    """The journal and the files. `report` and `copy` are those of the last `read`.

    Parts of the journal wait while a large body before them is being synced. `replay` takes the records of the copy to
    a new node; None without one. `check` reads everything again, with time.
    """

    def __init__(
        self,
        disk: Disk,
        large: LargeFiles,
        config: JournalConfig,
        prepare: Callable[[], GrowingReplay | None],
        repair: bool = False,
    ) -> None:
        """Reads the journal. Raises JournalDamaged, JournalForeign or OSError. `prepare`: that of BackupPorts.

        With `repair` a damaged journal is cut behind its whole front.
        """
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
        self.check = DiskCheck(
            disk,
            config.journal_id,
            lambda: self.copy.segments,
            lambda: self.copy.waiting_bytes > 0,
            lambda: self.files.waiting_bytes > 0,
        )
        if repair:
            self._take(read_front(disk, config, RecordedQueueNames()))
        else:
            self.read()

    @property
    def waiting_bytes(self) -> int:
        """Returns the bytes that were received and are not on the disk: the caller limits them."""
        return self.copy.waiting_bytes + self.files.waiting_bytes + self._waiting_bytes

    def read(self, cut: int = CUT_NOTHING) -> None:
        """Reads the journal while no job of the disk waits, and cuts it behind lsn `cut`. Errors as at the begin."""
        queues = RecordedQueueNames()
        try:
            self._take(read_back(self._disk, self._config, queues, cut))
        except JournalDamaged as error:
            found = DamagedRecords()
            for kind, payload in error.records:
                found.add(kind, payload)
            raise error.with_contents(found.text(queues.names)) from error

    def _take(self, state: RecoveredState) -> None:
        self.report = state.report
        self.copy = JournalCopy(self._disk, self._config, state)
        if self.replay is None or not self.replay.follow(self.copy):
            self.begin_replay()

    # --- the replay -------------------------------------------------------------------------------

    def begin_replay(self) -> None:
        """Begins the replay with an empty node: what the former one has is of no use."""
        self.replay = None
        replay = self._prepare()
        self.replay = None if replay is None else CopyReplay(self.copy, replay)

    def step(self) -> bool:
        """Replays some durable records. Returns whether more are left. Raises JournalDamaged, DecodeError or OSError.
        """
        if self.replay is not None and self.replay.overtaken():
            self.begin_replay()
        replay = self.replay
        if replay is None or self.copy.cutting or not replay.has_work():
            return False
        replay.step()
        return replay.has_work()

    def end_replay(self) -> None:
        """Ends the replay for good: the node will read its journal."""
        self.replay = None
        self._prepare = nothing

    def tell_cut(self, trace: Trace) -> None:
        """Tells what the first `read` has left out."""
        report = self.report
        if report.torn_bytes:
            trace.event("journal_tail_cut", {"at": report.torn_at, "bytes": report.torn_bytes})
        if report.cut.exists():
            names = " ".join(report.cut.names())
            trace.event(
                "journal_damage_cut", {"behind": report.last, "bytes": report.cut.size_bytes(), "files": names}
            )

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
            self._waiting_bytes += len(message.item.data)

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
                self._waiting_bytes -= len(message.item.data)
            return message
        return None
