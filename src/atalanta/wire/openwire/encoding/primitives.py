"""Primitive values: the options of a wire format, properties of messages, bodies of maps and streams.

An int8 type is before each value (MarshallingSupport of activemq-client). Java's types are as in
`atalanta.message.properties`: Byte, Short, Int, Float and Char are marked, an int is a long, a float a double.
"""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer, utf16_units
from atalanta.message.encoding.java_utf8 import decode_java_utf8
from atalanta.message.properties import Byte, Char, Float, Int, Short
from atalanta.wire.openwire.encoding.modified_utf8 import encode_modified_utf8
from atalanta.wire.openwire.encoding.structure import EncodeError

NULL: Final = 0
BOOLEAN: Final = 1
BYTE: Final = 2
CHAR: Final = 3
SHORT: Final = 4
INT: Final = 5
LONG: Final = 6
DOUBLE: Final = 7
FLOAT: Final = 8
STRING: Final = 9
BYTES: Final = 10
MAP: Final = 11
LIST: Final = 12
BIG_STRING: Final = 13

# Java allows 127; maps and lists of people nest two or three deep.
DEPTH_MAX: Final = 32
# Limit of the values of a map: a value of one byte takes up to a hundred in memory.
VALUES_MAX: Final = 1_000_000
# A text with this many UTF-16 units or more is a big string.
BIG_UNITS: Final = 8191
NAME_BYTES_MAX: Final = 65_535
ENTRY_BYTES_MIN: Final = 3  # an empty name of 2 bytes and a null


class PrimitiveReader:
    """A cursor over primitive values. Every method raises DecodeError, which names the field `what`."""

    def __init__(self, data: bytes, values_max: int = VALUES_MAX, depth_max: int = DEPTH_MAX) -> None:
        self.reader = Reader(data)
        self._values_left: int = values_max
        self._depth_max = depth_max

    def left(self) -> int:
        """Returns the number of bytes not yet read."""
        return int(self.reader.left())

    def value(self, what: str, depth: int = 0) -> object:
        """Reads a type and its value."""
        reader = self.reader
        code = reader.int8(what)
        if code == STRING:
            return self._text(reader.int16(what) & 0xFFFF, what)
        if code == BIG_STRING:
            size = reader.int32(what)
            return None if size == -1 else self._text(size, what)
        if code == BYTES:
            return reader.blob(what)
        if code == MAP:
            return self.map(what, depth + 1)
        if code == LIST:
            return self._list(what, depth + 1)
        return self._number(code, what)

    def _number(self, code: int, what: str) -> object:
        reader = self.reader
        if code == NULL:
            return None
        if code == BOOLEAN:
            return reader.boolean(what)
        if code == INT:
            return Int(reader.int32(what))
        if code == LONG:
            return reader.int64(what)
        if code == DOUBLE:
            return reader.float64(what)
        if code == FLOAT:
            return Float(reader.float32(what))
        if code == BYTE:
            return Byte(reader.int8(what))
        if code == SHORT:
            return Short(reader.int16(what))
        if code == CHAR:
            return Char(chr(reader.int16(what) & 0xFFFF))
        raise DecodeError(what, int(reader.position) - 1, f"unknown primitive type {code}")

    def map(self, what: str, depth: int = 0) -> dict[str, object]:
        """Reads an int32 count and the entries, each a name and a value. A count below 0 is Java's null."""
        count = self._count(what, ENTRY_BYTES_MIN, depth)
        found: dict[str, object] = {}
        for _ in range(count):
            name = self._text(self.reader.int16(what) & 0xFFFF, what)
            found[name] = self.value(what, depth)
        return found

    def _list(self, what: str, depth: int) -> list[object]:
        return [self.value(what, depth) for _ in range(self._count(what, 1, depth))]

    def _count(self, what: str, least_bytes: int, depth: int) -> int:
        reader = self.reader
        if depth > self._depth_max:
            raise DecodeError(what, int(reader.position), f"nested more than {self._depth_max} deep")
        count = reader.int32(what)
        if count < 0:
            return 0
        if count * least_bytes > reader.left():
            text = f"{count} entries in {reader.left()} bytes"
            raise DecodeError(what, int(reader.position) - 4, text)
        self._values_left -= count
        if self._values_left < 0:
            raise DecodeError(what, int(reader.position) - 4, "too many values")
        return count

    def _text(self, size: int, what: str) -> str:
        start = int(self.reader.position)
        text = decode_java_utf8(self.reader.take(size, what))
        if text is None:
            raise DecodeError(what, start, "not Java's UTF-8")
        return text


