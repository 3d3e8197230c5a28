"""The decoder of AMQP 1.0's types (specification part 1, sections 1.2 and 1.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.message.properties import Byte, Char, Float, Int, Short
from atalanta.wire.amqp.values import (
    Array,
    Decimal,
    Described,
    Entry,
    Map,
    Symbol,
    Timestamp,
    UnsignedByte,
    UnsignedInt,
    UnsignedLong,
    UnsignedShort,
    Uuid,
)

DEPTH_MAX: Final = 32
# Limit of the values in a message: a value of one byte takes up to forty in memory.
VALUES_MAX: Final = 1_000_000

# Array elements without bytes: a few bytes may announce any number of them.
EMPTY_ELEMENTS_MAX: Final = 4_096

DESCRIBED: Final = 0x00
LIST0, LIST8, LIST32 = 0x45, 0xC0, 0xD0
MAP8, MAP32 = 0xC1, 0xD1
ARRAY8, ARRAY32 = 0xE0, 0xF0
EMPTY: Final = (0x40, 0x41, 0x42, 0x43, 0x44, LIST0)
UTF16_UNIT_MAX: Final = 0xFFFF
UNICODE_MAX: Final = 0x10FFFF


class Decoder:
    """A position in `data`. Every method raises DecodeError with the field that `what` names.

    Lengths are checked against the rest of the data before bytes are taken. Values become None, bool, int (long),
    Byte, Short, Int, float (double), Float, Char (str beyond U+FFFF), str, bytes (binary), list, and those of
    `atalanta.wire.amqp.values`.
    """

    def __init__(self, data: bytes, position: int = 0, end: int = -1) -> None:
        self.reader = Reader(data, position, end)
        self._values_left: int = VALUES_MAX
        self._empty_left: int = EMPTY_ELEMENTS_MAX

    @property
    def position(self) -> int:
        """The offset in the data of the next byte."""
        return int(self.reader.position)

    def left(self) -> int:
        """Returns the number of bytes not yet read."""
        return int(self.reader.left())

    def value(self, what: str, depth: int = DEPTH_MAX) -> object:
        """Returns the next value, with its constructor before it."""
        code = self.reader.uint8(what)
        if code == DESCRIBED:
            self._descend(what, depth)
            descriptor = self.value(what, depth - 1)
            return Described(descriptor, self.value(what, depth - 1))
        return self._of(code, what, depth)

    def _of(self, code: int, what: str, depth: int) -> object:
        """Returns the value after a constructor that is no descriptor."""
        self._values_left -= 1
        if self._values_left < 0:
            raise DecodeError(what, self.position, f"more than {VALUES_MAX} values")
        if code in (LIST0, LIST8, LIST32, MAP8, MAP32, ARRAY8, ARRAY32):
            return self._compound(code, what, depth)
        read = PRIMITIVES.get(code)
        if read is None:
            raise DecodeError(what, self.position - 1, f"unknown constructor 0x{code:02x}")
        return read(self.reader, what)

    def _descend(self, what: str, depth: int) -> None:
        if depth <= 0:
            raise DecodeError(what, self.position, f"nested more than {DEPTH_MAX} deep")

    def _compound(self, code: int, what: str, depth: int) -> object:
        """Reads the head of a list, map or array: its size in bytes, with that of the count, then the count."""
        if code == LIST0:
            return []
        self._descend(what, depth)
        reader = self.reader
        wide = code in (LIST32, MAP32, ARRAY32)
        size = _size(reader, wide, what)
        if size > reader.left():
            raise DecodeError(what, self.position, f"needs {size} bytes, {reader.left()} are left")
        outer_end = reader.end
        reader.end = reader.position + size
        count = _size(reader, wide, what)
        found: object
        if code in (LIST8, LIST32):
            found = self._list(count, what, depth)
        elif code in (MAP8, MAP32):
            found = self._map(count, what, depth)
        else:
            found = self._array(count, what, depth)
        if reader.left():
            raise DecodeError(what, self.position, f"{reader.left()} bytes behind the last value")
        reader.end = outer_end
        return found

    def _list(self, count: int, what: str, depth: int) -> list[object]:
        self._check(count, what)
        return [self.value(what, depth - 1) for _ in range(count)]

    def _map(self, count: int, what: str, depth: int) -> Map:
        self._check(count, what)
        if count % 2:
            raise DecodeError(what, self.position, f"a map of {count} keys and values")
        entries = []
        for _ in range(count // 2):
            key = self.value(what, depth - 1)
            begin = self.reader.position
            value = self.value(what, depth - 1)
            entries.append(Entry(key, value, self.reader.data[begin : self.reader.position]))
        return Map(entries)

    def _array(self, count: int, what: str, depth: int) -> Array:
        """Reads an array: its elements share the constructor before the first."""
        code = self.reader.uint8(what)
        descriptor: object = None
        described = code == DESCRIBED
        if described:
            descriptor = self.value(what, depth - 1)
            code = self.reader.uint8(what)
        if code in EMPTY:
            self._empty_left -= count
            if self._empty_left < 0:
                raise DecodeError(what, self.position, f"an array of {count} empty elements")
        else:
            self._check(count, what)
        found = Array()
        for _ in range(count):
            element = self._of(code, what, depth - 1)
            found.append(Described(descriptor, element) if described else element)
        return found

    def _check(self, count: int, what: str) -> None:
        """Checks a count of values: every value takes a byte at least."""
        if count > self.reader.left():
            raise DecodeError(what, self.position, f"{count} values in {self.left()} bytes")


def kind_of(value: object) -> str:
    """Returns the name of a decoded value's type, for an error."""
    return "null" if value is None else type(value).__name__.lower()


