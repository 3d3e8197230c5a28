"""The messages of one chunk: column data where available, message objects for the rest."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa

from atalanta.client.log import TEXT, DecodeError, LogColumns, Message, columns_of, entries_of


class ArrowChunk:
    """The chunk: `count` messages of `queue` at one node. Raises DecodeError.

    `error` says why the body of its only message is incomplete or missing; else "".
    """

    def __init__(
        self, count: int, entries: bytes, queue: str, node_id: str, error: str = ""
    ) -> None:
        self.count = count
        self.queue = queue
        self.node_id = node_id
        self.entries = entries
        self.error = error
        self.columns: LogColumns = columns_of(count, entries)

    @cached_property
    def messages(self) -> list[Message]:
        """Returns the messages, decoded at the first call: ten times the work of `columns`."""
        return [entry.message for entry in entries_of(self.count, self.entries)]

    @cached_property
    def texts(self) -> list[str | None]:
        """Returns the texts; None for other messages, and if the body is not a text."""
        found: list[str | None] = []
        for row, message in enumerate(self.messages):
            text = None
            if message.kind == TEXT and not self.error:
                try:
                    text = message.text()
                except DecodeError as error:
                    self._malformed[row] = f"the body is not a text: {error}"
            found.append(text)
        return found

    @cached_property
    def _malformed(self) -> dict[int, str]:
        return {0: self.error} if self.error else {}

    @property
    def errors(self) -> dict[int, str]:
        """Returns the errors of rows that were not converted, by row."""
        if self.columns.any_text:
            _ = self.texts
        return self._malformed


def texts(kind: pa.DataType, values: list[str | None]) -> pa.Array:
    """Returns a column of strings. Invalid Unicode (a lone surrogate, which Java allows) becomes a question mark."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([None if text is None else clean(text) for text in values], kind)


def clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
