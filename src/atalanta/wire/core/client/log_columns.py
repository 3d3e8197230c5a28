"""The entries of a LOG_READ_RESP as columns in Arrow's layout, without an object for each message.

Numbers are little-endian, one for each entry. log_properties.py and log_texts.py read properties and texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import (
    BytesWriter,
    read_i32_be,
    read_i32_le,
    read_i64_be,
    write_i32_le,
    write_i64_be,
    write_i64_le,
)
from mypy_extensions import i32, i64, u8

from atalanta.message.codec import PACKET_HEADER_BYTES
from atalanta.message.encoding.buffer import DecodeError, decode_utf16
from atalanta.message.message import COMPRESSED, HEAD_FIXED_BYTES, TEXT, USER_ID_BYTES
from atalanta.message.properties import SCAN_END, SCAN_ROUTING_SHIFT, scan_properties
from atalanta.wire.core.packets.log_chunk import ENTRY_HEADER_BYTES

if TYPE_CHECKING:
    from atalanta.wire.core.packets.log_chunk import ColumnChunk

# The longest time (ms) that microseconds of 64 bits hold; a longer one becomes this one.
TIME_MS_MAX: Final = 9_223_372_036_854_775
MICROSECONDS: Final = 1000
# The name of the property of a compressed body in an encoded message.
COMPRESSED_NAME: Final = COMPRESSED.encode("utf-16-le")
# Encoded properties: none (a null is 1 byte), and only the routing type, whose name has 17 UTF-16 units.
NO_PROPERTIES_BYTES: Final = 1 + 4
ROUTING_TYPE_BYTES: Final = NO_PROPERTIES_BYTES + 4 + 34 + 1 + 1


class LogColumns:
    """The columns of `count` entries in `data`, or of `chunk`, which has some of them. DecodeError names the field.

    `body_ends` are int32, one more than entries: where the bodies, one behind the other from `bodies_at` on, end. Only
    a chunk by columns has them (`bodies_at` >= 0); `edges` always say where the bodies are.
    `edges` are two int32 for each entry: begin and end of its body in `data`. Times are int64 of microseconds (0:
    none). `kinds`, `durable` (0, 1) and `redelivered` (0, 1) are bytes. `user_ids` are 16 bytes each, zeros where
    `has_user_id` (a byte) is 0. `address_numbers` are int32, indexes of `addresses`. `heads` are int32, the
    positions of the encoded properties in `data`.
    """

    def __init__(self, data: bytes, count: int, chunk: ColumnChunk | None = None) -> None:
        self.data: bytes = data
        self.bodies_at: int = -1
        self.body_ends: bytes = b""
        self._chunk: ColumnChunk | None = chunk
        self.addresses: list[str] = []
        # True if there is a text message; its body is encoded.
        self.any_text: bool = False
        # True if no message has a property except the routing type.
        self.bare: bool = True
        # True if a message may have a compressed body. Only its properties are searched: bodies are long.
        self.any_compressed: bool = False
        self._sequences: BytesWriter = BytesWriter()
        self._redelivered: BytesWriter = BytesWriter()
        self._edges: BytesWriter = BytesWriter()
        self._ids: BytesWriter = BytesWriter()
        self._address_numbers: BytesWriter = BytesWriter()
        self._has_user_id: BytesWriter = BytesWriter()
        self._user_ids: BytesWriter = BytesWriter()
        self._kinds: BytesWriter = BytesWriter()
        self._durable: BytesWriter = BytesWriter()
        self._expirations: BytesWriter = BytesWriter()
        self._timestamps: BytesWriter = BytesWriter()
        self._priorities: BytesWriter = BytesWriter()
        self._heads: BytesWriter = BytesWriter()
        self._known: dict[bytes, int] = {}
        self._latest: bytes = b""  # the previous address, encoded
        self._latest_number: i32 = -1
        if chunk is None:
            self._scan(count)
        else:
            self.bodies_at = int(chunk.bodies_at)
            self.body_ends = chunk.body_ends
            self._scan_heads(chunk)

    @property
    def sequences(self) -> bytes:
        return self._sequences.getvalue() if self._chunk is None else self._chunk.sequences

    @property
    def redelivered(self) -> bytes:
        chunk = self._chunk
        if chunk is not None and len(self._redelivered) == 0:
            for number in range(chunk.count):
                self._redelivered.append(1 if read_i32_le(chunk.delivery_counts, 4 * number) > 0 else 0)
        return self._redelivered.getvalue()

    @property
    def edges(self) -> bytes:
        chunk = self._chunk
        if chunk is not None and len(self._edges) == 0:
            for number in range(chunk.count):
                write_i32_le(self._edges, i32(chunk.bodies_at + i64(read_i32_le(self.body_ends, 4 * number))))
                write_i32_le(self._edges, i32(chunk.bodies_at + i64(read_i32_le(self.body_ends, 4 * number + 4))))
        return self._edges.getvalue()

    @property
    def body_bytes(self) -> int:
        """Returns the bytes of all bodies, at least."""
        return len(self.data) if self._chunk is None else int(self._chunk.end - self._chunk.bodies_at)

    @property
    def ids(self) -> bytes:
        return self._ids.getvalue() if self._chunk is None else self._chunk.ids

    @property
    def address_numbers(self) -> bytes:
        return self._address_numbers.getvalue()

    @property
    def has_user_id(self) -> bytes:
        return self._has_user_id.getvalue()

    @property
    def user_ids(self) -> bytes:
        return self._user_ids.getvalue()

    @property
    def kinds(self) -> bytes:
        return self._kinds.getvalue()

    @property
    def durable(self) -> bytes:
        return self._durable.getvalue()

    @property
    def expirations(self) -> bytes:
        return self._expirations.getvalue()

    @property
    def timestamps(self) -> bytes:
        return self._timestamps.getvalue()

    @property
    def priorities(self) -> bytes:
        return self._priorities.getvalue()

    @property
    def heads(self) -> bytes:
        return self._heads.getvalue()

    def _scan(self, count: int) -> None:
        data = self.data
        end: i64 = len(data)
        position: i64 = 0
        for _ in range(count):
            if end - position < ENTRY_HEADER_BYTES:
                raise DecodeError("entry", int(position), f"{end - position} bytes are left")
            write_i64_le(self._sequences, read_i64_be(data, position))
            self._redelivered.append(1 if read_i32_be(data, position + 8) > 0 else 0)
            length: i64 = i64(read_i32_be(data, position + 12))
            position += ENTRY_HEADER_BYTES
            if length < 0 or length > end - position:
                raise DecodeError("length", int(position), f"{length} of {end - position} bytes")
            self._message(position, position + length)
            position += length
        if position != end:
            raise DecodeError("entries", int(position), f"{end - position} bytes too many")

    def _scan_heads(self, chunk: ColumnChunk) -> None:
        """Reads the heads of a chunk by columns: the rest are columns already."""
        ends = chunk.head_ends
        position: i64 = chunk.heads_at
        for number in range(chunk.count):
            end: i64 = chunk.heads_at + i64(read_i32_le(ends, 4 * number + 4))
            if end - position < 1:
                raise DecodeError("message headers", int(position), "missing")
            self._head(position, end)
            position = end

    def _message(self, position: i64, end: i64) -> None:
        """Reads a message: int32 13 + length of body, body, head (message/message.py)."""
        data = self.data
        if end - position < 4:
            raise DecodeError("body length", int(position), "missing")
        body: i64 = i64(read_i32_be(data, position)) - PACKET_HEADER_BYTES
        position += 4
        if body < 0 or body > end - position:
            raise DecodeError("body", int(position), f"{body} of {end - position} bytes")
        write_i32_le(self._edges, i32(position))
        position += body
        write_i32_le(self._edges, i32(position))
        if end - position < 9:
            raise DecodeError("message id", int(position), "missing")
        write_i64_le(self._ids, read_i64_be(data, position))
        self._head(position + 8, end)

    def _head(self, position: i64, end: i64) -> None:
        """Reads the head of a message, of at least a byte."""
        data = self.data
        position = self._address(position, end)
        position = self._user_id(position, end)
        if end - position < HEAD_FIXED_BYTES:
            raise DecodeError("message headers", int(position), "missing")
        kind: i64 = i64(data[position])
        if kind == TEXT:
            self.any_text = True
        self._kinds.append(u8(kind))
        self._durable.append(1 if data[position + 1] != 0 else 0)
        write_i64_le(self._expirations, microseconds(read_i64_be(data, position + 2)))
        write_i64_le(self._timestamps, microseconds(read_i64_be(data, position + 10)))
        self._priorities.append(data[position + 18])
        position += HEAD_FIXED_BYTES
        write_i32_le(self._heads, i32(position))
        scanned = scan_properties(data, position, end)
        if scanned & SCAN_END != end:
            raise DecodeError("length", int(scanned & SCAN_END), "the message ends elsewhere")
        size = end - position
        if size == ROUTING_TYPE_BYTES:
            self.bare = self.bare and scanned >> SCAN_ROUTING_SHIFT != 0
        elif size != 1 and size != NO_PROPERTIES_BYTES:
            self.bare = False
            if not self.any_compressed:
                self.any_compressed = COMPRESSED_NAME in data[position:end]

    def _address(self, position: i64, end: i64) -> i64:
        """Reads the address, which may be null; a queue has few different ones. At least a byte is left."""
        data = self.data
        start = position + 1
        if data[position] != 0:
            length: i64 = i64(read_i32_be(data, start)) if end - start >= 4 else -1
            start += 4
            if length < 0 or length & 1 or length > end - start:
                raise DecodeError("address", int(start), f"length {length}")
            if self._latest_number >= 0 and same_bytes(data, start, length, self._latest):
                write_i32_le(self._address_numbers, self._latest_number)
                return start + length
            encoded = data[start : start + length]
            start += length
        else:
            encoded = b""
        if self._latest_number < 0 or encoded != self._latest:
            number = self._known.get(encoded, -1)
            if number < 0:
                number = len(self.addresses)
                self._known[encoded] = number
                self.addresses.append(decode_utf16(encoded))
            self._latest = encoded
            self._latest_number = i32(number)
        write_i32_le(self._address_numbers, self._latest_number)
        return start

    def _user_id(self, position: i64, end: i64) -> i64:
        """Reads the user id, which may be null."""
        data = self.data
        if position >= end:
            raise DecodeError("user id", int(position), "missing")
        if data[position] == 0:
            self._has_user_id.append(0)
            write_i64_be(self._user_ids, 0)
            write_i64_be(self._user_ids, 0)
            return position + 1
        if end - position <= USER_ID_BYTES:
            raise DecodeError("user id", int(position), "missing")
        self._has_user_id.append(1)
        write_i64_be(self._user_ids, read_i64_be(data, position + 1))
        write_i64_be(self._user_ids, read_i64_be(data, position + 9))
        return position + 1 + USER_ID_BYTES


def same_bytes(data: bytes, start: i64, length: i64, other: bytes) -> bool:
    """Returns whether `length` bytes of `data` are those of `other`, without a copy of them."""
    if length != len(other):
        return False
    at: i64 = 0
    while at + 8 <= length:
        if read_i64_be(data, start + at) != read_i64_be(other, at):
            return False
        at += 8
    while at < length:
        if data[start + at] != other[at]:
            return False
        at += 1
    return True


def microseconds(milliseconds: i64) -> i64:
    """Converts ms to microseconds, at most as many as 64 bits hold."""
    if milliseconds > TIME_MS_MAX:
        milliseconds = TIME_MS_MAX
    elif milliseconds < -TIME_MS_MAX:
        milliseconds = -TIME_MS_MAX
    return milliseconds * MICROSECONDS
