"""The properties of the entries of a LOG_READ_RESP as columns in Arrow's layout, without an object for each of them.

`data` are the entries and `heads` the positions of their encoded properties (LogColumns). The properties have passed
scan_properties. Numbers are little-endian.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from librt.strings import (
    BytesWriter,
    read_i16_be,
    read_i32_be,
    read_i32_le,
    read_i64_be,
    write_i32_le,
)
from mypy_extensions import i32, i64, u8

from atalanta.message.encoding.buffer import Reader, decode_utf16, encode_utf16
from atalanta.message.properties import (
    BOOLEAN,
    INT,
    LONG,
    NULL,
    SHORT,
    STRING,
    VALUE_BYTES,
    VARIABLE,
    PropertyValue,
    TypedProperties,
    decode_value,
)
from atalanta.message.property_text import canonical, write_utf8

HEAD_BYTES: Final = 4  # of a position in `heads`
HIDDEN: Final = -1  # the number of a name that is not wanted
UNKNOWN: Final = -2


class LogProperties:
    """The properties whose name `wanted` accepts; a repeated name has its first position and its last value.

    `name_numbers` are an int32 for each property, indexes of `names`. `codes` are the types, a byte each. `texts` are
    the canonical texts (property_text.py) in UTF-8, one behind the other; `text_ends` are their bounds, int32, one more
    than properties. `any_null` is True if a property is null. `offsets` are int32, one more than entries: the numbers
    of properties before each entry.
    """

    def __init__(self, data: bytes, heads: bytes, wanted: Callable[[str], bool]) -> None:
        self.data: bytes = data
        self.names: list[str] = []
        self.any_null: bool = False
        self._wanted: Callable[[str], bool] = wanted
        self._numbers: dict[bytes, int] = {}  # by the encoded name
        self._seen: list[int] = []  # by the number of a name: the last entry that has it
        self._count: i32 = 0
        self._name_numbers: BytesWriter = BytesWriter()
        self._codes: BytesWriter = BytesWriter()
        self._text_ends: BytesWriter = BytesWriter()
        self._texts: BytesWriter = BytesWriter()
        self._offsets: BytesWriter = BytesWriter()
        write_i32_le(self._text_ends, 0)
        write_i32_le(self._offsets, 0)
        for at in range(0, len(heads), HEAD_BYTES):
            self._entry(i64(read_i32_le(heads, at)), at)
            write_i32_le(self._offsets, self._count)

    @property
    def name_numbers(self) -> bytes:
        return self._name_numbers.getvalue()

    @property
    def codes(self) -> bytes:
        return self._codes.getvalue()

    @property
    def text_ends(self) -> bytes:
        return self._text_ends.getvalue()

    @property
    def texts(self) -> bytes:
        return self._texts.getvalue()

    @property
    def offsets(self) -> bytes:
        return self._offsets.getvalue()

    @property
    def count(self) -> int:
        """Returns the number of properties."""
        return self._count

    def _entry(self, head: i64, entry: int) -> None:
        data = self.data
        if data[head] == 0:
            return
        before: i32 = self._count
        text_before: i64 = len(self._texts)
        count: i64 = i64(read_i32_be(data, head + 1))
        position: i64 = head + 5
        for _ in range(count):
            length: i64 = i64(read_i32_be(data, position))
            number = self._number(data[position + 4 : position + 4 + length])
            position += length + 5
            code: i64 = i64(data[position - 1])
            size: i64 = i64(VALUE_BYTES[code])
            if size == VARIABLE:
                size = i64(read_i32_be(data, position))
                position += 4
            if number != HIDDEN:
                if self._seen[number] == entry:
                    self._undo(before, text_before)
                    self._repeated(head)
                    return
                self._seen[number] = entry
                self._value(code, position, size)
                self._add(number, code)
            position += size

    def _number(self, encoded: bytes) -> int:
        """Returns the number of a name, or HIDDEN."""
        number = self._numbers.get(encoded, UNKNOWN)
        if number == UNKNOWN:
            name = decode_utf16(encoded)
            number = HIDDEN
            if self._wanted(name):
                number = len(self.names)
                self.names.append(name)
                self._seen.append(UNKNOWN)
            self._numbers[encoded] = number
        return number

    def _value(self, code: i64, position: i64, size: i64) -> None:
        """Writes the text of the value at `position`."""
        data = self.data
        out = self._texts
        if code == STRING:
            write_utf8(out, data, position, position + size)
        elif code == INT:
            out.write(str(int(read_i32_be(data, position))).encode())
        elif code == LONG:
            out.write(str(int(read_i64_be(data, position))).encode())
        elif code == BOOLEAN:
            out.write(b"true" if data[position] != 0 else b"false")
        elif code == SHORT:
            out.write(str(int(read_i16_be(data, position))).encode())
        elif code == NULL:
            self.any_null = True
        else:
            begin = position - 4 if VALUE_BYTES[code] == VARIABLE else position
            text = canonical(int(code), decode_value(Reader(data, int(begin)), int(code), "property"))
            if text is not None:
                out.write(text.encode("utf-8", "replace"))

    def _add(self, number: int, code: i64) -> None:
        write_i32_le(self._name_numbers, i32(number))
        self._codes.append(u8(code))
        write_i32_le(self._text_ends, i32(len(self._texts)))
        self._count += 1

    def _undo(self, before: i32, text_before: i64) -> None:
        """Removes the properties from the number `before` on."""
        self._count = before
        self._name_numbers.truncate(i64(before) * 4)
        self._codes.truncate(i64(before))
        self._text_ends.truncate((i64(before) + 1) * 4)
        self._texts.truncate(text_before)

    def _repeated(self, head: i64) -> None:
        """Adds the properties of an entry that has a name twice."""
        for name, (code, value) in TypedProperties.decode(Reader(self.data, int(head))).entries.items():
            number = self._number(encode_utf16(name))
            if number == HIDDEN:
                continue
            text = canonical(code, value)
            if text is None:
                self.any_null = True
            else:
                self._texts.write(text.encode("utf-8", "replace"))
            self._add(number, code)


class LogProperty:
    """The property `name` of each entry: type codes (a byte each) and values; NULL and None if it is missing.

    `found` is False if no entry has it. Of a repeated name the last value counts.
    """

    def __init__(self, data: bytes, heads: bytes, name: str) -> None:
        self.found: bool = False
        self.values: list[PropertyValue] = []
        self._data: bytes = data
        self._key: bytes = encode_utf16(name)
        self._name: str = name
        self._codes: BytesWriter = BytesWriter()
        for at in range(0, len(heads), HEAD_BYTES):
            self._entry(i64(read_i32_le(heads, at)))

    @property
    def codes(self) -> bytes:
        return self._codes.getvalue()

    def _entry(self, head: i64) -> None:
        data = self._data
        found: i64 = -1
        if data[head] != 0:
            size: i64 = len(self._key)
            count: i64 = i64(read_i32_be(data, head + 1))
            position: i64 = head + 5
            for _ in range(count):
                length: i64 = i64(read_i32_be(data, position))
                position += length + 5
                if length == size and data[position - 1 - length : position - 1] == self._key:
                    found = position
                step: i64 = i64(VALUE_BYTES[data[position - 1]])
                if step == VARIABLE:
                    step = i64(read_i32_be(data, position)) + 4
                position += step
        if found < 0:
            self._codes.append(NULL)
            self.values.append(None)
            return
        self.found = True
        code: i64 = i64(data[found - 1])
        self._codes.append(u8(code))
        if code == INT:
            self.values.append(int(read_i32_be(data, found)))
        elif code == LONG:
            self.values.append(int(read_i64_be(data, found)))
        else:
            self.values.append(decode_value(Reader(data, int(found)), int(code), self._name))
