"""CORE messages as the log view delivers them, for bulk readers (the Spark source).

ReceivedMessage is the comfortable class; these are what lies below it.
"""

from __future__ import annotations

from atalanta.kernel.buffer import DecodeError, Reader
from atalanta.kernel.message import (
    BYTES,
    DEFAULT,
    MAP,
    OBJECT,
    STREAM,
    TEXT,
    Message,
    decode_message,
)
from atalanta.kernel.properties import (
    FLOAT,
    Byte,
    Float,
    Int,
    PropertyValue,
    Short,
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
    "Float",
    "Int",
    "Message",
    "PropertyValue",
    "Reader",
    "Short",
    "decode_message",
]
