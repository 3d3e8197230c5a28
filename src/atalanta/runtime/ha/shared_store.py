"""A shared store: the data folders that the processes of a pair have in common, and how one of them takes them.

Changes to the design note of the pair: `take` needs no instant (it reads the clock itself) and may be called at any
time, also by an operator's command; it waits by itself until every earlier lease is over. The lease is renewed from the
beginning of `take` on; `HeldEpoch.start` only tells whom to call. StoreView has `lock`, the path of the holder's lock,
None without one, and `released`.

A shared store needs: an atomic mkdir, and that a name which one process has made is found by another process that opens
the directory afterwards. Local file systems, NFS, GFS2, OCFS2 and CephFS have both.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from atalanta.files.replace import replace_file, sync_folder
from atalanta.ha.folder_lease import ACTIVE, RELEASED, EpochView, FolderCandidate, FolderRecord
from atalanta.ha.lease import LeaseTerms
from atalanta.runtime.disk.data_folder import (
    NODE_ID_NAME,
    make_folder,
    read_node_id,
    refuse_orphans,
)
from atalanta.runtime.disk.folder_lock import DataFolderError, lock_folder
from atalanta.runtime.ha.epoch_folders import Epochs
from atalanta.runtime.ha.epoch_lost import EpochLost
from atalanta.runtime.ha.epoch_names import EPOCHS_NAME
from atalanta.runtime.ha.held_epoch import HeldEpoch
from atalanta.runtime.ha.holder_lock import FREE, LOCK_NAME, LOCKED, MISSING, boot_id, look_at_lock
from atalanta.runtime.ha.inheritance import empty, inherit, mark_complete
from atalanta.runtime.ha.lease_file import LEASE_NAME, decode_record, read_content

__all__ = ["HeldEpoch", "SharedStore", "StoreView"]

MEMBERS_NAME: Final = "members"
# Two processes that start with a new folder at the same time: one of them waits for the other.
FOUND_TRIES: Final = 20
FOUND_WAIT_S: Final = 0.1
# What stays of an epoch that could not be completed: it tells that its holder has released it.
RECORD_NAMES: Final = (LEASE_NAME, LOCK_NAME)
# A file of an attempt, as large as lock and lease of an epoch.
ROOM_NAME: Final = "room"
ROOM_BYTES: Final = 8192


@dataclass(frozen=True)
class StoreView(EpochView):
    """The findings of a look.

    `lock`: the path of the holder's lock, None if there is none. `locked`: its holder lives.
    """

    lock: Path | None = None
    locked: bool = False

    @property
    def holder(self) -> str:
        """Returns the name of the holder for people; "" if it is unknown, or there is none."""
        return "" if self.record is None or self.state != ACTIVE else self.record.holder


class SharedStore:
    """The shared folders of a pair, as one process sees them. Used by one thread at a time.

    `journal`, `pages_root` and `large_root` are the configured folders; page files and large messages are in a folder
    of the node id below. `new_id` returns 16 bytes for a new pair.
    """

    def __init__(
        self,
        journal: Path,
        pages_root: Path,
        large_root: Path,
        terms: LeaseTerms,
        new_id: Callable[[], bytes],
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        adopts: bool = False,
    ) -> None:
        """Opens the folder, or makes it one of a pair; a node without a pair must not use it then.

        `adopts`: an epoch goes on with the files of the one before, where that is possible. Raises DataFolderError or
        OSError.
        """
        self.journal = journal.absolute()
        self.members_folder = self.journal / MEMBERS_NAME
        self.terms = terms
        self._monotonic_ns = monotonic_ns
        self._adopts = adopts
        self._boot = boot_id()
        self._candidate = FolderCandidate(terms)
        self._seen_locked = 0  # the epoch whose lock was seen locked last
        self._begun = 0  # the last epoch that this process has made and could not complete
        self.reached = False  # this process could look at it and write its own file, once
        self.node_id: uuid.UUID = found_store(self.journal, new_id)
        pages, large = (root.absolute() / str(self.node_id) for root in (pages_root, large_root))
        for folder in (pages, large):
            make_folder(folder)
        self._epochs = Epochs(self.journal, pages, large)

    def look(self) -> StoreView:
        """Reads the newest epoch, and whether its holder has ended. Raises OSError."""
        view = self._view(self._epochs.newest())
        self._candidate.on_look(self._monotonic_ns(), view)
        return view

    def announced(self, since_ns: int) -> None:
        """Records since when this process writes its file among the members, without a gap."""
        self._candidate.on_announced(since_ns)

    def may_take(self, view: StoreView, primary: bool, now_ns: int) -> str:
        """Returns why `take` may be called after the look that returned `view`, "" if it may not.

        `now_ns` is an instant of the monotonic clock.
        """
        return self._candidate.may_take(now_ns, primary)

    def silence_ms(self, view: StoreView) -> int:
        """Returns for how many ms a holder may be silent before its store may be taken."""
        return self._candidate.silence_ns(view) // 1_000_000

    def take(self, holder: str = "") -> HeldEpoch | None:
        """Makes the next epoch and everything in it. Returns None if another process was faster. Blocking.

        It waits until every earlier lease is over. `holder` names this process for people. Raises OSError; the epoch is
        left to the next taker then, who inherits from the same one. The next `take` of this process tries in the
        folders of that epoch first, and makes another one only if everything could be inherited there.
        DataFolderDamaged before the epoch is made if an epoch that was served is not marked as complete.
        """
        seen = self._candidate.seen or self.look()
        number = seen.epoch + 1
        self._epochs.folders(self._epochs.newest_complete(number))
        if self._begun:
            self._try_in_begun(number)
            again = self.look()
            if (again.epoch, again.content) != (seen.epoch, seen.content):
                return None  # that took its time, and the holder has renewed, or another process was faster
        if not self._epochs.make(number):
            return None
        self._begun = number
        folders = self._epochs.with_base(number, number)
        held: HeldEpoch | None = None
        try:
            self._epochs.sync()
            made_ns = self._monotonic_ns()
            source = self._epochs.newest_complete(number)
            origin = self._epochs.folders(source)
            ended = self._view(source).has_ended(self._boot)
            if self._adopts and ended:
                folders = self._epochs.with_base(number, origin.base)
            held = HeldEpoch(
                self._epochs,
                folders,
                self.terms,
                holder or f"process {os.getpid()} of {socket.gethostname()}",
                source,
                self._last_ns(source, number),
                self.members_folder if self._adopts else None,
            )
            # Takers that failed after it have sent nothing.
            wait_ns = 0 if ended else self._candidate.wait_ns(made_ns, self._view(number - 1))
            if not folders.adopted:
                inherit(origin, folders, self.node_id.bytes, held.check)
            while (left_ns := made_ns + wait_ns - self._monotonic_ns()) > 0:
                held.check()
                time.sleep(min(left_ns / 1e9, 0.05))
            held.check()
            self._begun = 0  # from here on others may find it complete
            mark_complete(folders)
            held.check()
        except EpochLost:
            self._begun = 0
            if held is not None:
                held.abandon()
            return None
        except BaseException:
            if held is not None:
                held.stop(RELEASED)
            if self._begun:
                with contextlib.suppress(OSError):
                    empty(folders, RECORD_NAMES)  # the disk may be full; the next epoch needs the room
            raise
        return held

    def has_begun(self, number: int) -> bool:
        """Returns whether this process has made the epoch, and could not complete it.

        Nobody reads the folders of an incomplete epoch, and no other process writes there.
        """
        return 0 < number == self._begun

    def _try_in_begun(self, number: int) -> None:
        """Inherits what epoch `number` would inherit in the folders of the epoch begun. Raises OSError.

        Otherwise a store without room would get a directory with each attempt; none is ever removed.
        """
        folders = self._epochs.folders(self._begun)
        source = self._epochs.folders(self._epochs.newest_complete(number))
        empty(folders, RECORD_NAMES)
        adopts = self._adopts and self._view(source.number).has_ended(self._boot)
        try:
            replace_file(folders.journal / ROOM_NAME, bytes(ROOM_BYTES))
            if not adopts:
                inherit(source, folders, self.node_id.bytes, lambda: None)
        except BaseException:
            with contextlib.suppress(OSError):
                empty(folders, RECORD_NAMES)
            raise
        empty(folders, RECORD_NAMES)
        self._begun = 0

    def _view(self, number: int) -> StoreView:
        """Reads one epoch."""
        view, locked = read_view(self._epochs, number, self._boot, self._seen_locked)
        if locked:
            self._seen_locked = number
        return view

    def _last_ns(self, source: int, number: int) -> int:
        """Returns the last instant of the clock of the epochs before `number`, as if it had run on until now; 0 if none
        is known."""
        now = self._monotonic_ns()
        return self._candidate.inherited_instant(now, source, number, self._record).at(now)

    def _record(self, number: int) -> FolderRecord | None:
        return decode_record(read_content(self._epochs.with_base(number, number).mark))


def look_at_store(journal: Path) -> StoreView:
    """Reads the newest epoch of a pair, for an operator: changes nothing. Raises OSError.

    `holder_gone` is known for a holder of this machine only.
    """
    epochs = Epochs(journal, journal, journal)
    return read_view(epochs, epochs.newest(), boot_id(), 0)[0]


def read_view(epochs: Epochs, number: int, boot: str, seen_locked: int) -> tuple[StoreView, bool]:
    """Reads one epoch. Returns the view, and whether the holder's lock is locked.

    `boot` is the boot id of this machine; `seen_locked` the epoch whose lock this process has seen locked.
    """
    if number == 0:
        return StoreView(0), False
    folder = epochs.with_base(number, number).mark
    complete = epochs.is_complete(number)
    # The lock before the record: a holder that has ended in good order has written its last record.
    lock = look_at_lock(folder)
    content = read_content(folder)
    record = decode_record(content)
    same_machine = record is not None and record.boot == boot != ""
    gone = lock == FREE and (seen_locked == number or same_machine)
    path = None if lock == MISSING else folder / LOCK_NAME
    return StoreView(number, complete, record, content, gone, path, lock == LOCKED), lock == LOCKED


def found_store(journal: Path, new_id: Callable[[], bytes]) -> uuid.UUID:
    """Returns the node id of the pair. Makes the folder of a new pair, or one out of that of a node that is stopped.

    Raises DataFolderError, also if that node still runs, or OSError.
    """
    make_folder(journal)
    for tries_left in reversed(range(FOUND_TRIES)):
        if (journal / EPOCHS_NAME).is_dir():
            break
        try:
            lock = lock_folder(journal)
        except DataFolderError:
            if not tries_left:
                raise
            time.sleep(FOUND_WAIT_S)
            continue
        try:
            if read_node_id(journal) is None:
                refuse_orphans(journal, journal)
                replace_file(journal / NODE_ID_NAME, f"{uuid.UUID(bytes=new_id())}\n".encode("ascii"))
            (journal / EPOCHS_NAME).mkdir(mode=0o750, exist_ok=True)
            sync_folder(journal)
        finally:
            lock.close()
    node_id = read_node_id(journal)
    if node_id is None:
        raise DataFolderError(f"{journal / NODE_ID_NAME} is missing: put the file back; its text is the node id")
    return node_id
