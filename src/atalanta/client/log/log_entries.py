"""CORE messages as the log view delivers them, for bulk readers (the Spark source).

ReceivedMessage is the convenient class on top of these.
"""

from __future__ import annotations

from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.message import BYTES, DEFAULT, MAP, OBJECT, STREAM, TEXT, Message
from atalanta.message.properties import (
    FLOAT,
    TYPE_NAMES,
    Byte,
    Char,
    Float,
    Int,
    PropertyValue,
    Short,
)
from atalanta.wire.core.client.log_columns import LogColumns
from atalanta.wire.core.packets.log_chunk import (
    ENTRY_HEADER_BYTES,
    EncodedEntry,
    LogEntry,
    LogReadResponse,
    decode_entries,
    split_entries,
)

__all__ = [
    "BYTES",
    "DEFAULT",
    "ENTRY_HEADER_BYTES",
    "FLOAT",
    "MAP",
    "OBJECT",
    "STREAM",
    "TEXT",
    "TYPE_NAMES",
    "Byte",
    "Char",
    "DecodeError",
    "EncodedEntry",
    "Float",
    "Int",
    "LogColumns",
    "LogEntry",
    "Message",
    "PropertyValue",
    "Short",
    "columns_of",
    "entries_of",
    "split_entries",
]


def entries_of(count: int, entries: bytes) -> list[LogEntry]:
    """Decodes the messages of a chunk, in order, with sequence and delivery count. Raises DecodeError."""
    return decode_entries(
        LogReadResponse(correlation=0, next=0, last=True, count=count, entries=entries)
    )


def columns_of(count: int, entries: bytes) -> LogColumns:
    """Decodes the same as columns, for readers of few fields. Raises DecodeError."""
    return LogColumns(entries, count)
