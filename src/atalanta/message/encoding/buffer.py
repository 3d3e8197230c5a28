"""Readers and writers of CORE's primitive types, big endian (docs/internals/protocols/core.md has the layouts).

Every length is checked against the remaining bytes before memory is allocated. A frame of a few bytes can
therefore never cause an allocation of more than a few bytes.
"""

from __future__ import annotations

from codecs import utf_16_le_decode, utf_16_le_encode
from typing import Final

from librt.strings import (
    BytesWriter,
    read_f32_be,
    read_f64_be,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_f32_be,
    write_f64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i16, i32, i64, u8

from atalanta.message.encoding.java_utf8 import decode_java_utf8, encode_java_utf8

# A `str` below SHORT_STRING_UNITS is written unit by unit. From LONG_STRING_UNITS on it is a SimpleString.
SHORT_STRING_UNITS: Final = 9
LONG_STRING_UNITS: Final = 4095


class DecodeError(Exception):
    """Malformed bytes: the `field`, the `offset` in the data, and the reason."""

    def __init__(self, field: str, offset: int, text: str) -> None:
        super().__init__(f"{field or 'value'} at byte {offset}: {text}")
        self.field = field
        self.offset = offset
        self.text = text


class Reader:
    """A cursor over `data` that never passes `end` (-1: the end of the data). Every method raises DecodeError.

    `what` names the field for the error.
    """

    def __init__(self, data: bytes, position: int = 0, end: int = -1) -> None:
        size = len(data)
        if end < 0:
            end = size
        if position < 0 or position > end or end > size:
            raise ValueError(f"range {position}..{end} is not in {size} bytes")
        self.data: bytes = data
        self.position: i64 = position
        self.end: i64 = end

    def begin(self, data: bytes, position: i64, end: i64) -> None:
        """Points the reader at other data, which saves a new object per message. The caller checks the range."""
        self.data = data
        self.position = position
        self.end = end

    def left(self) -> i64:
        """Returns the number of bytes not yet read."""
        return self.end - self.position

    def advance(self, n: i64, what: str) -> i64:
        """Advances by n bytes and returns the offset of the first of them."""
        start = self.position
        if n < 0:
            raise DecodeError(what, start, f"negative length {n}")
        if n > self.end - start:
            raise DecodeError(what, start, f"needs {n} bytes, {self.end - start} are left")
        self.position = start + n
        return start

    def take(self, n: i64, what: str = "") -> bytes:
        """Returns a copy of the next n bytes."""
        start = self.advance(n, what)
        return self.data[start : start + n]

    def rest(self) -> bytes:
        """Returns every byte up to the end."""
        start = self.position
        self.position = self.end
        return self.data[start : self.end]

    def int8(self, what: str = "") -> int:
        value: int = self.data[self.advance(1, what)]
        return value - 256 if value > 127 else value

    def uint8(self, what: str = "") -> int:
        return self.data[self.advance(1, what)]

    def boolean(self, what: str = "") -> bool:
        return self.data[self.advance(1, what)] != 0

    def int16(self, what: str = "") -> int:
        return int(read_i16_be(self.data, self.advance(2, what)))

    def int32(self, what: str = "") -> int:
        return int(read_i32_be(self.data, self.advance(4, what)))

    def int64(self, what: str = "") -> int:
        return int(read_i64_be(self.data, self.advance(8, what)))

    def float32(self, what: str = "") -> float:
        return read_f32_be(self.data, self.advance(4, what))

    def float64(self, what: str = "") -> float:
        return read_f64_be(self.data, self.advance(8, what))

    def count(self, what: str, least_bytes: int) -> int:
        """Reads an int32 number of entries of at least `least_bytes` each. Raises DecodeError if they do not fit."""
        n = self.int32(what)
        if n < 0 or n * least_bytes > self.end - self.position:
            raise DecodeError(what, self.position - 4, f"{n} entries in {self.left()} bytes")
        return n

    def blob(self, what: str = "") -> bytes:
        """Reads an int32 length, then that many bytes."""
        return self.take(self.int32(what), what)

    def simple_string(self, what: str = "") -> str:
        """Reads a SimpleString: int32 byte length, UTF-16LE. Lone surrogates are kept."""
        return self._utf16(self.int32(what), what)

    def _utf16(self, n: i64, what: str) -> str:
        if n & 1:
            raise DecodeError(what, self.position - 4, f"odd length {n} of UTF-16")
        start = self.advance(n, what)
        return decode_utf16(self.data[start : start + n])

    def nullable_simple_string(self, what: str = "") -> str | None:
        return self.simple_string(what) if self.boolean(what) else None

    def string(self, what: str = "") -> str:
        """Reads a Java string: int32 number of UTF-16 units, then one of three forms chosen by that number."""
        units = self.int32(what)
        if units < 0:
            raise DecodeError(what, self.position - 4, f"negative length {units}")
        if units < SHORT_STRING_UNITS:
            start = self.advance(2 * units, what)
            return self.data[start : self.position].decode("utf-16-be", "surrogatepass")
        start = self.position
        if units < LONG_STRING_UNITS:
            size: i64 = self.int16(what)
            text = decode_java_utf8(self.take(size & 0xFFFF, what))
            if text is None:
                raise DecodeError(what, start, "not Java's UTF-8")
        else:
            text = self.simple_string(what)
        found = utf16_units(text)
        if found != units:
            raise DecodeError(what, start, f"{units} UTF-16 units announced, {found} found")
        return text

    def nullable_string(self, what: str = "") -> str | None:
        return self.string(what) if self.boolean(what) else None

    def nullable_boolean(self, what: str = "") -> bool | None:
        return self.boolean(what) if self.boolean(what) else None

    def nullable_int32(self, what: str = "") -> int | None:
        return self.int32(what) if self.boolean(what) else None

    def nullable_int64(self, what: str = "") -> int | None:
        return self.int64(what) if self.boolean(what) else None


class Writer:
    """A growing buffer; the counterpart of Reader, with the same method names.

    A number out of range is an error of the caller: OverflowError or ValueError, in the compiled build also TypeError.
    """

    def __init__(self) -> None:
        self.out: BytesWriter = BytesWriter()

    def __len__(self) -> int:
        return len(self.out)

    def getvalue(self) -> bytes:
        return self.out.getvalue()

    def clear(self) -> None:
        self.out.truncate(0)

    def raw(self, data: bytes) -> None:
        self.out.write(data)

    def int8(self, value: i64) -> None:
        if value < -128 or value > 127:
            raise OverflowError(f"{value} is not an int8")
        self.out.append(u8(value & 0xFF))

    def uint8(self, value: i64) -> None:
        if value < 0 or value > 255:
            raise OverflowError(f"{value} is not a uint8")
        self.out.append(u8(value))

    def boolean(self, value: bool) -> None:
        """Writes 0xFF or 0, like Artemis' ChannelBufferWrapper."""
        self.out.append(u8(0xFF) if value else u8(0))

    def int16(self, value: i16) -> None:
        write_i16_be(self.out, value)

    def int32(self, value: i32) -> None:
        write_i32_be(self.out, value)

    def int64(self, value: i64) -> None:
        write_i64_be(self.out, value)

    def set_int32(self, at: i64, value: i64) -> None:
        """Replaces the four bytes at offset `at`."""
        out = self.out
        out[at] = u8((value >> 24) & 0xFF)
        out[at + 1] = u8((value >> 16) & 0xFF)
        out[at + 2] = u8((value >> 8) & 0xFF)
        out[at + 3] = u8(value & 0xFF)

    def set_int64(self, at: i64, value: i64) -> None:
        """Replaces the eight bytes at offset `at`."""
        self.set_int32(at, value >> 32)
        self.set_int32(at + 4, value)

    def float32(self, value: float) -> None:
        write_f32_be(self.out, value)

    def float64(self, value: float) -> None:
        write_f64_be(self.out, value)

    def blob(self, data: bytes) -> None:
        """Writes an int32 length, then the bytes."""
        self.int32(len(data))
        self.out.write(data)

    def simple_string(self, value: str) -> None:
        encoded = encode_utf16(value)
        self.int32(len(encoded))
        self.out.write(encoded)

    def nullable_simple_string(self, value: str | None) -> None:
        """Writes the marker 1 before a value. The other nullable types have the marker 0xFF (Artemis' BufferHelper)."""
        if value is None:
            self.out.append(u8(0))
        else:
            self.out.append(u8(1))
            self.simple_string(value)

    def string(self, value: str) -> None:
        units = utf16_units(value)
        self.int32(units)
        if units < SHORT_STRING_UNITS:
            self.out.write(value.encode("utf-16-be", "surrogatepass"))
        elif units < LONG_STRING_UNITS:
            encoded = encode_java_utf8(value)
            self.int16(len(encoded))  # at most 3 * 4094
            self.out.write(encoded)
        else:
            self.simple_string(value)

    def nullable_string(self, value: str | None) -> None:
        if value is None:
            self.out.append(u8(0))
        else:
            self.out.append(u8(1))
            self.string(value)

    def nullable_boolean(self, value: bool | None) -> None:
        if value is None:
            self.out.append(u8(0))
        else:
            self.boolean(True)
            self.boolean(value)

    def nullable_int32(self, value: int | None) -> None:
        if value is None:
            self.out.append(u8(0))
        else:
            self.boolean(True)
            self.int32(value)

    def nullable_int64(self, value: int | None) -> None:
        if value is None:
            self.out.append(u8(0))
        else:
            self.boolean(True)
            self.int64(value)


def utf16_units(text: str) -> int:
    """Returns the length that Java counts: a character beyond U+FFFF counts twice."""
    if text.isascii():
        return len(text)
    return len(encode_utf16(text)) // 2


def decode_utf16(data: bytes) -> str:
    """Decodes an even number of bytes of UTF-16LE, lone surrogates included.

    bytes.decode finds the codec by its name, which takes four times as long.
    """
    return utf_16_le_decode(data, "surrogatepass", True)[0]


def encode_utf16(text: str) -> bytes:
    """Encodes text as UTF-16LE, lone surrogates included."""
    return utf_16_le_encode(text, "surrogatepass")[0]
