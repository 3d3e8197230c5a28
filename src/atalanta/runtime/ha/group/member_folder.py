"""The journal folder of one member of a replicated group.

    <journal>/node.lock   as in every data folder (runtime/disk/data_folder.py)
    <journal>/node-id     the node id of the group; missing in a new member that has not met the active node yet
    <journal>/learned     the node id is that of an active node: this member does not found the group
    <journal>/member      the member's name; a second line `stored` says that the folder had a journal under this name
    <journal>/granted-lease  the length in ns of the lease that this member has granted to an active node
    <journal>/journal-*   the segments

The name stands for the folder's content: the register says of names which of them have everything. So a folder that
has lost its journal gets another name.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

from atalanta.files.replace import replace_file
from atalanta.runtime.disk.data_folder import (
    LEASE_NAME,
    MEMBER_NAME,
    NODE_ID_NAME,
    has_journal,
    make_folder,
    read_node_id,
    refuse_epochs,
    refuse_orphans,
)
from atalanta.runtime.disk.folder_lock import DataFolderError, FolderLock, lock_folder

STORED: Final = "stored"
LEARNED_NAME: Final = "learned"
NAME: Final = re.compile(r"[\w.-]{1,200}")
LENGTH: Final = re.compile(r"[0-9]{1,19}")
# Of the configured name; the rest makes it unique.
TITLE_CHARACTERS_MAX: Final = 50


class MemberFolder:
    """The folder, locked by this process. Close it after the disk."""

    def __init__(
        self, journal: Path, member: str, stored: bool, node_id: uuid.UUID | None, lock: FolderLock,
        new_name: Callable[[], str],
    ) -> None:  # fmt: skip
        self.journal = journal
        self.member = member
        self.node_id = node_id
        self.lost = ""  # the name under which the folder had a journal that is gone, or in part
        self.granted_ns = 0  # 0: none
        self.learned = (journal / LEARNED_NAME).exists()
        self._stored = stored
        self._lock = lock
        self._new_name = new_name

    def identify(self, node_id: uuid.UUID, learned: bool = False) -> None:
        """Records the node id of the group, durably, in a folder that has none. Raises OSError.

        `learned`: an active node has told it, so this member never founds the group.
        """
        if self.node_id is not None:
            raise AssertionError(f"{self.journal} has the node id {self.node_id}")
        if learned:
            replace_file(self.journal / LEARNED_NAME, b"an active node has told the node id\n")
        else:
            (self.journal / LEARNED_NAME).unlink(missing_ok=True)
        self.learned = learned
        replace_file(self.journal / NODE_ID_NAME, f"{node_id}\n".encode("ascii"))
        self.node_id = node_id

    def rename(self) -> None:
        """Gives the folder a new name, durably: it will lack what it had under the old one. Raises OSError."""
        member = self._new_name()
        replace_file(self.journal / MEMBER_NAME, f"{member}\n".encode())
        self.lost, self.member, self._stored = self.member, member, False
        self.note_journal()

    def note_journal(self) -> None:
        """Records that the name stands for a journal, as soon as there is one. Raises OSError."""
        if not self._stored and has_journal(self.journal):
            replace_file(self.journal / MEMBER_NAME, f"{self.member}\n{STORED}\n".encode())
            self._stored = True

    def keep_lease(self, length_ns: int) -> None:
        """Records the length of the lease that this member grants, durably. Raises OSError."""
        if length_ns != self.granted_ns:
            replace_file(self.journal / LEASE_NAME, f"{length_ns}\n".encode("ascii"))
            self.granted_ns = length_ns

    def check_locks(self) -> None:
        """Raises DataFolderError if another process could use the folder by now."""
        self._lock.check()

    def close(self) -> None:
        """Releases the folder."""
        self._lock.close()


def open_member_folder(
    journal: Path, title: str, fixed_id: uuid.UUID | None, secret: Callable[[int], bytes], wait_s: float = 0.0
) -> MemberFolder:
    """Creates missing folders, locks, and reads node id and name. Raises DataFolderError or OSError.

    `fixed_id` is that of `coordination-id`. `title` begins a new member's name; `secret` returns random bytes. An
    earlier process of this member may have `wait_s` to end.
    """

    def new_name() -> str:
        return f"{_file_name(title)}-{secret(4).hex()}"

    journal = journal.absolute()
    make_folder(journal)
    lock = lock_folder(journal, wait_s)
    try:
        refuse_epochs(journal)
        node_id = read_node_id(journal)
        if node_id is None:
            refuse_orphans(journal, journal)
        elif fixed_id not in (None, node_id):
            raise DataFolderError(
                f"{journal / NODE_ID_NAME} is {node_id}, but coordination-id asks for {fixed_id}: correct it, or give "
                "this node an empty folder"
            )
        found = _read_member(journal)
        member, stored = found if found is not None else ("", False)
        lost = ""
        if stored and not has_journal(journal):
            lost, member = member, ""
        if not member:
            member, stored = new_name(), False
            replace_file(journal / MEMBER_NAME, f"{member}\n".encode())
        folder = MemberFolder(journal, member, stored, node_id, lock, new_name)
        folder.lost = lost
        folder.granted_ns = _read_lease(journal)
        folder.note_journal()
        if node_id is None and fixed_id is not None:
            folder.identify(fixed_id)
    except BaseException:
        lock.close()
        raise
    return folder


def read_member(journal: Path) -> str:
    """Returns the name of the member whose folder this is, "" if it is none. Raises OSError, DataFolderError."""
    found = _read_member(journal)
    return "" if found is None else found[0]


def group_id(text: str) -> uuid.UUID:
    """Returns the node id for a `coordination-id`: the UUID itself, or one made from another text."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return uuid.uuid5(uuid.NAMESPACE_URL, f"atalanta:coordination-id:{text}")


def _read_member(journal: Path) -> tuple[str, bool] | None:
    path = journal / MEMBER_NAME
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return None
    if not lines or not NAME.fullmatch(lines[0]) or lines[1:] not in ([], [STORED]):
        raise DataFolderError(f"{path}: this is no member's name")
    return lines[0], bool(lines[1:])


def _read_lease(journal: Path) -> int:
    """Returns the length of the lease that an earlier process has granted, 0 without any."""
    path = journal / LEASE_NAME
    try:
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return 0
    if not LENGTH.fullmatch(text):
        raise DataFolderError(
            f"{path}: this is no length of a lease: delete it when the former active node of the group has ended"
        )
    return int(text)


def _file_name(title: str) -> str:
    return re.sub(r"[^\w.-]", "-", title)[:TITLE_CHARACTERS_MAX] or "node"
