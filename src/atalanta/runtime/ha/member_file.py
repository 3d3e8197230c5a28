"""The files of the processes of a pair: `<journal>/members/<name>.json`. Each process writes its own, atomically."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from atalanta.files.regular import NotRegular, read_regular

SUFFIX: Final = ".json"
NAME: Final = re.compile(r"[\w.-]{1,200}")
FILE_BYTES_MAX: Final = 1 << 16
FILES_MAX: Final = 100
# Much longer than any process that lives is silent, so that clocks of any rate agree.
SILENT_NS: Final = 60_000_000_000


@dataclass(frozen=True)
class MemberRecord:
    """A process of the pair: its role ("primary" or "backup"), the parameters of its connector by the name of each
    cluster connection, what it asks for ("" or "failback"), and a count that changes while it lives."""

    name: str
    role: str
    connectors: Mapping[str, Mapping[str, object]]
    wants: str
    beat: int

    @property
    def place(self) -> str:
        """Returns its host:port, as it would be announced; its name without a connector."""
        for values in self.connectors.values():
            return f"{values.get('host', '')}:{values.get('port', '')}"
        return self.name


def write_member(folder: Path, record: MemberRecord) -> None:
    """Writes the file of a member. Not synced: it is of no use after the end of the machine. Raises OSError."""
    if not NAME.fullmatch(record.name):
        raise OSError(f"{record.name!r} is not a file name")
    folder.mkdir(mode=0o750, exist_ok=True)
    part = folder / f"{record.name}.part"
    part.write_bytes(json.dumps(asdict(record)).encode("utf-8"))
    part.replace(folder / f"{record.name}{SUFFIX}")


def read_members(folder: Path) -> list[MemberRecord]:
    """Returns the members by name. A file that cannot be read as one is left out. Raises OSError."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))
    except FileNotFoundError:
        return []
    found = []
    for name in names[:FILES_MAX]:
        with contextlib.suppress(FileNotFoundError, NotRegular, ValueError):
            record = _decoded(read_regular(folder / name, FILE_BYTES_MAX))
            if record.name == name.removesuffix(SUFFIX):
                found.append(record)
    return found


def has_members(folder: Path) -> bool:
    """Returns whether any process has a file there. Raises OSError."""
    try:
        return any(name.endswith(SUFFIX) for name in os.listdir(folder))
    except FileNotFoundError:
        return False


def remove_member(folder: Path, name: str) -> None:
    """Removes the file of a member, if it exists. Raises OSError."""
    (folder / f"{name}{SUFFIX}").unlink(missing_ok=True)


class SilentMembers:
    """The files that do not change, as the holder of an epoch sees them. Their processes have ended long ago."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: dict[str, tuple[int, int]] = {}  # name -> count, and since when it is seen

    def remove(self, now_ns: int) -> None:
        """Looks at the files, and removes those that have not changed for SILENT_NS. Raises OSError.

        Call it after a record was written: a process that is only slow finds that the holder lives, or tells of itself
        anew. `now_ns` is an instant of the monotonic clock.
        """
        found = {each.name: each.beat for each in read_members(self.folder)}
        self._seen = {name: seen for name, seen in self._seen.items() if found.get(name) == seen[0]}
        for name, beat in found.items():
            _, since_ns = self._seen.setdefault(name, (beat, now_ns))
            if now_ns >= since_ns + SILENT_NS:
                remove_member(self.folder, name)
                del self._seen[name]


def _decoded(data: bytes) -> MemberRecord:
    values = json.loads(data)
    if not isinstance(values, dict):
        raise ValueError("not an object")
    name, role, wants = values.get("name"), values.get("role"), values.get("wants")
    connectors, beat = values.get("connectors"), values.get("beat")
    if not (isinstance(name, str) and isinstance(role, str) and isinstance(wants, str)):
        raise ValueError("a text is missing")
    if not isinstance(connectors, dict) or not all(isinstance(each, dict) for each in connectors.values()):
        raise ValueError("the connectors are missing")
    if type(beat) is not int:
        raise ValueError("the count is missing")
    return MemberRecord(name, role, connectors, wants, beat)
