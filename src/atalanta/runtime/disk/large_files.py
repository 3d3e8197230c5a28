"""The LargeFiles port on a real folder: one worker thread writes, syncs, reads and deletes, in order.

Its jobs are separate from the journal's, so that a large message does not delay small ones. A file that cannot
be written is reported and abandoned; all other files continue. A file that will be synced is synced every few
MiB, so that the last sync is short.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from atalanta.files.replace import sync_folder
from atalanta.kernel.ports import LargeFiles
from atalanta.runtime.disk.commit_file import sync_data, write_all
from atalanta.runtime.disk.descriptors import DescriptorReserve

logger = logging.getLogger("atalanta.runtime")

SUFFIX = ".msg"  # as Artemis names them
SYNC_BYTES = 16 << 20
OPEN_FILES_MAX = 64

Job = Callable[[], None]


def sizes_of_files(folder: Path) -> dict[int, int]:
    """Returns the sizes of a folder's bodies by number. OSError."""
    found: dict[int, int] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            digits = name.removesuffix(SUFFIX)
            if name.endswith(SUFFIX) and digits.isascii() and digits.isdigit():
                found[int(digits)] = entry.stat(follow_symlinks=False).st_size
    return found


class OpenFile:
    """A file that the worker has open; `end` is the offset of the next append."""

    def __init__(self, descriptor: int, end: int) -> None:
        self.descriptor = descriptor
        self.end = end


class FolderLargeFiles(LargeFiles):
    """The files of one existing folder; other names in it are ignored."""

    def __init__(
        self,
        folder: Path,
        call_soon: Callable[..., object],
        written: Callable[[int, int], None],
        synced: Callable[[int], None],
        failed: Callable[[int, str], None],
        read_back: Callable[[int, bytes], None],
        syncs: bool = True,
    ) -> None:
        self.folder = folder
        self._syncs = syncs  # large-message-sync
        self._call_soon = call_soon
        self._written = written
        self._synced = synced
        self._failed = failed
        self._read_back = read_back
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._worker: threading.Thread | None = None
        self._closed = False
        # Used only by the worker: open files by number, the least recently used first.
        self._files = DescriptorReserve()
        self._open: dict[int, OpenFile] = {}
        self._unsynced: dict[int, int] = {}  # bytes, of files that will be synced
        self._given_up: dict[int, bool] = {}

    def close(self) -> None:
        """Completes the waiting jobs, then ends the worker. May be called twice."""
        if self._closed:
            return
        self._closed = True
        if self._worker is not None:
            self._jobs.put(None)
            self._worker.join()
        self._files.close_all()

    # --- the port ---------------------------------------------------------------------------------

    def files(self) -> dict[int, int]:
        """Implements LargeFiles.files."""
        return sizes_of_files(self.folder)

    def create(self, file: int, will_sync: bool) -> None:
        """Implements LargeFiles.create."""
        self._add(lambda: self._write(file, lambda: self._do_create(file, will_sync)))

    def append(self, file: int, data: bytes) -> None:
        """Implements LargeFiles.append."""
        self._add(lambda: self._write(file, lambda: self._do_append(file, data)))

    def sync(self, file: int) -> None:
        """Implements LargeFiles.sync."""
        self._add(lambda: self._write(file, lambda: self._do_sync(file)))

    def rename(self, file: int, number: int) -> None:
        """Implements LargeFiles.rename."""
        self._add(lambda: self._write(file, lambda: self._do_rename(file, number)))

    def read(self, file: int, offset: int, size: int, token: int) -> None:
        """Implements LargeFiles.read."""
        self._add(lambda: self._do_read(file, offset, size, token))

    def delete(self, file: int) -> None:
        """Implements LargeFiles.delete."""
        self._add(lambda: self._do_delete(file))

    def _add(self, job: Job) -> None:
        if self._closed:
            return
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="large-files", daemon=True)
            self._worker.start()
        self._jobs.put(job)

    # --- on the worker ----------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                break
            job()
        for number in list(self._open):
            self._forget(number)

    def _report(self, call: Callable[..., None], *arguments: object) -> None:
        try:
            self._call_soon(call, *arguments)
        except RuntimeError as error:
            # The loop is closed already: the answer is not needed.
            logger.warning("large_file_answer_lost why=%s", error)

    def _write(self, file: int, job: Job) -> None:
        """Does a job that changes a file, unless the file was abandoned."""
        if file in self._given_up:
            return
        try:
            job()
        except OSError as error:
            self._given_up[file] = True
            self._forget(file)
            self._report(self._failed, file, error.strerror or "the file system does not say why")

    def _path(self, file: int) -> Path:
        return self.folder / f"{file}{SUFFIX}"

    def _do_create(self, file: int, will_sync: bool) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        self._keep(file, OpenFile(self._files.open(self._path(file), flags, 0o640), 0))
        if will_sync and self._syncs:
            self._unsynced[file] = 0

    def _do_append(self, file: int, data: bytes) -> None:
        found = self._file(file)
        write_all(found.descriptor, found.end, data)
        found.end += len(data)
        if file in self._unsynced:
            self._unsynced[file] += len(data)
            if self._unsynced[file] >= SYNC_BYTES:
                sync_data(found.descriptor)
                self._unsynced[file] = 0
        self._report(self._written, file, len(data))

    def _do_sync(self, file: int) -> None:
        if self._syncs:
            os.fsync(self._file(file).descriptor)
            sync_folder(self.folder)
        self._unsynced.pop(file, None)
        self._report(self._synced, file)

    def _do_rename(self, file: int, number: int) -> None:
        if self._syncs:
            os.fsync(self._file(file).descriptor)
        self._forget(file)
        self._forget(number)
        self._path(file).replace(self._path(number))
        if self._syncs:
            sync_folder(self.folder)
        self._unsynced.pop(file, None)
        self._report(self._synced, number)

    def _do_read(self, file: int, offset: int, size: int, token: int) -> None:
        pieces: list[bytes] = []
        try:
            descriptor = self._file(file).descriptor
            while size > 0:
                piece = os.pread(descriptor, size, offset)
                if not piece:
                    break
                pieces.append(piece)
                offset += len(piece)
                size -= len(piece)
        except OSError as error:
            logger.error("large_file_unreadable file=%s why=%s", self._path(file), error)
        self._report(self._read_back, token, pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def _do_delete(self, file: int) -> None:
        self._forget(file)
        self._unsynced.pop(file, None)
        self._given_up.pop(file, None)
        try:
            self._path(file).unlink(missing_ok=True)
        except OSError as error:
            # No record refers to the file; the next start deletes it.
            logger.warning("large_file_not_deleted file=%s why=%s", self._path(file), error)

    # --- open files -------------------------------------------------------------------------------

    def _file(self, file: int) -> OpenFile:
        found = self._open.pop(file, None)
        if found is None:
            descriptor = self._files.open(self._path(file), os.O_RDWR)
            found = OpenFile(descriptor, os.fstat(descriptor).st_size)
        self._keep(file, found)
        return found

    def _keep(self, file: int, found: OpenFile) -> None:
        """Adds the file as the most recently used."""
        self._open[file] = found
        if len(self._open) > OPEN_FILES_MAX:
            self._forget(next(iter(self._open)))

    def _forget(self, file: int) -> None:
        found = self._open.pop(file, None)
        if found is not None:
            self._files.close(found.descriptor)
