"""The file of one batch of one node: a header, chunks of encoded messages, and an end with length and checksum.

    b"ATLWAL1\\n"  int32 length  JSON {"folder": …, "node": …, "server": …, "queue": …, "received_at": ms}
    int32 count (> 0)  int64 length  entries            for each chunk
    int32 -1           int64 length  int32 length  text  entry      for a message without its body: the reason
    int32 0  int64 number of messages  int32 CRC-32 of all bytes before it

Numbers are big-endian. The entries are those of the log view's chunks. `received_at` is a time since the
epoch: messages that were expired then are no rows, whenever the file is read. A file of an earlier version has none.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

from atalanta.client import ReceivedMessage
from atalanta.client.log import EntryWriter
from atalanta.spark.errors import DataLost, NodeUnavailable
from atalanta.spark.wal.location import FileDraft, Location
from atalanta.spark.wal.wal_node import WalNode

MAGIC: Final = b"ATLWAL1\n"
CHUNK_BYTES: Final = 1 << 20
# The sequence of a message is the file's number, and its index in the file in the lower bits.
INDEX_BITS: Final = 20
MESSAGES_MAX: Final = 1 << INDEX_BITS

WITHOUT_BODY: Final = 0xFFFF_FFFF

_LENGTH: Final = struct.Struct(">I")
_CHUNK: Final = struct.Struct(">IQ")


class WalFileWriter:
    """The writer of one file. Its messages are numbered from 0; a reader adds the file's number."""

    def __init__(
        self, draft: FileDraft, folder_id: str, node: WalNode, queue: str, received_at_ms: int
    ) -> None:
        self.draft = draft
        self.count = 0
        self.bytes = 0
        self._chunk = EntryWriter()
        self._crc = 0
        header = json.dumps(
            {
                "folder": folder_id,
                "node": node.node_id,
                "server": node.server,
                "backups": servers_of(node),
                "queue": queue,
                "received_at": received_at_ms,
            }
        ).encode()
        self._write(MAGIC + _LENGTH.pack(len(header)) + header)

    def add(self, message: ReceivedMessage, error: str = "") -> None:
        """Adds a message; without its body if `error` says why."""
        if error:
            self._add_without_body(message, error.encode())
            return
        before = len(self._chunk)
        self._chunk.add(self.count, message)
        self.count += 1
        self.bytes += len(self._chunk) - before
        if len(self._chunk) >= CHUNK_BYTES:
            self._flush()

    def close(self) -> None:
        """Writes the end. The file is durable, under the draft's name."""
        self._flush()
        end = _CHUNK.pack(0, self.count)
        crc = zlib.crc32(end, self._crc)
        self.draft.write(end + _LENGTH.pack(crc))
        self.draft.close()

    def _add_without_body(self, message: ReceivedMessage, error: bytes) -> None:
        self._flush()
        chunk = EntryWriter()
        chunk.add(self.count, message, b"")
        content = _LENGTH.pack(len(error)) + error + chunk.getvalue()
        self._write(_CHUNK.pack(WITHOUT_BODY, len(content)))
        self._write(content)
        self.count += 1
        self.bytes += len(content)

    def _flush(self) -> None:
        if self._chunk.count:
            entries = self._chunk.getvalue()
            self._write(_CHUNK.pack(self._chunk.count, len(entries)))
            self._write(entries)
            self._chunk = EntryWriter()

    def _write(self, data: bytes) -> None:
        self._crc = zlib.crc32(data, self._crc)
        self.draft.write(data)


def servers_of(node: WalNode) -> list[str]:
    """Returns the other members of a node's pair, where a later driver looks for it; none if the node is lost."""
    try:
        found = [each for each in node.members() if each.node_id == node.node_id]
    except NodeUnavailable:
        return []
    return [each for member in found for each in (member.server, member.backup) if each not in {None, node.server}]


class FileDamaged(DataLost):
    """A file that is gone, incomplete, or not of this folder. It was complete before the broker forgot its messages."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Restore it from a backup: its messages are not at the broker any more"
        )
        self.what = what


class WalFileReader:
    """The reader of one file. Errors of the content are FileDamaged."""

    def __init__(self, location: Location, name: str, folder_id: str) -> None:
        self.location = location
        self.name = name
        self.folder_id = folder_id

    def header(self) -> dict[str, Any]:
        with self._open() as file:
            return self._header(_Checked(file, self.name))

    def chunks(self) -> Iterator[tuple[int, bytes, str]]:
        """Yields (count, entries, reason of a missing body or ""), and at the end checks number and checksum."""
        with self._open() as file:
            checked = _Checked(file, self.name)
            self._header(checked)
            total = 0
            while True:
                count, length = _CHUNK.unpack(checked.read(_CHUNK.size))
                if count == 0:
                    break
                error = ""
                if count == WITHOUT_BODY:
                    (size,) = _LENGTH.unpack(checked.read(_LENGTH.size))
                    error = checked.read(size).decode("utf-8", "replace")
                    count, length = 1, length - _LENGTH.size - size
                entries = checked.read(length)
                total += count
                yield count, entries, error
            crc = checked.crc
            if length != total or _LENGTH.unpack(checked.read(_LENGTH.size))[0] != crc:
                raise damaged(self.name, "its checksum is wrong")

    def _open(self) -> Any:
        try:
            return self.location.read(self.name)
        except FileNotFoundError as error:
            raise FileDamaged(
                f"the write-ahead file {self.name} is gone from walLocation"
            ) from error

    def _header(self, checked: _Checked) -> dict[str, Any]:
        if checked.read(len(MAGIC)) != MAGIC:
            raise damaged(self.name, "its first bytes are wrong")
        (length,) = _LENGTH.unpack(checked.read(_LENGTH.size))
        try:
            header = json.loads(checked.read(length))
        except ValueError as error:
            raise damaged(self.name, "its header is wrong") from error
        if not isinstance(header, dict):
            raise damaged(self.name, "its header is wrong")
        if header.get("folder") != self.folder_id:
            raise FileDamaged(f"the write-ahead file {self.name} is that of another walLocation")
        return header


class _Checked:
    """A file with the checksum of what was read."""

    def __init__(self, file: Any, name: str) -> None:
        self.file = file
        self.name = name
        self.crc = 0

    def read(self, size: int) -> bytes:
        data = bytes(self.file.read(size))
        if len(data) != size:
            raise damaged(self.name, f"it ends after {len(data)} of {size} bytes")
        self.crc = zlib.crc32(data, self.crc)
        return data


def damaged(name: str, why: str) -> FileDamaged:
    return FileDamaged(f"the write-ahead file {name} is damaged: {why}")
