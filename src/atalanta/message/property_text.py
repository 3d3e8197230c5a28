"""The canonical text of a property value, which maps of texts show.

Whole numbers and floats are decimal (the shortest text that reads back as the same value; NaN, Infinity). Booleans are
true and false, bytes base64; null has no text.
"""

from __future__ import annotations

import base64
import math
import struct
from typing import Final

from librt.strings import BytesWriter, read_i64_le, write_i32_le
from mypy_extensions import i32, i64, u8

from atalanta.message.encoding.buffer import decode_utf16
from atalanta.message.properties import FLOAT, PropertyValue

# The codec converts a longer text (bytes of UTF-16): its call costs as much as this loop.
LOOP_BYTES_MAX: Final = 64
# The bits of UTF-16 units that are 0 in ASCII: of four, and of one.
NOT_ASCII: Final = -0x7F007F007F0080
NOT_ASCII_LOW: Final = 0x80
FOUR_HALVES: Final = 0x0000FFFF0000FFFF

_FLOAT: Final = struct.Struct(">f")


def canonical(code: int, value: PropertyValue) -> str | None:
    """Returns the canonical text of a property value, see above."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return shortest_float(value) if code == FLOAT else repr(value)
    if isinstance(value, int):
        return str(value)
    return base64.b64encode(value).decode("ascii")


def shortest_float(value: float) -> str:
    """Returns the shortest decimal that reads back as the same 32-bit float."""
    for digits in range(6, 9):
        text = f"{value:.{digits}g}"
        if _FLOAT.unpack(_FLOAT.pack(float(text)))[0] == value:
            return repr(float(text))
    return repr(float(f"{value:.9g}"))


def write_utf8(out: BytesWriter, data: bytes, start: i64, end: i64) -> None:
    """Writes the UTF-16LE of data[start:end] as UTF-8. A lone surrogate (Java allows it) becomes a question mark."""
    if end - start <= LOOP_BYTES_MAX and _write_ascii(out, data, start, end):
        return
    text = decode_utf16(data[start:end])
    try:
        out.write(text.encode())
    except UnicodeEncodeError:
        out.write(text.encode("utf-8", "replace"))


def _write_ascii(out: BytesWriter, data: bytes, start: i64, end: i64) -> bool:
    """Writes a text of ASCII, four characters at a time. Returns False, with nothing written, for any other."""
    before: i64 = len(out)
    while end - start >= 8:
        four: i64 = read_i64_le(data, start)
        if four & NOT_ASCII != 0:
            out.truncate(before)
            return False
        four = (four | (four >> 8)) & FOUR_HALVES
        write_i32_le(out, i32((four | (four >> 16)) & 0x7FFFFFFF))
        start += 8
    while start < end:
        if data[start + 1] != 0 or data[start] >= NOT_ASCII_LOW:
            out.truncate(before)
            return False
        out.append(u8(data[start]))
        start += 2
    return True
