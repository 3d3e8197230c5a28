"""Insertion and removal of properties in an encoded header. The other properties stay encoded.

message/properties.py has the layout. Nodes add properties of their own to a forwarded message; the bytes of the
sender's properties do not change.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_be, write_i32_be
from mypy_extensions import i32, i64

from atalanta.message.encoding.buffer import encode_utf16
from atalanta.message.properties import BYTES, VALUE_BYTES, VARIABLE, find_value

COUNT_BYTES: Final = 5  # the marker byte and the int32 count
NAME_BYTES: Final = 5  # besides the name itself: its int32 length and the type code


def entry_prefix(name: str) -> bytes:
    """Returns the bytes before the value of a property of type bytes."""
    key = encode_utf16(name)
    return len(key).to_bytes(4, "big") + key + bytes([BYTES])


def write_entry(out: BytesWriter, prefix: bytes, value: bytes) -> None:
    """Writes a property of type bytes whose `prefix` is a result of `entry_prefix`."""
    size: i32 = len(value)
    out.write(prefix)
    write_i32_be(out, size)
    out.write(value)


def with_entries(head: bytes, offset: i64, entries: bytes, count: i64) -> bytes:
    """Returns the header with `count` more properties. `offset` is the offset of the properties in it."""
    out = BytesWriter()
    known: i64 = 0
    out.write(head[:offset])
    out.append(1)
    if head[offset] != 0:
        known = i64(read_i32_be(head, offset + 1))
    write_i32_be(out, i32(known + count))
    if known > 0:
        out.write(head[offset + COUNT_BYTES :])
    out.write(entries)
    return out.getvalue()


def without(head: bytes, offset: i64, key: bytes) -> bytes:
    """Returns the header without the property of this name (UTF-16LE), unchanged if the property does not exist.

    The properties must have passed properties.scan_properties. One walk removes every entry of a repeated name.
    """
    if find_value(head, offset, key) < 0:
        return head
    count: int = read_i32_be(head, offset + 1)
    left: i64 = count
    kept: list[bytes] = []
    begin: int = int(offset) + COUNT_BYTES  # start of the entries kept but not yet in `kept`
    position: int = begin
    key_bytes = len(key)
    for _ in range(count):
        entry = position
        length: int = read_i32_be(head, position)
        position += length + NAME_BYTES
        size: int = VALUE_BYTES[head[position - 1]]
        if size == VARIABLE:
            size = read_i32_be(head, position) + 4
        position += size
        if length == key_bytes and head.startswith(key, entry + 4):
            kept.append(head[begin:entry])
            begin = position
            left -= 1
    kept.append(head[begin:])
    out = BytesWriter()
    out.write(head[:offset])
    if left == 0:
        out.append(0)
        return out.getvalue()
    out.append(1)
    write_i32_be(out, i32(left))
    for piece in kept:
        out.write(piece)
    return out.getvalue()