def _size(reader: Reader, wide: bool, what: str) -> int:
    return int(reader.int32(what)) & 0xFFFFFFFF if wide else reader.uint8(what)


def _binary(wide: bool) -> Callable[[Reader, str], bytes]:
    def read(reader: Reader, what: str) -> bytes:
        return reader.take(_size(reader, wide, what), what)

    return read


def _text(wide: bool) -> Callable[[Reader, str], str]:
    def read(reader: Reader, what: str) -> str:
        data = reader.take(_size(reader, wide, what), what)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DecodeError(what, int(reader.position), f"no UTF-8: {error.reason}") from None

    return read


def _symbol(wide: bool) -> Callable[[Reader, str], Symbol]:
    def read(reader: Reader, what: str) -> Symbol:
        data = reader.take(_size(reader, wide, what), what)
        if not data.isascii():
            raise DecodeError(what, int(reader.position), "a symbol that is not ASCII")
        return Symbol(data.decode("ascii"))

    return read


def _char(reader: Reader, what: str) -> str:
    code = reader.int32(what) & 0xFFFFFFFF
    if code > UNICODE_MAX:
        raise DecodeError(what, int(reader.position) - 4, f"no character 0x{code:x}")
    return Char(chr(code)) if code <= UTF16_UNIT_MAX else chr(code)


def _boolean(reader: Reader, what: str) -> bool:
    octet = reader.uint8(what)
    if octet > 1:
        raise DecodeError(what, int(reader.position) - 1, f"a boolean of 0x{octet:02x}")
    return octet == 1


PRIMITIVES: Final[dict[int, Callable[[Reader, str], object]]] = {
    0x40: lambda reader, what: None,
    0x41: lambda reader, what: True,
    0x42: lambda reader, what: False,
    0x43: lambda reader, what: UnsignedInt(0),
    0x44: lambda reader, what: UnsignedLong(0),
    0x50: lambda reader, what: UnsignedByte(reader.uint8(what)),
    0x51: lambda reader, what: Byte(reader.int8(what)),
    0x52: lambda reader, what: UnsignedInt(reader.uint8(what)),
    0x53: lambda reader, what: UnsignedLong(reader.uint8(what)),
    0x54: lambda reader, what: Int(reader.int8(what)),
    0x55: lambda reader, what: reader.int8(what),
    0x56: _boolean,
    0x60: lambda reader, what: UnsignedShort(reader.int16(what) & 0xFFFF),
    0x61: lambda reader, what: Short(reader.int16(what)),
    0x70: lambda reader, what: UnsignedInt(reader.int32(what) & 0xFFFFFFFF),
    0x71: lambda reader, what: Int(reader.int32(what)),
    0x72: lambda reader, what: Float(reader.float32(what)),
    0x73: _char,
    0x74: lambda reader, what: Decimal(reader.take(4, what)),
    0x80: lambda reader, what: UnsignedLong(reader.int64(what) & 0xFFFFFFFFFFFFFFFF),
    0x81: lambda reader, what: reader.int64(what),
    0x82: lambda reader, what: reader.float64(what),
    0x83: lambda reader, what: Timestamp(reader.int64(what)),
    0x84: lambda reader, what: Decimal(reader.take(8, what)),
    0x94: lambda reader, what: Decimal(reader.take(16, what)),
    0x98: lambda reader, what: Uuid(reader.take(16, what)),
    0xA0: _binary(False),
    0xA1: _text(False),
    0xA3: _symbol(False),
    0xB0: _binary(True),
    0xB1: _text(True),
    0xB3: _symbol(True),
}
