"""The messages of one chunk: column data where available, message objects for the rest."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa

from atalanta.client.log.log_entries import LogColumns, Message, columns_of, entries_of


class Chunk:
    """The chunk: `count` messages of `queue` at one node. Raises DecodeError."""

    def __init__(self, count: int, entries: bytes, queue: str, node_id: str) -> None:
        self.count = count
        self.queue = queue
        self.node_id = node_id
        self.entries = entries
        self.columns: LogColumns = columns_of(count, entries)

    @cached_property
    def messages(self) -> list[Message]:
        """Returns the messages, decoded at the first call: ten times the work of `columns`."""
        return [entry.message for entry in entries_of(self.count, self.entries)]


def texts(kind: pa.DataType, values: list[str | None]) -> pa.Array:
    """Returns a column of strings. Invalid Unicode (a lone surrogate, which Java allows) becomes a question mark."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([None if text is None else clean(text) for text in values], kind)


def clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
