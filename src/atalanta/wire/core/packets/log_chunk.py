"""LOG_READ_RESP and LOG_READ_COLUMNS_RESP: a chunk of a queue's log, with many messages in one packet.

Packets of Atalanta's own. The second has the entries by columns, which a reader of columns takes as they are
(docs/internals/protocols/log-view.md, "A chunk by columns").
"""

from __future__ import annotations

from dataclasses import dataclass

from librt.strings import (
    BytesWriter,
    read_i32_le,
    read_i64_le,
    write_i32_be,
    write_i32_le,
    write_i64_be,
    write_i64_le,
)
from mypy_extensions import i32, i64

from atalanta.message.codec import (
    PACKET_HEADER_BYTES,
    decode_message,
    write_bodiless,
    write_message,
)
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.message.message import Message
from atalanta.wire.core.frames import FRAME_OVERHEAD_BYTES, write_frame_header
from atalanta.wire.core.packet_types import LOG_READ_COLUMNS_RESP, LOG_READ_RESP
from atalanta.wire.core.packets.base import Packet, numbered

# int64 sequence, int32 delivery count, int32 length.
ENTRY_HEADER_BYTES = 16
# int64 correlation, int64 next, bool last, int32 n.
CHUNK_HEADER_BYTES = 21
# Of each entry: int64 sequence, int64 id, int32 delivery count, int32 end of the head, int32 end of the body.
COLUMN_ENTRY_BYTES = 28
BOUND_BYTES = 4



class LogEntry:
    """A message of a chunk, with its sequence in the queue."""

    def __init__(self, sequence: int, delivery_count: int, message: Message) -> None:
        self.sequence: int = sequence
        self.delivery_count: int = delivery_count
        self.message: Message = message


class EncodedEntry:
    """An entry of a chunk whose message stays encoded; `encoded` has the entry's header, too."""

    def __init__(self, sequence: int, delivery_count: int, encoded: bytes) -> None:
        self.sequence: int = sequence
        self.delivery_count: int = delivery_count
        self.encoded: bytes = encoded


@dataclass(eq=False, repr=False, init=False)
class LogReadResponse(Packet):
    """LOG_READ_RESP. `entries` are `count` encoded entries, written by ChunkWriter and read by decode_entries.

    The reader goes on from `next` until `last`.
    """

    correlation: int
    next: int
    last: bool
    count: int
    entries: bytes

    def __init__(self, correlation: int, next: int, last: bool, count: int, entries: bytes) -> None:
        self.correlation = correlation
        self.next = next
        self.last = last
        self.count = count
        self.entries = entries


numbered({LOG_READ_RESP: LogReadResponse})


class ChunkWriter:
    """Collects the entries of one chunk, with the bodies of the messages."""

    def __init__(self) -> None:
        self.count: int = 0
        self._out: BytesWriter = BytesWriter()

    def __len__(self) -> int:
        """Returns the number of bytes so far."""
        return len(self._out)

    def add(self, sequence: i64, delivery_count: i32, message: Message) -> None:
        write_entry(self._out, sequence, delivery_count, message, True)
        self.count += 1

    def getvalue(self) -> bytes:
        return self._out.getvalue()

    def response(self, correlation: int, next: int, last: bool) -> LogReadResponse:
        return LogReadResponse(
            correlation=correlation, next=next, last=last, count=self.count, entries=self.getvalue()
        )


def message_bytes(message: Message, bodies: bool) -> i64:
    """Returns the number of bytes of a message in its entry, without the entry's header."""
    size: i64 = len(message.head) + 12
    return size + len(message.body) if bodies else size


def write_entry(out: BytesWriter, sequence: i64, delivery_count: i32, message: Message, bodies: bool) -> None:
    """Writes an entry, which has ENTRY_HEADER_BYTES more than message_bytes; without `bodies` its body is empty."""
    write_i64_be(out, sequence)
    write_i32_be(out, delivery_count)
    write_i32_be(out, i32(message_bytes(message, bodies)))
    if bodies:
        write_message(out, message, message.id)
    else:
        write_bodiless(out, message, message.id)


def decode_entries(packet: LogReadResponse) -> list[LogEntry]:
    """Returns the messages of a chunk, in order. DecodeError names the field."""
    reader = Reader(packet.entries)
    entries: list[LogEntry] = []
    for _ in range(packet.count):
        sequence = reader.int64("sequence")
        delivery_count = reader.int32("delivery_count")
        length = reader.int32("length")
        start = reader.position
        message = decode_message(reader)
        if reader.position - start != length:
            raise DecodeError("length", start, f"{length} bytes announced, message has others")
        entries.append(LogEntry(sequence, delivery_count, message))
    return entries