class PrimitiveWriter:
    """The counterpart of PrimitiveReader. A value of another type raises EncodeError."""

    def __init__(self) -> None:
        self.writer = Writer()

    def getvalue(self) -> bytes:
        return self.writer.getvalue()

    def value(self, what: str, value: object) -> None:
        """Writes the type and the value."""
        writer = self.writer
        if value is None:
            writer.int8(NULL)
        elif isinstance(value, bool):
            writer.int8(BOOLEAN)
            writer.int8(1 if value else 0)
        elif isinstance(value, Char):
            writer.int8(CHAR)
            code = ord(value)
            writer.int16(code if code < 1 << 15 else code - (1 << 16))
        elif isinstance(value, str):
            self._text(value)
        # Before int: compiled code takes a value as an int without its class from there on.
        elif isinstance(value, Int):
            writer.int8(INT)
            writer.int32(value)
        elif isinstance(value, Byte):
            writer.int8(BYTE)
            writer.int8(value)
        elif isinstance(value, Short):
            writer.int8(SHORT)
            writer.int16(value)
        elif isinstance(value, int):
            self._long(what, value)
        elif isinstance(value, Float):
            writer.int8(FLOAT)
            writer.float32(value)
        elif isinstance(value, float):
            writer.int8(DOUBLE)
            writer.float64(value)
        elif isinstance(value, bytes):
            writer.int8(BYTES)
            writer.blob(value)
        elif isinstance(value, dict):
            writer.int8(MAP)
            self.map(what, value)
        elif isinstance(value, list):
            writer.int8(LIST)
            writer.int32(len(value))
            for each in value:
                self.value(what, each)
        else:
            raise EncodeError(what, f"a {type(value).__name__} is no primitive value")

    def _long(self, what: str, value: int) -> None:
        if not -(1 << 63) <= value < 1 << 63:
            raise EncodeError(what, f"{value} is no long")
        self.writer.int8(LONG)
        self.writer.int64(value)

    def map(self, what: str, values: dict[str, object]) -> None:
        """Writes an int32 count and the entries."""
        self.writer.int32(len(values))
        for name, value in values.items():
            encoded = encode_modified_utf8(name)
            if len(encoded) > NAME_BYTES_MAX:
                raise EncodeError(what, f"a name of {len(encoded)} bytes")
            self._size16(len(encoded))
            self.writer.raw(encoded)
            self.value(name, value)

    def _text(self, text: str) -> None:
        encoded = encode_modified_utf8(text)
        if utf16_units(text) < BIG_UNITS:
            self.writer.int8(STRING)
            self._size16(len(encoded))
        else:
            self.writer.int8(BIG_STRING)
            self.writer.int32(len(encoded))
        self.writer.raw(encoded)

    def _size16(self, size: int) -> None:
        self.writer.int16(size if size < 1 << 15 else size - (1 << 16))


def decode_map(
    data: bytes, what: str, values_max: int = VALUES_MAX, depth_max: int = DEPTH_MAX
) -> dict[str, object]:
    """Returns the map of properties or of a MapMessage. `depth_max` 0: no maps and lists in it."""
    return PrimitiveReader(data, values_max, depth_max).map(what)


def encode_map(what: str, values: dict[str, object]) -> bytes:
    """Returns the bytes of a map, in its order."""
    writer = PrimitiveWriter()
    writer.map(what, values)
    return writer.getvalue()
