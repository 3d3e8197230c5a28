"""The texts of the text messages of a LOG_READ_RESP as a column in Arrow's layout."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_be, read_i32_le, write_i32_le
from mypy_extensions import i32, i64

from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.message import TEXT, TEXT_LENGTHS_BYTES, text_of_body
from atalanta.message.property_text import write_utf8
from atalanta.wire.core.client.log_columns import LogColumns

EDGES_BYTES: Final = 8  # of an entry
COLUMN_BYTES_MAX: Final = (1 << 31) - 1  # of offsets of 32 bits


class LogTexts:
    """The texts in UTF-8, one behind the other, and their bounds: int32, one more than entries.

    `present` has a byte for each entry: 0 for a message of another kind, a null text and a body that is no text; for
    that `errors` has the reason, by the number of the entry.
    """

    def __init__(self, columns: LogColumns) -> None:
        self.errors: dict[int, str] = {}
        self.all_present: bool = True
        self._data: bytes = columns.data
        self._texts: BytesWriter = BytesWriter()
        self._ends: BytesWriter = BytesWriter()
        self._present: BytesWriter = BytesWriter()
        write_i32_le(self._ends, 0)
        kinds = columns.kinds
        edges = columns.edges
        for entry in range(len(kinds)):
            at: i64 = entry * EDGES_BYTES
            found = kinds[entry] == TEXT and self._text(
                entry, i64(read_i32_le(edges, at)), i64(read_i32_le(edges, at + 4))
            )
            self._present.append(1 if found else 0)
            if not found:
                self.all_present = False
            write_i32_le(self._ends, i32(len(self._texts)))

    @property
    def texts(self) -> bytes:
        return self._texts.getvalue()

    @property
    def ends(self) -> bytes:
        return self._ends.getvalue()

    @property
    def present(self) -> bytes:
        return self._present.getvalue()

    def _text(self, entry: int, begin: i64, end: i64) -> bool:
        """Writes the text of a body. Returns False for a null text and for a body that is none."""
        data = self._data
        if end - begin < TEXT_LENGTHS_BYTES or data[begin] == 0:
            return self._unusual(entry, data[begin:end])
        start = begin + TEXT_LENGTHS_BYTES
        size: i64 = i64(read_i32_be(data, begin + 1))
        if size < 0 or size & 1 or size > end - start:
            return self._unusual(entry, data[begin:end])
        before: i64 = len(self._texts)
        write_utf8(self._texts, data, start, start + size)
        if len(self._texts) > COLUMN_BYTES_MAX:
            self._texts.truncate(before)
            self.errors[entry] = f"the texts of a chunk have more than {COLUMN_BYTES_MAX} bytes in UTF-8"
            return False
        return True

    def _unusual(self, entry: int, body: bytes) -> bool:
        """Finds out why a body has no text; a null text is no error. Returns False."""
        try:
            text_of_body(body)
        except DecodeError as error:
            self.errors[entry] = f"the body is not a text: {error}"
        return False