def split_entries(count: int, entries: bytes) -> list[EncodedEntry]:
    """Returns the entries, in order, whatever their messages are. DecodeError names a length that is wrong."""
    reader = Reader(entries)
    found: list[EncodedEntry] = []
    for _ in range(count):
        start = reader.position
        sequence = reader.int64("sequence")
        delivery_count = reader.int32("delivery_count")
        reader.advance(reader.int32("length"), "message")
        found.append(EncodedEntry(sequence, delivery_count, entries[start : reader.position]))
    return found


def decode_chunk(reader: Reader) -> LogReadResponse:
    """Checks that the packet has all entries and nothing behind them; their messages stay encoded."""
    correlation = reader.int64("correlation")
    next_sequence = reader.int64("next")
    last = reader.boolean("last")
    count = reader.count("count", ENTRY_HEADER_BYTES)
    start = reader.position
    for _ in range(count):
        reader.advance(12, "entry")
        reader.advance(reader.int32("length"), "message")
    entries = reader.data[start : reader.position]
    return LogReadResponse(
        correlation=correlation, next=next_sequence, last=last, count=count, entries=entries
    )


def write_chunk(out: BytesWriter, channel: i64, packet: LogReadResponse) -> i64:
    """Writes LOG_READ_RESP; returns the frame's bytes."""
    size: i64 = len(packet.entries)
    write_frame_header(out, LOG_READ_RESP, channel, size + CHUNK_HEADER_BYTES)
    write_chunk_header(out, packet.correlation, packet.next, packet.last, packet.count)
    out.write(packet.entries)
    return size + CHUNK_HEADER_BYTES + FRAME_OVERHEAD_BYTES


def write_chunk_header(out: BytesWriter, correlation: i64, next: i64, last: bool, count: i64) -> None:
    """Writes the fields of LOG_READ_RESP that stand before the entries."""
    write_i64_be(out, correlation)
    write_i64_be(out, next)
    out.append(0xFF if last else 0)
    write_i32_be(out, i32(count))


class ColumnChunk:
    """The entries `data[start:end]`, `count` of them, by columns. DecodeError names a column that is wrong.

    Numbers are little-endian: `sequences` and `ids` int64, `delivery_counts` int32, `head_ends` and `body_ends` int32,
    one more than entries, which begin with 0. The head of entry n is `data[heads_at + head_ends[n] : heads_at +
    head_ends[n + 1]]`, its body is found in the same way.
    """

    def __init__(self, data: bytes, start: i64, end: i64, count: i64) -> None:
        if count < 0 or count * COLUMN_ENTRY_BYTES + 2 * BOUND_BYTES > end - start:
            raise DecodeError("count", int(start), f"{count} entries in {end - start} bytes")
        self.data: bytes = data
        self.start: i64 = start
        self.end: i64 = end
        self.count: int = int(count)
        ids = start + 8 * count
        delivery_counts = ids + 8 * count
        head_ends = delivery_counts + 4 * count
        body_ends = head_ends + BOUND_BYTES * (count + 1)
        self.heads_at: i64 = body_ends + BOUND_BYTES * (count + 1)
        self.sequences: bytes = data[start:ids]
        self.ids: bytes = data[ids:delivery_counts]
        self.delivery_counts: bytes = data[delivery_counts:head_ends]
        self.head_ends: bytes = data[head_ends:body_ends]
        self.body_ends: bytes = data[body_ends : self.heads_at]
        self.bodies_at: i64 = self.heads_at + checked("head ends", self.head_ends, count, end - self.heads_at)
        size = checked("body ends", self.body_ends, count, end - self.bodies_at)
        if self.bodies_at + size != end:
            raise DecodeError("entries", int(self.bodies_at + size), f"{end - self.bodies_at - size} bytes too many")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnChunk) and (self.count, self.encoded) == (other.count, other.encoded)

    @property
    def encoded(self) -> bytes:
        """Returns the entries as they travel."""
        return self.data[self.start : self.end]

    def entries(self) -> list[EncodedEntry]:
        """Returns the entries one by one, as those of LOG_READ_RESP."""
        found: list[EncodedEntry] = []
        for number in range(self.count):
            at: i64 = number * BOUND_BYTES
            head = self.data[
                self.heads_at + i64(read_i32_le(self.head_ends, at)) : self.heads_at
                + i64(read_i32_le(self.head_ends, at + BOUND_BYTES))
            ]
            body = self.data[
                self.bodies_at + i64(read_i32_le(self.body_ends, at)) : self.bodies_at
                + i64(read_i32_le(self.body_ends, at + BOUND_BYTES))
            ]
            sequence = read_i64_le(self.sequences, 2 * at)
            delivery_count = read_i32_le(self.delivery_counts, at)
            out = BytesWriter()
            write_i64_be(out, sequence)
            write_i32_be(out, delivery_count)
            write_i32_be(out, i32(len(body) + len(head) + 12))
            write_i32_be(out, i32(len(body) + PACKET_HEADER_BYTES))
            out.write(body)
            write_i64_be(out, read_i64_le(self.ids, 2 * at))
            out.write(head)
            found.append(EncodedEntry(int(sequence), int(delivery_count), out.getvalue()))
        return found

    def rows(self) -> bytes:
        """Returns the entries as LOG_READ_RESP has them."""
        return b"".join([entry.encoded for entry in self.entries()])


