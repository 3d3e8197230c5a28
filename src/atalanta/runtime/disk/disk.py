"""The Disk port on a real folder: one worker thread carries out the jobs in order.

The thread exists because fdatasync blocks; meanwhile the interpreter's lock is free. But passing a job to the
thread and the answer back takes about as long as a commit on a fast disk. So the node's thread does such commits
itself, at the end of its event-loop iteration. It does so while recent commits were short
(runtime/disk/inline_commit.py) and no other job is in progress (`commit_at_turn_end`). The worker gets its commits
there, too: while the node's thread still sends output, the two would compete for the interpreter's lock.

The first job that fails is reported and ends all work. After a failed sync the page cache may report success
although the data is lost, so no job is tried again. A full disk is no failure as long as there is a reserve
(runtime/disk/reserve.py), or the new file is not needed yet.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue

from atalanta.kernel.ports import Disk
from atalanta.runtime.disk.commit_file import CommitFile, write_all, write_synced
from atalanta.runtime.disk.descriptors import DescriptorReserve
from atalanta.runtime.disk.inline_commit import OwnCommits
from atalanta.runtime.disk.reserve import NO_ROOM, DiskReserve, write_zeroed
from atalanta.runtime.ha.epoch_lost import EpochLost
from atalanta.runtime.process.logs import log_event

logger = logging.getLogger("atalanta.runtime")

Job = Callable[[], None]


class FileDisk(Disk):
    """The files of one existing folder; files whose names begin with a key of `elsewhere` are in another folder.

    `call_soon` schedules a call from the worker on the node's thread, like `loop.call_soon_threadsafe`.
    `committed(token)`, `failed(why)` and `no_room(name)` are called that way. `check_locks` raises an error if the
    folder is no longer locked by this process; it is called before a file is made.

    `check`, for a folder that a successor may read at any time: called after the sync of each commit, before its
    answer; EpochLost ends all work like a failed write. Then no file is written in place that a successor may have
    linked: none is used again, and a new file is never made in an existing one.
    """

    def __init__(
        self,
        folder: Path,
        call_soon: Callable[..., object],
        committed: Callable[[int], None],
        failed: Callable[[str], None],
        elsewhere: Mapping[str, Path] | None = None,
        check_locks: Callable[[], None] | None = None,
        reserve: DiskReserve | None = None,
        no_room: Callable[[str], None] | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self.folder = folder
        self._check = check
        self._check_locks = check_locks
        self._reserve = reserve
        self._no_room = no_room
        self._elsewhere = dict(elsewhere or {})
        self._call_soon = call_soon
        self._committed = committed
        self._failed = failed
        # Jobs whose end has not reached the node's thread. Only that thread counts.
        self._open_jobs = 0
        self._broken = False
        self._closed = False
        # time.monotonic() at the start of the current job, 0.0 without one; read by
        # runtime/lifecycle/critical_analyzer.py.
        self.busy_since = 0.0
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._worker: threading.Thread | None = None
        # The last file read is kept open by the node's thread, the last file written by the worker.
        self._read_name = ""
        self._read_file = -1
        self._files = DescriptorReserve()
        self._write_file = CommitFile(self._files)
        # None: all commits are the worker's. The thread that does a commit records its time; only one does at a
        # time.
        self._own: OwnCommits | None = None
        # The commit for the end of this iteration, of either thread: name, offset, data, token, more.
        self._own_commit: tuple[str, int, bytes, int, bytes] | None = None
        # Jobs that follow this commit.
        self._behind: list[Job] = []

    def commit_at_turn_end(self) -> None:
        """Begins a commit only at the end of an event-loop iteration, and allows short ones on the node's thread. The
        caller then calls `end_turn` after every iteration."""
        self._own = OwnCommits()

    # --- what the shell asks ----------------------------------------------------------------------

    def idle(self) -> bool:
        """Returns whether every job was done and answered; true after a failure too."""
        return self._open_jobs == 0 or self._broken

    def close(self) -> None:
        """Completes the waiting jobs, ends the worker and closes the files. May be called twice."""
        if self._closed:
            return
        self._hand_over()
        self._closed = True
        if self._worker is not None:
            self._jobs.put(None)
            self._worker.join()
        self._close_read_file()
        self._files.close_all()

    # --- the Disk port, at once -------------------------------------------------------------------

    def names(self) -> list[str]:
        """Returns the names of the files in the folders, sorted."""
        found: list[str] = []
        for folder in dict.fromkeys([self.folder, *self._elsewhere.values()]):
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False) and self._folder(entry.name) == folder:
                        found.append(entry.name)
        return sorted(found)

    def _folder(self, name: str) -> Path:
        for prefix, folder in self._elsewhere.items():
            if name.startswith(prefix):
                return folder
        return self.folder

    def size(self, name: str) -> int:
        """Returns the length of the file in bytes."""
        return (self._folder(name) / name).stat().st_size

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Reads up to `size` bytes; fewer only at the end of the file."""
        if name != self._read_name:
            self._close_read_file()
            self._read_file = self._files.open(self._folder(name) / name, os.O_RDONLY)
            self._read_name = name
        pieces: list[bytes] = []
        while size > 0:
            piece = os.pread(self._read_file, size, offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def repair(self, name: str, offset: int, data: bytes) -> None:
        """Overwrites data and syncs the file and the folder, before it returns."""
        file = self._files.open(self._folder(name) / name, os.O_WRONLY)
        try:
            write_all(file, offset, data)
            os.fsync(file)
        finally:
            self._files.close(file)
        self._sync_folder(name)

    # --- the Disk port, by the worker -------------------------------------------------------------

    def create(self, name: str, size: int, head: bytes) -> None:
        """Adds a job: create a file with `head` and then zeros, so that later commits change no metadata."""
        self._forget(name)
        self._add(lambda: self._do_create(name, size, head, True))

    def create_spare(self, name: str, size: int, head: bytes) -> None:
        """Adds a job: create a file, if there is room for it."""
        self._forget(name)
        self._add(lambda: self._do_create(name, size, head, False))

    def commit(self, name: str, offset: int, data: bytes, token: int, more: bytes = b"") -> None:
        """Adds a job: write, fdatasync, then `committed(token)`."""
        if self._own is not None and self._open_jobs == 0 and not self._broken and not self._closed:
            self._open_jobs = 1
            self._own_commit = (name, offset, data, token, more)
            return
        self._add(lambda: self._do_commit(name, offset, data, token, more))

    def delete(self, name: str) -> None:
        """Adds a job: unlink, sync the folder."""
        self._forget(name)
        self._add(lambda: self._do_delete(name))

    def recycles(self) -> bool:
        """Returns whether files may be used again: not those that a successor may have linked."""
        return self._check is None

    def set_aside(self, name: str, spare_name: str) -> None:
        """Adds a job: rename, sync the folder."""
        self._forget(name)
        self._add(lambda: self._do_set_aside(name, spare_name))

    def reuse(self, spare_name: str, name: str, head: bytes) -> None:
        """Adds a job: write the header, sync, rename, sync the folder."""
        self._forget(spare_name)
        self._forget(name)
        self._add(lambda: self._do_reuse(spare_name, name, head))

    @property
    def commit_waits(self) -> bool:
        """Returns whether `end_turn` has a commit to do."""
        return self._own_commit is not None

    def end_turn(self) -> int:
        """Does the waiting commit, or gives it to the worker, after the node's output was sent. Returns the bytes that
        it has committed; 0 if there are none."""
        waiting = self._own_commit
        if waiting is None:
            return 0
        name, offset, data, token, more = waiting
        size = len(data) + len(more)
        if self._own is not None and not self._own.wanted(size):
            self._hand_over()
            return 0
        self._own_commit = None
        behind, self._behind = self._behind, []
        try:
            took_s = self._write_commit(name, offset, data, more)
        except (OSError, EpochLost) as error:
            self._answer_failed(self._failure(error))
            return size
        if self._own is not None:
            self._own.own(size, took_s)
        for job in behind:
            self._give(job)
        self._answer(token)
        return size

    def _hand_over(self) -> None:
        """Passes the waiting commit and the jobs behind it to the worker."""
        waiting, self._own_commit = self._own_commit, None
        behind, self._behind = self._behind, []
        if waiting is not None:
            name, offset, data, token, more = waiting
            self._give(lambda: self._do_commit(name, offset, data, token, more))
        for job in behind:
            self._give(job)

    def _add(self, job: Job) -> None:
        if self._closed:
            raise RuntimeError(f"{self.folder}: the disk is closed")
        if self._broken:
            return
        self._open_jobs += 1
        if self._own_commit is not None:
            self._behind.append(job)
        else:
            self._give(job)

    def _give(self, job: Job) -> None:
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="journal-disk", daemon=True)
            self._worker.start()
        self._jobs.put(job)

    def _forget(self, name: str) -> None:
        """Closes the deleted file: its space is freed only when no descriptor is open."""
        if name == self._read_name:
            self._close_read_file()

    def _close_read_file(self) -> None:
        if self._read_file >= 0:
            self._files.close(self._read_file)
        self._read_name = ""
        self._read_file = -1

    def _answer(self, token: int) -> None:
        """Records on the node's thread that a job is done; token 0 is not a commit."""
        self._open_jobs -= 1
        if token:
            self._committed(token)

    def _answer_failed(self, why: str) -> None:
        """Records on the node's thread that the disk failed."""
        self._broken = True
        self._failed(why)

    # --- on the worker ----------------------------------------------------------------------------

    def _work(self) -> None:
        broken = False
        while True:
            job = self._jobs.get()
            if job is None:
                break
            if broken:
                continue
            self.busy_since = time.monotonic()
            try:
                job()
            except Exception as error:
                # After any error, no later job may be done.
                broken = True
                self._report(self._answer_failed, self._failure(error))
            self.busy_since = 0.0
        self._write_file.close()

    def _failure(self, error: Exception) -> str:
        if isinstance(error, EpochLost):
            return str(error)  # told by who lost it
        why = f"{self.folder}: {error}"
        log_event(logger, "disk_error", {"why": why}, error)
        return why

    def _report(self, call: Callable[..., None], argument: object) -> None:
        try:
            self._call_soon(call, argument)
        except RuntimeError as error:
            # The loop is closed already: nothing further is confirmed.
            log_event(logger, "journal_answer_lost", {"why": error})

    def _do_create(self, name: str, size: int, head: bytes, needed: bool) -> None:
        if self._check_locks is not None:
            self._check_locks()
        self._write_file.close()
        path = self._folder(name) / name
        try:
            self._write_new(path, size, head)
        except OSError as error:
            if error.errno not in NO_ROOM or self._no_room is None:
                raise
            path.unlink(missing_ok=True)
            if self._reserve is not None and self._reserve.take(path, size, head):
                self._report(self._no_room, "")
            elif needed:
                raise
            else:
                self._report(self._no_room, name)
        self._sync_folder(name)
        self._report(self._answer, 0)

    def _write_new(self, path: Path, size: int, head: bytes) -> None:
        if self._check is not None:
            path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        file = self._files.open(path, flags, 0o640)
        try:
            write_zeroed(file, size, head)
        finally:
            self._files.close(file)

    def _do_set_aside(self, name: str, spare_name: str) -> None:
        if name == self._write_file.name:
            self._write_file.close()
        with contextlib.suppress(FileNotFoundError):  # an earlier job has deleted it
            os.rename(self._folder(name) / name, self._folder(spare_name) / spare_name)
        self._sync_folder(name)
        self._report(self._answer, 0)

    def _do_reuse(self, spare_name: str, name: str, head: bytes) -> None:
        if self._check_locks is not None:
            self._check_locks()
        if name == self._write_file.name:
            self._write_file.close()
        old, new = self._folder(spare_name) / spare_name, self._folder(name) / name
        file = self._files.open(old, os.O_WRONLY)
        try:
            write_synced(file, 0, head)
        finally:
            self._files.close(file)
        os.rename(old, new)
        self._sync_folder(name)
        self._report(self._forget, name)  # the open file may be the one that was replaced
        self._report(self._answer, 0)

    def _do_commit(self, name: str, offset: int, data: bytes, token: int, more: bytes) -> None:
        took_s = self._write_commit(name, offset, data, more)
        if self._own is not None:
            self._own.worker(len(data) + len(more), took_s)
        self._report(self._answer, token)

    def _write_commit(self, name: str, offset: int, data: bytes, more: bytes) -> float:
        """Writes a commit. Returns its duration in seconds."""
        begin = self.busy_since = time.monotonic()
        file = self._write_file
        if name != file.name:
            file.open(name, self._folder(name) / name)
        file.write(offset, data, more)
        if self._check is not None:
            self._check()
        self.busy_since = 0.0
        return time.monotonic() - begin

    def _do_delete(self, name: str) -> None:
        if name == self._write_file.name:
            self._write_file.close()
        (self._folder(name) / name).unlink(missing_ok=True)  # an operator may have removed a page file
        self._sync_folder(name)
        self._report(self._answer, 0)

    def _sync_folder(self, name: str) -> None:
        folder = self._files.open(self._folder(name), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            self._files.close(folder)
