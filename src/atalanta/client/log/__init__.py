"""The log view of the client: positions and entries of a queue that is read like a log."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.client.log.compressed_body import inflated
    from atalanta.client.log.log_entries import EntryWriter, columns_of, entry_bytes, split_entries
    from atalanta.message.encoding.buffer import DecodeError
    from atalanta.message.message import BYTES, DEFAULT, MAP, OBJECT, STREAM, TEXT
    from atalanta.message.properties import (
        TYPE_NAMES,
        Byte,
        Char,
        Float,
        Int,
        PropertyValue,
        Short,
    )
    from atalanta.message.property_text import canonical
    from atalanta.wire.core.client.log_columns import LogColumns
    from atalanta.wire.core.client.log_properties import LogProperties, LogProperty
    from atalanta.wire.core.client.log_texts import LogTexts
    from atalanta.wire.core.packets.log_chunk import ENTRY_HEADER_BYTES, ColumnChunk, EncodedEntry
else:
    __getattr__ = face(__name__)

__all__ = [
    "BYTES", "DEFAULT", "ENTRY_HEADER_BYTES", "MAP", "OBJECT", "STREAM", "TEXT", "TYPE_NAMES",
    "Byte", "Char", "ColumnChunk", "DecodeError", "EncodedEntry", "EntryWriter", "Float", "Int",
    "LogColumns", "LogProperties", "LogProperty", "LogTexts", "PropertyValue", "Short", "canonical",
    "columns_of", "entry_bytes", "inflated", "split_entries",
]
