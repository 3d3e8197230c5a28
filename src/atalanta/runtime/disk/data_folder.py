"""The data folder of a node: used by one process at a time, with a permanent node id and the journal's folder.

    <folder>/node.lock   locked, like the folder, while a node runs; its text is that process' id
    <folder>/node-id     the node id, a version-1 UUID as text, as Artemis' node ids are
    <folder>/journal/    segments (store/segment.py), unless journal-directory names another folder
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

from atalanta.files.replace import replace_file, sync_folder
from atalanta.runtime.disk.folder_lock import (
    DataFolderDamaged,
    DataFolderError,
    FolderLock,
    lock_folder,
)
from atalanta.runtime.ha.epoch_names import has_epochs

NODE_ID_NAME = "node-id"
JOURNAL_NAME = "journal"
MEMBER_NAME = "member"  # in the journal folder of a replicated group's member
LEASE_NAME = "granted-lease"  # there, too


class DataFolder:
    """An opened and locked data folder. Close it after the disk."""

    def __init__(self, folder: Path, journal: Path, node_id: uuid.UUID, locks: list[FolderLock]) -> None:
        self.folder = folder
        self.journal = journal
        self.node_id = node_id
        self._locks = locks
        self.journal_missing: bool = False  # the node id is there, its journal is not

    def check_locks(self) -> None:
        """Raises DataFolderError if another process could have locked the folder by now."""
        for lock in self._locks:
            lock.check()

    def close(self) -> None:
        """Releases the locks."""
        for lock in self._locks:
            lock.close()


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
        refuse_epochs(journal)
        refuse_member(journal)
        if not journal.is_relative_to(folder):
            locks.append(lock_folder(journal))
        node_id = read_node_id(folder)
        if node_id is None:
            refuse_orphans(folder, journal)
            node_id = uuid.UUID(bytes=new_id())
            replace_file(folder / NODE_ID_NAME, f"{node_id}\n".encode("ascii"))
            missing = False
        else:
            missing = not has_journal(journal)
    except BaseException:
        for lock in locks:
            lock.close()
        raise
    found = DataFolder(folder, journal, node_id, locks)
    found.journal_missing = missing
    return found


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
        raise DataFolderDamaged(
            f"{path}: {text[:60]!r} is no UUID: write the node's id into it, which is also the name of the folder "
            "with its paging files"
        ) from error


def has_journal(folder: Path) -> bool:
    return any(path.name.startswith("journal-") for path in folder.iterdir())


def refuse_epochs(journal: Path) -> None:
    """Refuses the folder of a pair: the messages are in the folders of its epochs."""
    if has_epochs(journal):
        raise DataFolderError(
            f"{journal} belongs to a pair with a shared store, and this node has no <shared-store> in its "
            "<ha-policy>: configure it, or give this node a folder of its own"
        )


def refuse_member(journal: Path) -> None:
    """Refuses the folder of a replicated group's member: what a node alone adds, the others do not have."""
    if (journal / MEMBER_NAME).exists():
        raise DataFolderError(
            f"{journal} belongs to a member of a replicated group, and this node has no <replication> with a manager: "
            f"configure them, or delete {journal / MEMBER_NAME} to take the folder out of its group for good"
        )


def refuse_orphans(folder: Path, journal: Path) -> None:
    """Refuses a journal without its node id: it must not get a new one."""
    if has_journal(journal):
        raise DataFolderDamaged(
            f"{folder / NODE_ID_NAME} is missing, but {journal} holds a journal: put the file "
            "back, or start with an empty folder"
        )
