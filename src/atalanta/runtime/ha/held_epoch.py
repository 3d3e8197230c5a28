"""An epoch that this process holds: its thread renews the lease, and everything that leaves the node asks it.

- `check` before a commit is answered: the next epoch does not exist.
- `hold` before output leaves: the lease holds by the own clock. When it is over, the caller waits until the thread has
  renewed it, or has lost the epoch.

A loss is final: both raise EpochLost from then on. The thread needs no event loop, so a loop that waits in `hold`
stands still and loses nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from atalanta.ha.folder_lease import FolderHolder
from atalanta.ha.last_instant import NO_INSTANT, LastInstant
from atalanta.ha.lease import LeaseTerms
from atalanta.runtime.clock import steady_ns
from atalanta.runtime.disk.descriptors import DescriptorReserve
from atalanta.runtime.disk.folder_lock import DataFolderDamaged
from atalanta.runtime.ha.epoch_folders import EpochFolders, Epochs, present
from atalanta.runtime.ha.epoch_lost import EpochLost
from atalanta.runtime.ha.epoch_names import epoch_name
from atalanta.runtime.ha.holder_lock import HolderLock, boot_id
from atalanta.runtime.ha.inheritance import empty
from atalanta.runtime.ha.lease_file import LeaseFile
from atalanta.runtime.ha.member_file import SilentMembers, has_members
from atalanta.runtime.process.logs import log_event

logger = logging.getLogger("atalanta.runtime")

# A lease is renewed so many times in its length.
RENEWALS: Final = 4
# How long others wait for a holder that reads its journal: compiled code may keep the interpreter's lock for long.
START_PATIENCE_NS: Final = 60_000_000_000
# A stop does not wait longer for a folder that does not answer.
STOP_WAIT_S: Final = 5.0


class HeldEpoch:
    """One epoch of this process, made by SharedStore.take. `journal`, `pages` and `large` are its folders.

    `last_ns()` is the last instant of the former holder's clock (nanoseconds since 1970, 0 if there was none), as if it
    had run on until now: the node's clock begins there if it is ahead. `source` is the epoch that it inherits from, 0
    for the files of a node without a pair.
    """

    def __init__(
        self,
        epochs: Epochs,
        folders: EpochFolders,
        terms: LeaseTerms,
        holder: str,
        source: int,
        last_ns: int,
        members: Path | None = None,
        monotonic_ns: Callable[[], int] = steady_ns,
    ) -> None:
        """Locks the epoch and renews its lease for the first time. `last_ns`: as it is now. Raises OSError.

        `members`: the folder with the files of other processes, which are looked for before each renewal; None: every
        renewal is written.
        """
        self.epoch = folders.number
        self.journal: Path = folders.journal
        self.pages: Path = folders.pages
        self.large: Path = folders.large
        self.base = folders.base
        self._last = LastInstant(last_ns, monotonic_ns()) if last_ns else NO_INSTANT
        self.source = source
        self.why_lost = ""
        self._epochs = epochs
        self._members = None if members is None else SilentMembers(members)
        self._files = DescriptorReserve()
        self._monotonic_ns = monotonic_ns
        # The node's clock. Until it begins, nobody has seen any other one than that of the former holder.
        self._clock_ns: Callable[[], int] = self.last_ns
        self._tell_lost: Callable[[str], None] | None = None
        # Guards the holder's state and `why_lost`; waiting callers of `hold` are told of every change.
        self._changed = threading.Condition()
        self._holder = FolderHolder(terms, folders.number, holder, boot_id(), START_PATIENCE_NS)
        # A copy of the holder's, read without the lock; 0 until the first output.
        self._until_ns = 0
        self._failing_since_ns = -1
        self._stopping = threading.Event()
        self._due = threading.Event()  # the thread renews, or ends, at once
        self._thread = threading.Thread(target=self._renew_again, name="lease", daemon=True)
        self._lock = HolderLock(folders.mark)
        try:
            self._file = LeaseFile(folders.mark)
            self._renew()
        except BaseException:
            self._lock.close()
            raise
        self._thread.start()

    def last_ns(self) -> int:
        """Returns the last instant of the former holder's clock, as if it had run on until now. Any thread."""
        return self._last.at(self._monotonic_ns())

    def start(self, lost: Callable[[str], None], clock_ns: Callable[[], int]) -> None:
        """Begins to tell `lost` of the loss of the epoch, once and from any thread, and to record the node's clock.

        Also removes the files of earlier epochs, on a thread of its own.
        """
        self._clock_ns = clock_ns
        with self._changed:
            self._tell_lost = lost
            why = self.why_lost
        if why:
            lost(why)
        threading.Thread(target=self._empty_earlier, name="earlier-epochs", daemon=True).start()

    # --- asked before anything leaves the node ----------------------------------------------------

    def check(self) -> None:
        """Raises EpochLost if another process could have read the folder before the last sync. Any thread."""
        if self.why_lost:
            raise EpochLost(self.why_lost)
        try:
            taken = self._taken()
        except OSError as error:
            self._lose(f"{self._epochs.marks} cannot be read: {error}")
        else:
            if not taken:
                return
            self._lose_to_another()
        raise EpochLost(self.why_lost)

    def hold(self) -> None:
        """Returns while the lease holds, waits while it is over, raises EpochLost when it is lost. Any thread."""
        if self._monotonic_ns() < self._until_ns:
            return
        if self._holder.starts and not self.why_lost:
            self._begin_to_serve()
            return self.hold()
        begin_ns = self._monotonic_ns()
        log_event(logger, "lease_expired", {"epoch": self.epoch})
        with self._changed:
            while not self.why_lost and self._monotonic_ns() >= self._until_ns:
                self._changed.wait()
            if self.why_lost:
                raise EpochLost(self.why_lost)
        waited_ms = (self._monotonic_ns() - begin_ns) // 1_000_000
        log_event(logger, "lease_renewed", {"epoch": self.epoch, "waited_ms": waited_ms})

    def check_locks(self) -> None:
        """Does nothing: a file that a late holder makes is in its own folder. (See app.storage.JournalFolder.)"""

    # --- the end ----------------------------------------------------------------------------------

    def stop(self, state: str) -> None:
        """Ends the epoch in good order, after the last output: `state` is "released" or "stopped".

        Nothing is confirmed or sent any more. Blocking; does not raise OSError: the released lock tells the same as
        "released", only later.
        """
        self._end("the epoch was given up")
        if not self._thread.is_alive() and not self._holder.lost:
            record = self._holder.next_record(self._clock_ns(), state)
            try:
                self._file.write(record)
            except OSError as error:
                log_event(logger, "lease_write_failed", {"epoch": self.epoch, "why": error})
        self._close()

    def abandon(self) -> None:
        """Ends the epoch after a failure: the release of the lock, or the end of the lease, tells it. Blocking."""
        self._end("the epoch was abandoned")
        self._close()

    def close(self) -> None:
        """Implements app.storage.JournalFolder.close: the epoch outlives the disk."""

    def _end(self, why: str) -> None:
        with self._changed:
            self._until_ns = 0
            self.why_lost = self.why_lost or why
            self._tell_lost = None
            self._changed.notify_all()
        self._stopping.set()
        self._due.set()
        if self._thread is not threading.current_thread():
            self._thread.join(STOP_WAIT_S)

    def _close(self) -> None:
        self._lock.close()
        if not self._thread.is_alive():
            self._file.close()
            self._files.close_all()

    # --- the thread -------------------------------------------------------------------------------

    def _renew_again(self) -> None:
        interval_s = self._holder.terms.length_ns / 1e9 / RENEWALS
        while True:
            self._due.wait(interval_s)
            self._due.clear()
            if self._stopping.is_set():
                return
            try:
                self._renew()
            except OSError as error:
                self._failed(error)
            except Exception as bug:  # without this thread, output would wait for ever
                log_event(logger, "lease_bug", {"epoch": self.epoch}, bug)
                self._lose(f"the lease cannot be renewed: {bug}")
            if self.why_lost:
                return

    def _renew(self) -> None:
        """Locks, writes the next record, then looks for the next epoch; the lease counts from before. Raises OSError.

        Nothing is written as long as no other process has told of itself.
        """
        holder = self._holder
        sent_ns = self._monotonic_ns()
        others = self._members
        self._lock.renew()
        if holder.must_write() or others is None or has_members(others.folder):
            self._file.write(holder.next_record(self._clock_ns()))
            if others is not None:
                others.remove(sent_ns)
        taken = self._taken()
        with self._changed:
            if self.why_lost:
                return
            holder.on_renewed(sent_ns, taken)
            if not holder.starts:
                self._until_ns = holder.until_ns
            self._failing_since_ns = -1
            self._changed.notify_all()
        if taken:
            self._lose_to_another()

    def _begin_to_serve(self) -> None:
        """Begins with the first output: until then nobody waited for it, and others have been patient. The renewal that
        follows at once asks them for no patience any more."""
        with self._changed:
            self._holder.serves()
            self._until_ns = 0 if self.why_lost else self._holder.until_ns
        self._due.set()

    def _failed(self, error: OSError) -> None:
        """Goes on after an error; one that stays for a whole lease ends the epoch, since no output could leave."""
        now = self._monotonic_ns()
        if self._failing_since_ns < 0:
            self._failing_since_ns = now
            log_event(logger, "lease_write_failed", {"epoch": self.epoch, "why": error})
        elif now >= self._failing_since_ns + self._holder.terms.wait_ns:
            self._lose(f"the lease in {self.journal} cannot be renewed: {error}")

    def _taken(self) -> bool:
        return present(self._epochs.marks, epoch_name(self.epoch + 1), self._files)

    def _lose_to_another(self) -> None:
        self._lose(f"another process has taken epoch {self.epoch + 1} of {self._epochs.journal}")

    def _lose(self, why: str) -> None:
        """Ends the epoch for good; the first reason counts."""
        with self._changed:
            if self.why_lost:
                return
            self.why_lost = why
            self._holder.on_look(True)
            self._until_ns = 0
            tell = self._tell_lost
            self._changed.notify_all()
        log_event(logger, "epoch_lost", {"epoch": self.epoch, "why": why})
        if tell is not None:
            tell(why)

    def _empty_earlier(self) -> None:
        """Removes the files of earlier epochs, but those that this one goes on with: nobody reads them any more."""
        for number in self._epochs.numbers():
            if number < self.epoch and number != self.base and not self._stopping.is_set():
                try:
                    empty(self._epochs.folders(number))
                except (OSError, DataFolderDamaged) as error:
                    log_event(logger, "epoch_not_emptied", {"epoch": number, "why": error})
