"""The pattern of frames that differ in a few fields only, and frames that are written by it.

A client sends message after message whose frames are equal but for numbers, times and content. The bytes between those
fields are compared instead of decoded: if they are equal, so are all fields that they stand for, since the bits of the
tight form are among them. An index of the cache means the same as long as the cache has not changed.
"""

from __future__ import annotations

from typing import Final

from librt.strings import (
    BytesWriter,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i16, i32, i64

# The size of a field with an int32 length before its bytes.
CONTENT_SIZE: Final = -1
# The fields of a message in which others of its sender differ, in the order of the wire.
MESSAGE_FIELDS: Final = ["producer_sequence_id", "broker_sequence_id", "expiration", "timestamp", "content"]
# Bytes that a pattern keeps: longer properties are decoded each time.
KEPT_BYTES_MAX: Final = 4096
# A longer content is not compared either: the last command of a connection stays in memory.
CONTENT_BYTES_MAX: Final = 64 << 10
UINT16_MAX: Final = 0xFFFF
UINT32_MAX: Final = 0xFFFF_FFFF


class VariableField:
    """A field that may differ: its name, its begin in the frame, and 0, 2, 4 or 8 bytes or CONTENT_SIZE."""

    def __init__(self, name: str, begin: i64, size: i64) -> None:
        self.name = name
        self.begin = begin
        self.size = size


class FramePattern:
    """The bytes of a frame that stay, and the fields between them. `values` are those of the last frame that matched.

    A field that is absent or has a content is 0 in `values`. There is one content at most.
    """

    def __init__(self, frame: bytes, fields: list[VariableField]) -> None:
        self._parts: list[bytes] = []
        self._sizes: list[int] = []
        self.values: list[int] = []
        self.names: list[str] = [field.name for field in fields]
        self.content_begin: i64 = 0
        self.content_end: i64 = 0
        self.kept_bytes: i64 = 0
        position: i64 = 0
        for field in fields:
            self._keep(frame[position : field.begin])
            size = field.size
            self._sizes.append(int(size))
            self.values.append(0)
            if size == CONTENT_SIZE:
                size = 4 + i64(read_i32_be(frame, field.begin))
            position = field.begin + size
        self._keep(frame[position:])

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self.kept_bytes += len(part)

    def matches(self, data: bytes, start: i64, end: i64) -> bool:
        """Returns True if `data[start:end]` is such a frame; then `values` and the range of its content are set."""
        position = start
        last = len(self._sizes)
        for index in range(last):
            part = self._parts[index]
            begin = position + len(part)
            if data[position:begin] != part:
                return False
            size: i64 = self._sizes[index]
            if size == CONTENT_SIZE:
                begin += 4
                if begin > end:
                    return False
                size = i64(read_i32_be(data, begin - 4))
                if size < 0 or size > end - begin or size > CONTENT_BYTES_MAX:
                    return False
                self.content_begin = begin
                self.content_end = begin + size
            elif size:
                if size > end - begin:
                    return False
                self.values[index] = int(_number(data, begin, size))
            position = begin + size
        part = self._parts[last]
        return end - position == len(part) and data[position:end] == part

    def write(self, out: BytesWriter, values: list[int], content: bytes, bytes_max: i64, size_prefix: bool) -> bool:
        """Writes a frame with these values, which are as many as the fields, and this content.

        Returns False, and writes nothing, if a value needs another size or the frame is longer than `bytes_max`.
        """
        total = self.kept_bytes
        last = len(self._sizes)
        for index in range(last):
            size: i64 = self._sizes[index]
            if size == CONTENT_SIZE:
                total += 4 + len(content)
            else:
                if not _fits(values[index], size):
                    return False
                total += size
        if total > bytes_max:
            return False
        if size_prefix:
            write_i32_be(out, i32(total))
        for index in range(last):
            out.write(self._parts[index])
            size = self._sizes[index]
            if size == CONTENT_SIZE:
                write_i32_be(out, i32(len(content)))
                out.write(content)
            elif size:
                _write_number(out, values[index], size)
        out.write(self._parts[last])
        return True


def _number(data: bytes, position: i64, size: i64) -> i64:
    """Returns a number of 2, 4 or 8 bytes; the shorter ones have no sign."""
    if size == 8:
        return read_i64_be(data, position)
    if size == 4:
        return i64(read_i32_be(data, position)) & UINT32_MAX
    return i64(read_i16_be(data, position)) & UINT16_MAX


def _fits(value: i64, size: i64) -> bool:
    """Returns True if the tight form writes the value with that size, or if all values have 8 bytes."""
    if size == 8:
        return True
    if size == 4:
        return UINT16_MAX < value <= UINT32_MAX
    return 0 < value <= UINT16_MAX if size == 2 else value == 0


def _write_number(out: BytesWriter, value: i64, size: i64) -> None:
    if size == 8:
        write_i64_be(out, value)
    elif size == 4:
        write_i32_be(out, i32(value if value < 1 << 31 else value - (1 << 32)))
    else:
        write_i16_be(out, i16(value if value < 1 << 15 else value - (1 << 16)))
