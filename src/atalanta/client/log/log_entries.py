"""CORE messages as the log view delivers them, for bulk readers (the Spark source).

ReceivedMessage is the convenient class on top of these.
"""

from __future__ import annotations

import struct
from typing import Final

from atalanta.client.message import ReceivedMessage
from atalanta.message.codec import PACKET_HEADER_BYTES
from atalanta.wire.core.client.log_columns import LogColumns
from atalanta.wire.core.packets import log_chunk
from atalanta.wire.core.packets.log_chunk import (
    ColumnChunk,
    EncodedEntry,
    LogEntry,
    LogReadResponse,
    decode_entries,
)

_ENTRY: Final = struct.Struct(">qii")  # sequence, delivery count, length of the message
_FRAME: Final = struct.Struct(">i")
_ID: Final = struct.Struct(">q")


def entries_of(count: int, content: bytes | ColumnChunk) -> list[LogEntry]:
    """Decodes the messages of a Chunk's content, in order, with sequence and delivery count. Raises DecodeError."""
    entries = content.rows() if isinstance(content, ColumnChunk) else content
    return decode_entries(
        LogReadResponse(correlation=0, next=0, last=True, count=count, entries=entries)
    )


def columns_of(count: int, content: bytes | ColumnChunk) -> LogColumns:
    """Decodes the content of a Chunk as columns, for readers of few fields. Raises DecodeError."""
    if isinstance(content, ColumnChunk):
        return LogColumns(content.data, content.count, content)
    return LogColumns(content, count)


def split_entries(count: int, content: bytes | ColumnChunk) -> list[EncodedEntry]:
    """Returns the entries of a Chunk's content, in order. DecodeError names a length that is wrong."""
    if isinstance(content, ColumnChunk):
        return content.entries()
    return log_chunk.split_entries(count, content)


def entry_bytes(received: ReceivedMessage, body_bytes: int) -> int:
    """Returns the number of bytes of a message's entry, with a body of `body_bytes`."""
    return _ENTRY.size + _FRAME.size + body_bytes + _ID.size + len(received.head)


class EntryWriter:
    """A writer of received messages in the encoding of a chunk, which entries_of and columns_of read."""

    def __init__(self) -> None:
        self.count = 0
        self._parts: list[bytes] = []
        self._bytes = 0

    def __len__(self) -> int:
        """Returns the number of bytes so far."""
        return self._bytes

    def add(self, sequence: int, received: ReceivedMessage, body: bytes | None = None) -> None:
        """Adds a message with its whole body, or with `body` instead.

        Raises MessageTooLarge if the client has discarded the body.
        """
        body, head = received.body if body is None else body, received.head
        size = _FRAME.size + len(body) + _ID.size + len(head)
        entry = _ENTRY.pack(sequence, received.delivery_count - 1, size)
        frame = _FRAME.pack(PACKET_HEADER_BYTES + len(body))
        self._parts += (entry, frame, body, _ID.pack(received.message_id), head)
        self._bytes += len(entry) + size
        self.count += 1

    def getvalue(self) -> bytes:
        return b"".join(self._parts)