def checked(name: str, ends: bytes, count: i64, limit: i64) -> i64:
    """Returns the last of `count` + 1 ascending numbers from 0 up to `limit`."""
    before: i64 = 0
    if i64(read_i32_le(ends, 0)) != 0:
        raise DecodeError(name, 0, "the first is not 0")
    for number in range(1, count + 1):
        after = i64(read_i32_le(ends, number * BOUND_BYTES))
        if after < before or after > limit:
            raise DecodeError(name, int(number), f"{after} behind {before}, of {limit} bytes")
        before = after
    return before


@dataclass(eq=False, repr=False, init=False)
class LogReadColumnsResponse(Packet):
    """LOG_READ_COLUMNS_RESP. The reader goes on from `next` until `last`."""

    correlation: int
    next: int
    last: bool
    chunk: ColumnChunk

    def __init__(self, correlation: int, next: int, last: bool, chunk: ColumnChunk) -> None:
        self.correlation = correlation
        self.next = next
        self.last = last
        self.chunk = chunk


numbered({LOG_READ_COLUMNS_RESP: LogReadColumnsResponse})


class ColumnChunkWriter:
    """A writer of a chunk by columns. Heads and bodies are copied once, when the frame is made."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self._sequences: BytesWriter = BytesWriter()
        self._ids: BytesWriter = BytesWriter()
        self._delivery_counts: BytesWriter = BytesWriter()
        self._head_ends: BytesWriter = BytesWriter()
        self._body_ends: BytesWriter = BytesWriter()
        self._heads: list[bytes] = []
        self._bodies: list[bytes] = []
        self._head_bytes: i64 = 0
        self._body_bytes: i64 = 0
        write_i32_le(self._head_ends, 0)
        write_i32_le(self._body_ends, 0)

    def add(self, sequence: i64, delivery_count: i32, message: Message, bodies: bool) -> None:
        """Adds a message; without `bodies` its body is empty."""
        head = message.head
        write_i64_le(self._sequences, sequence)
        write_i64_le(self._ids, message.id)
        write_i32_le(self._delivery_counts, delivery_count)
        self._head_bytes += len(head)
        self._heads.append(head)
        write_i32_le(self._head_ends, i32(self._head_bytes))
        if bodies:
            body = message.body
            self._body_bytes += len(body)
            self._bodies.append(body)
        write_i32_le(self._body_ends, i32(self._body_bytes))
        self.count += 1

    def parts(self) -> list[bytes]:
        """Returns the entries as they travel, in parts."""
        return [
            self._sequences.getvalue(),
            self._ids.getvalue(),
            self._delivery_counts.getvalue(),
            self._head_ends.getvalue(),
            self._body_ends.getvalue(),
            *self._heads,
            *self._bodies,
        ]

    def frame(self, channel: i64, correlation: i64, next: i64, last: bool) -> bytes:
        """Returns the whole frame of LOG_READ_COLUMNS_RESP."""
        entries = self.count * COLUMN_ENTRY_BYTES + 2 * BOUND_BYTES + self._head_bytes + self._body_bytes
        out = BytesWriter()
        write_frame_header(out, LOG_READ_COLUMNS_RESP, channel, CHUNK_HEADER_BYTES + entries)
        write_chunk_header(out, correlation, next, last, self.count)
        return b"".join([out.getvalue(), *self.parts()])


def decode_column_chunk(reader: Reader) -> LogReadColumnsResponse:
    """Checks that the packet has all entries and nothing behind them. Its bytes are not copied."""
    correlation = reader.int64("correlation")
    next_sequence = reader.int64("next")
    last = reader.boolean("last")
    count = reader.count("count", COLUMN_ENTRY_BYTES)
    size = reader.left()
    chunk = ColumnChunk(reader.data, reader.position, reader.position + size, count)
    reader.advance(size, "entries")
    return LogReadColumnsResponse(correlation, next_sequence, last, chunk)


def write_column_chunk(out: BytesWriter, channel: i64, packet: LogReadColumnsResponse) -> i64:
    """Writes LOG_READ_COLUMNS_RESP; returns the frame's bytes."""
    chunk = packet.chunk
    size = CHUNK_HEADER_BYTES + chunk.end - chunk.start
    write_frame_header(out, LOG_READ_COLUMNS_RESP, channel, size)
    write_chunk_header(out, packet.correlation, packet.next, packet.last, chunk.count)
    out.write(chunk.encoded)
    return size + FRAME_OVERHEAD_BYTES
