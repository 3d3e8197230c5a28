"""The pattern of frames that differ in a few fields only, and frames that are written by it.

A client sends message after message whose frames are equal but for numbers, times and content. The bytes between those
fields are compared instead of decoded: if they are equal, so are all fields that they stand for, since the bits of the
tight form are among them. An index of the cache means the same as long as the cache has not changed.

The patterns of a run of messages together: docs/internals/protocols/openwire.md#repeated-messages.
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
CONTENT_SIZE: Final = 255
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
    """The bytes of a frame that stay, and the fields between them. At most one is a content, and it comes last.

    `names` are those of the fields. `matches` sets the range of the content, and what `number` reads from.
    """

    def __init__(self, frame: bytes, fields: list[VariableField]) -> None:
        self.names: list[str] = [field.name for field in fields]
        self.kept_bytes: i64 = 0
        self.content_begin: i64 = 0
        self.content_end: i64 = 0
        self._parts: list[bytes] = []
        # Bytes are read without an object for each number: 4 of each begin, one of each size.
        self._begins: bytes = b"".join([int(field.begin).to_bytes(4, "big") for field in fields])
        self._sizes: bytes = bytes([int(field.size) for field in fields])
        self._count: i64 = len(fields)
        self._number_bytes: i64 = 0
        self._data: bytes = b""
        self._start: i64 = 0
        position: i64 = 0
        for field in fields:
            self._keep(frame[position : field.begin])
            size = field.size
            if size == CONTENT_SIZE:
                size = 4 + i64(read_i32_be(frame, field.begin))
                self._number_bytes += 4
            else:
                self._number_bytes += size
            position = field.begin + size
        self._keep(frame[position:])

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self.kept_bytes += len(part)

    def matches(self, data: bytes, start: i64, end: i64) -> bool:
        """Returns True if `data[start:end]` is such a frame."""
        position = start
        count = self._count
        for index in range(count):
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
            position = begin + size
        part = self._parts[count]
        if end - position != len(part) or (part and data[position:end] != part):
            return False
        self._data = data
        self._start = start
        return True

    def command_id(self) -> int:
        """Returns the first field of the frame that has just matched: unlike the others, it has a sign."""
        return int(read_i32_be(self._data, self._start + i64(read_i32_be(self._begins, 0))))

    def number(self, index: i64) -> i64:
        """Returns the number in that field of the frame that has just matched, without a sign below 8 bytes."""
        size: i64 = self._sizes[index]
        if size == 0:
            return 0
        begin = self._start + i64(read_i32_be(self._begins, 4 * index))
        if size == 8:
            return read_i64_be(self._data, begin)
        if size == 4:
            return i64(read_i32_be(self._data, begin)) & UINT32_MAX
        return i64(read_i16_be(self._data, begin)) & UINT16_MAX

    def content(self) -> bytes:
        """Returns the content of the frame that has just matched, and forgets the frame."""
        found = self._data[self.content_begin : self.content_end]
        self._data = b""
        return found

    def write(
        self,
        out: BytesWriter,
        sequence: i64,
        broker_sequence: i64,
        expiration_ms: i64,
        timestamp_ms: i64,
        content: bytes,
        bytes_max: i64,
        size_prefix: bool,
    ) -> bool:
        """Writes a frame whose fields are MESSAGE_FIELDS.

        Returns False, and writes nothing, if a value needs another size or the frame is longer than `bytes_max`.
        """
        total = self.kept_bytes + self._number_bytes + len(content)
        if (
            total > bytes_max
            or not _fits(sequence, self._sizes[0])
            or not _fits(broker_sequence, self._sizes[1])
            or not _fits(expiration_ms, self._sizes[2])
            or not _fits(timestamp_ms, self._sizes[3])
        ):
            return False
        if size_prefix:
            write_i32_be(out, i32(total))
        out.write(self._parts[0])
        _write_number(out, sequence, self._sizes[0])
        out.write(self._parts[1])
        _write_number(out, broker_sequence, self._sizes[1])
        out.write(self._parts[2])
        _write_number(out, expiration_ms, self._sizes[2])
        out.write(self._parts[3])
        _write_number(out, timestamp_ms, self._sizes[3])
        out.write(self._parts[4])
        write_i32_be(out, i32(len(content)))
        out.write(content)
        out.write(self._parts[5])
        return True


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
    elif size == 2:
        write_i16_be(out, i16(value if value < 1 << 15 else value - (1 << 16)))
