"""The lock of a data folder: one process uses it at a time.

The folder itself is locked, because a file in it can be deleted. Its file node.lock names the process, and is the lock
on file systems that cannot lock folders.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from atalanta.runtime.disk.commit_file import write_all

LOCK_NAME = "node.lock"
LOOK_S = 0.02  # between two attempts to lock a folder


class DataFolderError(Exception):
    """The folder cannot be used; the text names it and gives the reason."""


class DataFolderDamaged(DataFolderError):
    """A file of the folder is missing or has other contents: another attempt finds the same."""


class FolderInUse(DataFolderError):
    """Another process, the `holder`, has locked the folder."""

    def __init__(self, folder: Path, holder: str) -> None:
        super().__init__(
            f"the data folder {folder} is in use by process {holder}: stop that "
            "node, or give this one a folder of its own"
        )
        self.holder = holder


class FolderLock:
    """A folder that this process has locked. `folder_file` is -1 if the file system cannot lock folders."""

    def __init__(self, folder: Path, lock_file: int, folder_file: int) -> None:
        self.folder = folder
        self._lock_file = lock_file
        self._folder_file = folder_file

    def check(self) -> None:
        """Raises DataFolderError if another process could have locked the folder by now.

        That is so after the folder was replaced by another one, or after the file node.lock was deleted where only that
        is locked. Called before a new file is made, also by the disk's worker.
        """
        if self._folder_file >= 0:
            lost = not _same_file(self._folder_file, self.folder)
        else:
            lost = not _same_file(self._lock_file, self.folder / LOCK_NAME)
        if lost:
            raise DataFolderError(
                f"the lock of {self.folder} is lost: the folder was replaced, or its file {LOCK_NAME} deleted, while "
                "this node ran, and another node may write there. This node stops before it damages that node's "
                "journal: stop the other one, or give it a folder of its own, then start this one again"
            )

    def close(self) -> None:
        """Releases the lock. May be called twice."""
        for descriptor in (self._lock_file, self._folder_file):
            if descriptor >= 0:
                os.close(descriptor)
        self._lock_file = self._folder_file = -1


def lock_folder(folder: Path, wait_s: float = 0.0) -> FolderLock:
    """Locks the folder. Waits at most `wait_s` for a process that has locked it; FolderInUse names that one."""
    end = time.monotonic() + wait_s
    while True:
        try:
            return _lock_now(folder)
        except FolderInUse:
            if time.monotonic() >= end:
                raise
        time.sleep(LOOK_S)


def _lock_now(folder: Path) -> FolderLock:
    folder_file = _lock_folder_itself(folder)
    try:
        lock_file = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except BaseException:
        if folder_file >= 0:
            os.close(folder_file)
        raise
    lock = FolderLock(folder, lock_file, folder_file)
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(OSError):  # only for the text of an error: a node starts on a full disk, too
            os.ftruncate(lock_file, 0)
            write_all(lock_file, 0, f"{os.getpid()}\n".encode("ascii"))
    except BlockingIOError as error:
        lock.close()
        raise _in_use(folder) from error
    except BaseException:
        lock.close()
        raise
    return lock


def _lock_folder_itself(folder: Path) -> int:
    """Returns the descriptor of the locked folder, -1 if the file system cannot lock folders."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise _in_use(folder) from error
    except OSError:
        os.close(descriptor)
        return -1
    return descriptor


def is_locked(folder: Path) -> bool:
    """Returns True if a node has locked the folder."""
    for path in (folder, folder / LOCK_NAME):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system that cannot lock folders
            continue
        finally:
            os.close(descriptor)
    return False


def _in_use(folder: Path) -> FolderInUse:
    try:
        holder = (folder / LOCK_NAME).read_text(encoding="ascii", errors="replace")[:64].strip()
    except OSError:
        holder = ""
    return FolderInUse(folder, holder or "unknown")


def _same_file(descriptor: int, path: Path) -> bool:
    """Returns True if the path still leads to the open file."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    opened = os.fstat(descriptor)
    return (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino)
