"""The data folder of a node: used by one process at a time, with a permanent node id and the journal's folder.

    <folder>/node.lock   locked while a node runs; its text is that process' id
    <folder>/node-id     the node id, a version-1 UUID as text, as Artemis' node ids are
    <folder>/journal/    segments (store/segment.py), unless journal-directory names another folder
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from atalanta.runtime.disk.commit_file import write_all
from atalanta.runtime.disk.disk import sync_folder

LOCK_NAME = "node.lock"
NODE_ID_NAME = "node-id"
JOURNAL_NAME = "journal"


class DataFolderError(Exception):
    """The folder cannot be used; the text names it and gives the reason."""


class DataFolder:
    """An opened and locked data folder. Close it after the disk."""

    def __init__(self, folder: Path, journal: Path, node_id: uuid.UUID, locks: list[int]) -> None:
        self.folder = folder
        self.journal = journal
        self.node_id = node_id
        self._locks = locks

    def close(self) -> None:
        """Releases the locks."""
        for lock in self._locks:
            os.close(lock)
        self._locks = []


def open_data_folder(
    folder: Path, new_id: Callable[[], bytes], journal: Path | None = None
) -> DataFolder:
    """Creates missing folders, locks, and reads the node id. Raises DataFolderError or OSError.

    `new_id` returns 16 bytes for a new node. `journal` may be `folder` itself: then id, lock and segments are in
    the same folder. A journal folder outside of `folder` is locked too.
    """
    folder = folder.absolute()
    journal = folder / JOURNAL_NAME if journal is None else journal.absolute()
    make_folder(folder)
    locks = [lock_folder(folder)]
    try:
        make_folder(journal)
        if not journal.is_relative_to(folder):
            locks.append(lock_folder(journal))
        node_id = read_node_id(folder)
        if node_id is None:
            refuse_orphans(folder, journal)
            node_id = uuid.UUID(bytes=new_id())
            write_node_id(folder, node_id)
    except BaseException:
        for lock in locks:
            os.close(lock)
        raise
    return DataFolder(folder, journal, node_id, locks)


def make_folder(folder: Path) -> None:
    """Creates a folder and its parents, durably."""
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        make_folder(folder.parent)
    try:
        folder.mkdir(mode=0o750, exist_ok=True)
    except FileExistsError as error:
        raise DataFolderError(f"{folder}: a folder is needed here, this is a file") from error
    sync_folder(folder.parent)


def lock_folder(folder: Path) -> int:
    """Returns the open lock file; DataFolderError names the process that holds the lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    lock = os.open(folder / LOCK_NAME, flags, 0o640)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, 64, 0).decode("ascii", "replace").strip()
        os.close(lock)
        raise DataFolderError(
            f"the data folder {folder} is in use by process {holder or 'unknown'}: stop that "
            "node, or give this one a folder of its own"
        ) from error
    except BaseException:
        os.close(lock)
        raise
    with suppress(OSError):  # only for the text above: a node starts on a full disk, too
        os.ftruncate(lock, 0)
        write_all(lock, 0, f"{os.getpid()}\n".encode("ascii"))
    return lock


def read_node_id(folder: Path) -> uuid.UUID | None:
    """Reads the node id; None if the file does not exist."""
    path = folder / NODE_ID_NAME
    try:
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise DataFolderError(f"{path}: {text[:60]!r} is no UUID") from error


def write_node_id(folder: Path, node_id: uuid.UUID) -> None:
    """Writes the node id atomically: a new file is synced, then renamed."""
    path = folder / NODE_ID_NAME
    fresh = folder / f"{NODE_ID_NAME}.new"
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
    try:
        write_all(file, 0, f"{node_id}\n".encode("ascii"))
        os.fsync(file)
    finally:
        os.close(file)
    os.replace(fresh, path)
    sync_folder(folder)


def refuse_orphans(folder: Path, journal: Path) -> None:
    """Refuses a journal without its node id: it must not get a new one."""
    if any(path.name.startswith("journal-") for path in journal.iterdir()):
        raise DataFolderError(
            f"{folder / NODE_ID_NAME} is missing, but {journal} holds a journal: put the file "
            "back, or start with an empty folder"
        )
