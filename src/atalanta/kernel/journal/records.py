"""The kernel's journal records: their kinds and layouts.

Every record holds the whole state of its key, so that a later record of the same key replaces the earlier one.
Changes that must become durable together are one record: a message with its routes and duplicate ids, or a
transaction as one BATCH. The layouts use CORE's primitives (message/encoding/buffer.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from atalanta.message.encoding.buffer import Reader, Writer

if TYPE_CHECKING:
    from atalanta.kernel.ports import JournalPort

# The marks up to which ids are reserved, and the last number of an announcement (kernel/broker/reserved_ids.py).
COUNTERS: Final = 1  # i64 message id, i64 binding id, i64 number; in earlier versions the next ids, and no number
ADDRESS: Final = 2  # ss name, bool anycast, bool multicast, bool auto created
ADDRESS_DELETED: Final = 3  # ss name
QUEUE: Final = 4  # see kernel/queue/queue.py: encode_queue
QUEUE_DELETED: Final = 5  # i64 queue id
MESSAGE: Final = 6  # i64 id, routes, duplicate ids, format, message (see encode_message_record)
ACKS: Final = 7  # i64 queue id, i32 n, n * i64 message id
ACK_THROUGH: Final = 8  # i64 queue id, i64 sequence
DELIVERY: Final = 9  # i64 queue id, i64 message id, i32 delivery count, i64 not before this ms (0: at once)
DUPLICATES: Final = 10  # ss cache, i64 age (id of the message that brought them), i32 n, n * (i32 length, bytes)
BATCH: Final = 11  # i32 n, n * (i8 kind, i32 length, payload)
LEASE: Final = 12  # i64 queue id, ss group, i64 epoch, ss owner, i64 ttl, and since 2026: i64 begun at, ss ended by
LOST: Final = 14  # i64 queue id, i64 start, i64 end, ss why
VALUE: Final = 15  # ss key, i32 length, bytes (length -1: removed): small state of other packages
XA_PREPARED: Final = 16  # see kernel/transactions/xa_records.py: PreparedRecord
XA_ENDED: Final = 17  # blob xid, i8 outcome (0 ended or forgotten, 1 committed, 2 rolled back by an operator)
PLACED: Final = 18  # i64 queue id, i32 n, n * (i64 message id, i64 sequence): scheduled messages that became due
PAGE: Final = 19  # a page file and the state of its entries, see kernel/queue/paging/page.py: encode_page
PAGE_DONE: Final = 20  # i64 queue id, i64 page number: the page has no live entry
PLAIN_MESSAGE: Final = 21  # a message in one queue, without duplicate ids: see write_plain_message
DUPLICATES_DROPPED: Final = 22  # ss cache: its ids up to here are forgotten
FIRST_SEGMENT: Final = 23  # i64 number of the journal's first segment, once the one before it is deleted

# Kinds that compaction never moves: the newest record of the object that they change holds their state.
PASSING: Final = bytes(
    [
        COUNTERS,
        ADDRESS_DELETED,
        QUEUE_DELETED,
        ACKS,
        ACK_THROUGH,
        DELIVERY,
        LEASE,
        LOST,
        PLACED,
        PAGE_DONE,
        DUPLICATES_DROPPED,
        FIRST_SEGMENT,
    ]
)


# Kind and length of a member of a BATCH.
MEMBER_HEAD_BYTES: Final = 5


class Batch:
    """Records that become durable together or not at all: one BATCH record (or the one record itself).

    `many`: the record is a BATCH even of one, so that numbers of any member can be set later.
    """

    def __init__(self, many: bool = False) -> None:
        self.count: int = 0
        # The only member so far; `encoded` has the members if there are more.
        self.kind: int = 0
        self.payload: bytes = b""
        self.encoded: Writer | None = None
        if many:
            self._begin()

    def add(self, kind: int, payload: bytes) -> None:
        """Adds a record."""
        self.count += 1
        if self.encoded is None:
            if self.count == 1:
                self.kind = kind
                self.payload = payload
                return
            self._begin()
            self._encode(self.kind, self.payload)
        self._encode(kind, payload)

    def _begin(self) -> None:
        self.encoded = Writer()
        self.encoded.int32(0)  # their number, see `append_to`

    def _encode(self, kind: int, payload: bytes) -> None:
        writer = self.encoded
        assert writer is not None
        writer.int8(kind)
        writer.int32(len(payload))
        writer.raw(payload)

    def __len__(self) -> int:
        return self.count

    def next_payload(self) -> int:
        """Returns the offset of the next member's payload in a BATCH (`many`)."""
        assert self.encoded is not None
        return len(self.encoded) + MEMBER_HEAD_BYTES

    def set_int64(self, at: i64, value: i64) -> None:
        """Replaces the i64 at that offset of a BATCH (`many`)."""
        assert self.encoded is not None
        self.encoded.set_int64(at, value)

    def append_to(self, journal: JournalPort) -> int:
        """Appends the collected records, at least one, as one record; returns its lsn."""
        writer = self.encoded
        if writer is None:
            return journal.append(self.kind, self.payload)
        writer.set_int32(0, self.count)
        return journal.append(BATCH, writer.getvalue())


def decode_batch(payload: bytes) -> list[tuple[int, bytes]]:
    """Returns the members of a BATCH record, in order. DecodeError if the payload does not decode."""
    reader = Reader(payload)
    count = reader.int32("batch.count")
    members: list[tuple[int, bytes]] = []
    for _ in range(count):
        kind = reader.int8("batch.kind")
        members.append((kind, reader.take(reader.int32("batch.length"), "batch.payload")))
    return members


def encode_acks(queue_id: int, message_ids: list[int]) -> bytes:
    writer = Writer()
    writer.int64(queue_id)
    writer.int32(len(message_ids))
    for message_id in message_ids:
        writer.int64(message_id)
    return writer.getvalue()


def encode_duplicates(cache: str, age: int, ids: list[bytes]) -> bytes:
    writer = Writer()
    writer.simple_string(cache)
    writer.int64(age)
    writer.int32(len(ids))
    for duplicate_id in ids:
        writer.int32(len(duplicate_id))
        writer.raw(duplicate_id)
    return writer.getvalue()


def encode_value(key: str, value: bytes | None) -> bytes:
    writer = Writer()
    writer.simple_string(key)
    if value is None:
        writer.int32(-1)
    else:
        writer.int32(len(value))
        writer.raw(value)
    return writer.getvalue()


def encode_lost(queue_id: int, start: int, end: int, why: str) -> bytes:
    writer = Writer()
    writer.int64(queue_id)
    writer.int64(start)
    writer.int64(end)
    writer.simple_string(why)
    return writer.getvalue()


def encode_delivery(queue_id: int, message_id: int, delivery_count: int, at_ms: int) -> bytes:
    writer = Writer()
    writer.int64(queue_id)
    writer.int64(message_id)
    writer.int32(delivery_count)
    writer.int64(at_ms)
    return writer.getvalue()


def encode_placed(queue_id: int, places: list[tuple[int, int]]) -> bytes:
    writer = Writer()
    writer.int64(queue_id)
    writer.int32(len(places))
    for message_id, sequence in places:
        writer.int64(message_id)
        writer.int64(sequence)
    return writer.getvalue()
