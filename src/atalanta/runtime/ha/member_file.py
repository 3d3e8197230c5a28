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


@dataclass(frozen=True)
class MemberRecord:
    """A process of the pair: its role ("primary" or "backup"), the parameters of its connector by the name of each
    cluster connection, what it asks for ("" or "failback"), and a count that changes while it lives."""

    name: str
    role: str
    connectors: Mapping[str, Mapping[str, object]]
    wants: str
    beat: int


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


def remove_member(folder: Path, name: str) -> None:
    """Removes the file of a member, if it exists. Raises OSError."""
    (folder / f"{name}{SUFFIX}").unlink(missing_ok=True)


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
