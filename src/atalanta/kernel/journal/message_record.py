"""The MESSAGE record: a message, its routes, and the duplicate ids that become durable with the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i64, u8

from atalanta.message.codec import decode_stored, encode_message, write_message
from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.message.message import Message

if TYPE_CHECKING:
    from atalanta.kernel.queue.reference import Reference

# In a MESSAGE record: the offset of the first route's sequence, and the bytes of a route without its route ids.
FIRST_SEQUENCE: Final = 12
ROUTE_BYTES: Final = 24


class StoredRoute:
    def __init__(self, queue_id: int, sequence: int, delivery_count: int, route_to: bytes) -> None:
        self.queue_id = queue_id
        self.sequence = sequence
        self.delivery_count = delivery_count
        self.scheduled_ms: int = 0  # a delayed redelivery; a message scheduled by its sender has sequence 0
        self.route_to = route_to

    def join(self, route_to: bytes) -> None:
        """Adds the binding ids of another route to the same queue."""
        self.route_to = join_ids(self.route_to, route_to)


class StoredMessage:
    def __init__(
        self, message: Message, routes: list[StoredRoute], duplicates: list[tuple[str, bytes]]
    ) -> None:
        self.message = message
        self.routes = routes
        self.duplicates = duplicates
        self.file: int = -1  # of a large message's body, with its size:
        self.file_bytes: int = 0
        self.file_crc: int = 0


def join_ids(known: bytes, more: bytes) -> bytes:
    """Returns the binding ids of both (8 bytes each), every one once, those of `more` first."""
    ids = [known[start : start + 8] for start in range(0, len(known), 8)]
    for start in range(0, len(more), 8):
        if more[start : start + 8] not in ids:
            ids.insert(0, more[start : start + 8])
    return b"".join(ids)


def encode_message_record(
    message: Message,
    references: list[Reference],
    duplicates: list[tuple[str, bytes]],
) -> bytes:
    """Returns a MESSAGE record.

    i32 routes, each (i64 queue id, i64 sequence, i32 delivery count, i32 length, route ids), i32 duplicate ids, each
    (ss cache, i32 length, id), u8 format, message with its broker id in that format; for a large message also i64 file,
    i64 its bytes and i64 their crc32c.
    """
    writer = Writer()
    writer.int32(len(references))
    for reference in references:
        writer.int64(reference.queue.id)
        writer.int64(reference.sequence)
        writer.int32(reference.delivery_count)
        writer.int32(len(reference.route_to))
        writer.raw(reference.route_to)
    writer.int32(len(duplicates))
    for cache, duplicate_id in duplicates:
        writer.simple_string(cache)
        writer.int32(len(duplicate_id))
        writer.raw(duplicate_id)
    writer.uint8(i64(message.format))
    writer.raw(encode_message(message, message.id))
    large = message.large
    if large is not None:
        writer.int64(large.file)
        writer.int64(large.size)
        writer.int64(large.crc)
    return writer.getvalue()


def write_plain_message(out: BytesWriter, message: Message, reference: Reference) -> None:
    """Writes a PLAIN_MESSAGE record, for a message in one queue, without duplicate ids.

    i64 id, i64 queue id, i64 sequence, i32 delivery count, u8 format, message in that format. Most messages are such,
    and compaction sees from the first two numbers if one is alive.
    """
    write_i64_be(out, message.id)
    write_i64_be(out, reference.queue.id)
    write_i64_be(out, reference.sequence)
    write_i32_be(out, reference.delivery_count)
    out.append(u8(message.format))
    write_message(out, message, message.id)


def decode_plain_message(payload: bytes) -> StoredMessage:
    reader = Reader(payload)
    reader.int64("message.id")
    queue_id = reader.int64("message.queue_id")
    sequence = reader.int64("message.sequence")
    route = StoredRoute(queue_id, sequence, reader.int32("message.delivery_count"), b"")
    return StoredMessage(decode_stored(reader, "message.format"), [route], [])


def decode_message_record(payload: bytes) -> StoredMessage:
    reader = Reader(payload)
    routes: list[StoredRoute] = []
    for _ in range(reader.int32("message.routes")):
        queue_id = reader.int64("message.queue_id")
        sequence = reader.int64("message.sequence")
        count = reader.int32("message.delivery_count")
        route_to = reader.take(reader.int32(), "message.route_to")
        routes.append(StoredRoute(queue_id, sequence, count, route_to))
    duplicates: list[tuple[str, bytes]] = []
    for _ in range(reader.int32("message.duplicates")):
        cache = reader.simple_string("message.cache")
        duplicates.append((cache, reader.take(reader.int32(), "message.duplicate_id")))
    stored = StoredMessage(decode_stored(reader, "message.format"), routes, duplicates)
    if reader.left() > 0:
        stored.file = reader.int64("message.file")
        stored.file_bytes = reader.int64("message.file_bytes")
        stored.file_crc = reader.int64("message.file_crc")
    return stored
