"""The messages of one chunk as columns; texts and properties are read when a column asks for them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from atalanta.client.log import ColumnChunk, LogColumns, LogProperty, LogTexts, columns_of

# The property that a message of a bare chunk (LogColumns) may still have.
ROUTING_TYPE: Final = "_AMQ_ROUTING_TYPE"


class ArrowChunk:
    """The chunk: `count` messages of `queue` at one node. Raises DecodeError.

    `error` says why the body of its only message is incomplete or missing; else "".
    """

    def __init__(
        self, count: int, content: bytes | ColumnChunk, queue: str, node_id: str, error: str = ""
    ) -> None:
        self.count = count
        self.queue = queue
        self.node_id = node_id
        self.error = error
        self.columns: LogColumns = columns_of(count, content)

    @cached_property
    def heads(self) -> bytes:
        """Returns the positions of the messages' properties, which LogProperties and LogProperty read."""
        return self.columns.heads

    @cached_property
    def texts(self) -> LogTexts | None:
        """Returns the texts; None if there is none, and for a message without its body."""
        return LogTexts(self.columns) if self.columns.any_text and not self.error else None

    @property
    def errors(self) -> dict[int, str]:
        """Returns the errors of rows that were not converted, by row."""
        if self.error:
            return {0: self.error}
        return self.texts.errors if self.texts is not None else {}

    def found_property(self, name: str) -> LogProperty | None:
        """Returns the property `name` of each message; None if no message has it."""
        if self.columns.bare and name != ROUTING_TYPE:
            return None
        found = LogProperty(self.columns.data, self.heads, name)
        return found if found.found else None


def numbers(kind: pa.DataType, count: int, values: bytes) -> pa.Array:
    """Returns a column over its bytes, which are not copied."""
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(values)])


def strings(kind: pa.DataType, count: int, ends: bytes, values: bytes, present: bytes | None) -> pa.Array:
    """Returns a column of strings or binaries over its bytes; where the byte of `present` is 0, it is null."""
    validity = None if present is None else numbers(pa.uint8(), count, present).cast(pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(ends), pa.py_buffer(values)])


def texts(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """Returns a column of strings. Invalid Unicode (a lone surrogate, which Java allows) becomes a question mark."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([None if text is None else clean(text) for text in values], kind)


def clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
