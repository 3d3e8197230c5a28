"""CORE messages as the log view delivers them, for bulk readers (the Spark source).

ReceivedMessage is the convenient class on top of these.
"""

from __future__ import annotations

from atalanta.client.message import ReceivedMessage
from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.message import BYTES, DEFAULT, MAP, OBJECT, STREAM, TEXT, Message
from atalanta.message.properties import FLOAT, Byte, Float, Int, PropertyValue, Short
from atalanta.wire.core.client.log_columns import LogColumns
from atalanta.wire.core.packets.log_chunk import (
    ChunkWriter,
    LogEntry,
    LogReadResponse,
    decode_entries,
)

__all__ = [
    "BYTES",
    "DEFAULT",
    "FLOAT",
    "MAP",
    "OBJECT",
    "STREAM",
    "TEXT",
    "Byte",
    "DecodeError",
    "EntryWriter",
    "Float",
    "Int",
    "LogColumns",
    "LogEntry",
    "Message",
    "PropertyValue",
    "Short",
    "columns_of",
    "entries_of",
]


def entries_of(count: int, entries: bytes) -> list[LogEntry]:
    """Decodes the messages of a chunk, in order, with sequence and delivery count. Raises DecodeError."""
    return decode_entries(
        LogReadResponse(correlation=0, next=0, last=True, count=count, entries=entries)
    )


def columns_of(count: int, entries: bytes) -> LogColumns:
    """Decodes the same as columns, for readers of few fields. Raises DecodeError."""
    return LogColumns(entries, count)


class EntryWriter:
    """A writer of received messages in the encoding of a chunk, which entries_of and columns_of read."""

    def __init__(self) -> None:
        self._out = ChunkWriter()

    @property
    def count(self) -> int:
        return self._out.count

    def __len__(self) -> int:
        """Returns the number of bytes so far."""
        return len(self._out)

    def add(self, sequence: int, received: ReceivedMessage) -> None:
        """Adds a message with its whole body. Raises MessageTooLarge if the client has discarded the body."""
        self._out.add(sequence, received.delivery_count - 1, received.whole())

    def getvalue(self) -> bytes:
        return self._out.getvalue()
