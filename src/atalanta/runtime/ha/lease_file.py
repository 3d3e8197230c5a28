"""The file of a holder's record: one line with a checksum, rewritten in place.

A reader may see a line that is half written. That is a change like any other for who waits, and it is read again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final
from zlib import crc32

from atalanta.ha.folder_lease import ACTIVE, RELEASED, STOPPED, FolderRecord
from atalanta.runtime.disk.commit_file import sync_data, write_all

LEASE_NAME: Final = "lease"
# One sector of any disk: it is written whole or not at all.
SIZE: Final = 512
HOLDER_LENGTH_MAX: Final = 100
FIELDS: Final = {
    "epoch": int, "holder": str, "renewals": int, "state": str, "length_ns": int, "clock_ns": int, "boot": str,
    "patience_ns": int,
}  # fmt: skip


def encode_record(record: FolderRecord) -> bytes:
    """Encodes a record: 512 bytes."""
    values = {name: getattr(record, name) for name in FIELDS}
    values["holder"] = record.holder.encode("ascii", "replace").decode("ascii")[:HOLDER_LENGTH_MAX]
    data = json.dumps(values, separators=(",", ":")).encode("ascii")
    line = b"%08x %s" % (crc32(data), data)
    return line.ljust(SIZE - 1) + b"\n"


def decode_record(data: bytes) -> FolderRecord | None:
    """Decodes a record; None for any other bytes."""
    checksum, _, line = data.strip().partition(b" ")
    if checksum != b"%08x" % crc32(line):
        return None
    try:
        values = json.loads(line)
    except ValueError:
        return None
    if not isinstance(values, dict) or any(type(values.get(name)) is not kind for name, kind in FIELDS.items()):
        return None
    if values["state"] not in (ACTIVE, RELEASED, STOPPED):
        return None
    return FolderRecord(**{name: values[name] for name in FIELDS})


def read_content(folder: Path) -> bytes:
    """Returns the bytes of the lease file of an epoch's folder, none without a file. Raises OSError."""
    try:
        file = os.open(folder / LEASE_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(file, 2 * SIZE, 0)
    finally:
        os.close(file)


class LeaseFile:
    """The open lease file of this process' epoch."""

    def __init__(self, folder: Path) -> None:
        """Creates the file. Raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(folder / LEASE_NAME, flags, 0o640)

    def write(self, record: FolderRecord) -> None:
        """Writes the record durably. After an OSError it is unknown which record the file has."""
        write_all(self._file, 0, encode_record(record))
        sync_data(self._file)

    def close(self) -> None:
        """Closes the file. May be called twice."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
