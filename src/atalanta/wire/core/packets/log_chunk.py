"""LOG_READ_RESP: a chunk of a queue's log, with many messages in one packet. A packet of Atalanta's own."""

from __future__ import annotations

from dataclasses import dataclass

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from atalanta.message.codec import decode_message, write_bodiless, write_message
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.message.message import Message
from atalanta.wire.core.frames import FRAME_OVERHEAD_BYTES, write_frame_header
from atalanta.wire.core.packet_types import LOG_READ_RESP
from atalanta.wire.core.packets.base import Packet, numbered

# int64 sequence, int32 delivery count, int32 length.
ENTRY_HEADER_BYTES = 16
# int64 correlation, int64 next, bool last, int32 n.
CHUNK_HEADER_BYTES = 21


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
