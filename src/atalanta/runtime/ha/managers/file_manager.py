"""The register as files of a folder that all members of the group reach.

Version n of the register is the file `register.<n>`. It is written under another name, synced, and gets its name by
link(), which fails if the name exists: no lock is needed. Only files of old versions are deleted, never the newest.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from atalanta.files.replace import sync_folder
from atalanta.ha.register import CompareAndSet, decode_register, encode_register
from atalanta.ha.voter import Outcome
from atalanta.runtime.ha.managers.manager import Found, ManagerAnswer, ManagerUnavailable

PREFIX: Final = "register."
NEW_PREFIX: Final = "new."
DIGITS: Final = 20
VERSIONS_KEPT: Final = 8
# Files of a writer that ended before its link().
LEFTOVER_SECONDS: Final = 24 * 3600
READ_TRIES: Final = 5


class FileManager:
    """The manager `file`. The folder must exist: an empty mount point must not look like a new register.

    With a `name` the register has a folder of its own below, which the first write makes.
    """

    def __init__(self, folder: Path, name: str = "") -> None:
        self.parent = folder
        self.folder = folder / name
        self._durable = 0  # the highest version whose name is surely on disk

    async def read(self) -> Found | None:
        """Implements Manager.read."""
        try:
            return await asyncio.to_thread(self._read)
        except OSError as error:
            raise ManagerUnavailable(f"the register in {self.folder} cannot be read: {error}") from error

    async def compare_and_set(self, request: CompareAndSet) -> ManagerAnswer:
        """Implements Manager.compare_and_set."""
        try:
            return await asyncio.to_thread(self._write, request.version, encode_register(request.value))
        except OSError as error:
            return ManagerAnswer(
                Outcome.UNKNOWN, why=f"the register in {self.folder} cannot be written: {error}"
            )

    async def close(self) -> None:
        """Implements Manager.close."""

    def _read(self) -> Found | None:
        for attempt in range(READ_TRIES):
            version = self._newest()
            if not version:
                return None
            try:
                data = self._path(version).read_bytes()
            except FileNotFoundError:  # many versions came meanwhile, and this one was deleted
                if attempt == READ_TRIES - 1:
                    raise
                continue
            if version > self._durable:  # its writer may have ended before it has synced the folder
                sync_folder(self.folder)
                self._durable = version
            return Found(version, decode_register(data))
        raise AssertionError("not reached")

    def _write(self, version: int, data: bytes) -> ManagerAnswer:
        if version == 0 and self.folder != self.parent and not self.folder.is_dir():
            self.folder.mkdir(mode=0o750, exist_ok=True)
            sync_folder(self.parent)
        if self._newest() == version and self._link(self._path(version + 1), data):
            sync_folder(self.folder)
            newest = self._newest()
            if newest != version + 1:
                # The file may have taken the free name of a version that was deleted long ago.
                return ManagerAnswer(Outcome.UNKNOWN, why=f"version {newest} of the register came meanwhile")
            self._durable = newest
            self._delete_old(newest)
            return ManagerAnswer(Outcome.DONE, newest)
        newest = self._newest()
        if newest == version + 1 and self._path(newest).read_bytes() == data:
            # An earlier copy of this request, or a link() whose answer a network file system has lost.
            sync_folder(self.folder)
            return ManagerAnswer(Outcome.DONE, newest)
        return ManagerAnswer(Outcome.CONFLICT)

    def _link(self, path: Path, data: bytes) -> bool:
        """Makes a file with all its contents, synced, if there is none. Returns False if there is one."""
        fresh = self.folder / f"{NEW_PREFIX}{os.urandom(16).hex()}"
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        try:
            with os.fdopen(file, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            os.link(fresh, path)
        except FileExistsError:
            return False
        finally:
            with suppress(OSError):
                os.unlink(fresh)
        return True

    def _newest(self) -> int:
        """Returns the highest version, 0 if there is none. Two listings must agree: names come and go meanwhile."""
        before = -1
        while True:
            try:
                names = os.listdir(self.folder)
            except FileNotFoundError:
                if self.folder == self.parent or not self.parent.is_dir():
                    raise
                return 0  # no register of this name was founded yet
            digits = [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]
            newest = max((int(each) for each in digits if each.isdecimal()), default=0)
            if newest == before:
                return newest
            before = newest

    def _delete_old(self, newest: int) -> None:
        """Deletes old versions and leftovers of writers that have ended. Errors are left to the next write."""
        with suppress(OSError):
            youngest = self._path(newest).stat().st_mtime
            for entry in os.scandir(self.folder):
                digits = entry.name.removeprefix(PREFIX)
                if entry.name.startswith(NEW_PREFIX):
                    old = entry.stat().st_mtime < youngest - LEFTOVER_SECONDS
                else:
                    old = digits.isdecimal() and int(digits) <= newest - VERSIONS_KEPT
                if old:
                    os.unlink(entry.path)

    def _path(self, version: int) -> Path:
        return self.folder / f"{PREFIX}{version:0{DIGITS}}"
