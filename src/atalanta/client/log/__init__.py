"""The log view of the client: positions and entries of a queue that is read like a log."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.client.log.compressed_body import inflated
    from atalanta.client.log.log_entries import EntryWriter, columns_of, entries_of
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
    from atalanta.wire.core.packets.log_chunk import ENTRY_HEADER_BYTES, EncodedEntry, split_entries
else:
    __getattr__ = face(__name__)

__all__ = [
    "BYTES", "DEFAULT", "ENTRY_HEADER_BYTES", "FLOAT", "MAP", "OBJECT", "STREAM", "TEXT",
    "TYPE_NAMES", "Byte", "Char", "DecodeError", "EncodedEntry", "EntryWriter", "Float", "Int",
    "LogColumns", "Message", "PropertyValue", "Short", "columns_of", "entries_of", "inflated",
    "split_entries",
]
