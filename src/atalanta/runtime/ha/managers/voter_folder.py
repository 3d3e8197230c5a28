"""The folder of a voter: one file for each register, replaced and synced with each change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from atalanta.files.replace import replace_file
from atalanta.ha.voter import Voter, VoterState, newest
from atalanta.runtime.disk.folder_lock import LOCK_NAME, DataFolderError, lock_folder
from atalanta.runtime.ha.managers.voter_codec import (
    FILE_HEAD,
    VoterBytesDamaged,
    VoterRefused,
    decode_state_file,
    encode_state_file,
)
from atalanta.runtime.ha.managers.voter_connection import VOTER_ID_SIZE

MARK: Final = "voter"
PREFIX: Final = "register."
NEW_SUFFIX: Final = ".new"  # of files/replace.py
REGISTERS_MAX: Final = 256


class VoterFolder:
    """The registers of one voter, on disk and in memory. The folder is locked: it has one process."""

    def __init__(self, folder: Path, new: bool, copies: Sequence[Path] = ()) -> None:
        """Opens the folder of a voter, or makes it if `new`. FolderInUse, DataFolderError, OSError.

        A voter that has lost its files has forgotten its promises. So an empty folder is not made to a voter silently.
        A new voter in the place of a lost one begins with the newest of what all others know: `copies` are their
        folders, copied while no proposer runs.
        """
        self.folder = folder
        if new:
            folder.mkdir(parents=True, exist_ok=True)
        mark = folder / MARK
        if not mark.exists() and (not new or _used(folder)):
            raise DataFolderError(
                f"{folder} is no folder of a voter: give --new for a voter that is new in its group, with an empty "
                "folder. A voter that has lost its folder must not come back empty: it could help to confirm two values"
            )
        if new and mark.exists():
            raise DataFolderError(f"{folder} has a voter already: start it without --new")
        self._lock = lock_folder(folder)
        try:
            if new:
                self._copy(copies)
                replace_file(mark, FILE_HEAD + os.urandom(VOTER_ID_SIZE))
            self.voter_id = self._read_mark()
            self.registers = {name: Voter(state) for name, state in _states(folder).items()}
        except BaseException:
            self._lock.close()
            raise

    def voter(self, name: str) -> Voter:
        """Returns the voter of a register, a new one if nobody has asked for it before. VoterRefused."""
        found = self.registers.get(name)
        if found is None:
            if len(self.registers) >= REGISTERS_MAX:
                raise VoterRefused(f"this voter has {REGISTERS_MAX} registers, the most it keeps")
            found = self.registers[name] = Voter()
        return found

    def store(self, name: str, state: VoterState) -> None:
        """Makes a state durable. DataFolderError if the folder is another one by now; OSError."""
        self._lock.check()
        replace_file(self.folder / f"{PREFIX}{name.encode().hex()}", encode_state_file(state))

    def close(self) -> None:
        """Unlocks the folder."""
        self._lock.close()

    def _read_mark(self) -> bytes:
        """Returns the id of the voter."""
        data = (self.folder / MARK).read_bytes()
        if not data.startswith(FILE_HEAD) or len(data) != len(FILE_HEAD) + VOTER_ID_SIZE:
            raise DataFolderError(f"{self.folder / MARK} is of another format: use the version that wrote it")
        return data[len(FILE_HEAD) :]

    def _copy(self, folders: Sequence[Path]) -> None:
        """Stores the newest state of each register of these folders."""
        found: dict[str, list[VoterState]] = {}
        for folder in folders:
            if not (folder / MARK).exists():
                raise DataFolderError(f"{folder} is no folder of a voter")
            for name, state in _states(folder).items():
                found.setdefault(name, []).append(state)
        for name, states in found.items():
            self.store(name, newest(states))


def _states(folder: Path) -> dict[str, VoterState]:
    """Returns the registers of a voter's folder. DataFolderError, OSError."""
    found = {}
    for path in folder.iterdir():
        if not path.name.startswith(PREFIX) or path.suffix == NEW_SUFFIX:
            continue
        with suppress(ValueError):
            name = bytes.fromhex(path.name.removeprefix(PREFIX)).decode()
            try:
                found[name] = decode_state_file(path.read_bytes())
            except VoterBytesDamaged as error:
                raise DataFolderError(
                    f"{path} is damaged: {error}. Do not delete it while the group lives: replace this voter by a new "
                    "one, with --new and --copy-of for each other voter, while all brokers of the group are stopped"
                ) from error
    return found


def _used(folder: Path) -> bool:
    """Returns True if the folder has more than a start with --new leaves that did not come to its end."""
    return bool({path.name for path in folder.iterdir()} - {LOCK_NAME, MARK + NEW_SUFFIX})
