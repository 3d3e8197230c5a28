"""The kernel's part of journal compaction: finds the live records of an old segment.

The store reads its oldest segment and passes every record to this module. A record that is alive, and is the newest
of its key, is appended again in its present state. No state is lost with the segment, because a record that changes
another one is never older than that one, and segments are deleted in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from librt.strings import read_i64_be

from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import (
    decode_message_record,
    encode_message_record,
    write_plain_message,
)
from atalanta.kernel.queue.reference import SCHEDULED
from atalanta.kernel.trace import queue_sequences, trace_message
from atalanta.kernel.transactions import xa_records
from atalanta.message.encoding.buffer import Reader, Writer

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.message.message import Message


class LiveRecords:
    """Finds the live records for the compaction of the journal, and appends them again."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def live_bytes(self) -> int:
        """Returns roughly the bytes that the journal must keep; the decision to compact uses it."""
        broker = self.broker
        stored = broker.store.stored_bytes + broker.branches.stored_bytes + broker.paging.record_bytes()
        small = 256 * len(broker.queues) + 128 * broker.values.count() + 4096
        return stored + 64 * broker.caches.count() + small

    def before_compaction(self, now: int, first_segment: int) -> None:
        """Stores the marks of the ids again: the segment with the last ones may be deleted.

        `first_segment`: the first one after this compaction, so that a start notices when its file is missing.
        """
        self.broker.reserved_ids.renew()
        writer = Writer()
        writer.int64(first_segment)
        self.broker.journal.append(records.FIRST_SEGMENT, writer.getvalue())

    def relocate(self, lsn: int, kind: int, payload: bytes) -> None:
        """Appends the present state of the record again, if it is alive."""
        broker = self.broker
        if kind == records.BATCH:
            for member_kind, member in records.decode_batch(payload):
                self.relocate(lsn, member_kind, member)
        elif kind == records.PLAIN_MESSAGE:
            message = broker.store.messages.get(read_i64_be(payload, 0))
            if message is not None and message.lsn == lsn:
                self._store_again(message, [])
        elif kind == records.MESSAGE:
            self._message(lsn, payload)
        elif kind == records.DUPLICATES:
            reader = Reader(payload)
            cache = reader.simple_string("duplicates.cache")
            age = reader.int64("duplicates.age")
            for _ in range(reader.int32("duplicates.count")):
                self._duplicate(lsn, cache, age, reader.take(reader.int32(), "duplicates.id"))
        elif kind == records.QUEUE:
            queue = broker.queue_registry.by_id.get(Reader(payload).int64("queue.id"))
            if queue is not None and queue.lsn == lsn:
                broker.queue_registry.store(queue)
        elif kind == records.ADDRESS:
            address = broker.addresses.get(Reader(payload).simple_string("address.name"))
            if address is not None and address.lsn == lsn:
                broker.address_registry.store(address)
        elif kind == records.PAGE:
            reader = Reader(payload)
            reader.int64("page.queue")
            broker.paging.relocate(lsn, reader.int64("page.number"))
        elif kind == records.XA_PREPARED:
            branch = broker.branches.by_xid.get(Reader(payload).blob("xa.xid"))
            if branch is not None and branch.lsn == lsn:
                record = xa_records.encode_prepared(branch)
                branch.lsn = broker.journal.append(records.XA_PREPARED, record)
        elif kind == records.XA_ENDED:
            xid = Reader(payload).blob("xa.xid")
            ended = broker.branches.heuristics.get(xid)
            if ended is not None and ended.lsn == lsn:
                record = xa_records.encode_ended(xid, ended.outcome, ended.user)
                ended.lsn = broker.journal.append(records.XA_ENDED, record)
        elif kind == records.VALUE:
            broker.values.relocate(Reader(payload).simple_string("value.key"), lsn)

    def _message(self, lsn: int, payload: bytes) -> None:
        broker = self.broker
        stored = decode_message_record(payload)
        message = broker.store.messages.get(stored.message.id)
        alive = message is not None and message.lsn == lsn
        duplicates: list[tuple[str, bytes]] = []
        for cache_name, duplicate_id in stored.duplicates:
            cache = broker.caches.by_name.get(cache_name)
            if cache is not None and cache.lsn_of(duplicate_id) == lsn:
                if alive:
                    duplicates.append((cache_name, duplicate_id))
                else:
                    self._duplicate(lsn, cache_name, stored.message.id, duplicate_id)
        if alive and message is not None:
            self._store_again(message, duplicates)

    def _store_again(self, message: Message, duplicates: list[tuple[str, bytes]]) -> None:
        broker = self.broker
        journal = broker.journal
        references = broker.store.references_of(message)
        message.plain = (
            len(references) == 1
            and not duplicates
            and not references[0].route_to
            and message.large is None
        )
        if message.plain:
            write_plain_message(journal.begin(records.PLAIN_MESSAGE), message, references[0])
            message.lsn = journal.end()
        else:
            record = encode_message_record(message, references, duplicates)
            message.lsn = journal.append(records.MESSAGE, record)
        for reference in references:
            if reference.state == SCHEDULED and reference.sequence != 0:
                broker.store.store_delivery_count(reference, broker.scheduled.time_ms(reference))
        for cache_name, duplicate_id in duplicates:
            broker.caches.by_name[cache_name].ids[duplicate_id] = message.lsn
        if broker.trace.on:
            trace_message(broker.trace, "trace_relocated", message, queue_sequences(references))

    def _duplicate(self, lsn: int, cache_name: str, age: int, duplicate_id: bytes) -> None:
        broker = self.broker
        cache = broker.caches.by_name.get(cache_name)
        if cache is not None and cache.lsn_of(duplicate_id) == lsn:
            record = records.encode_duplicates(cache_name, age, [duplicate_id])
            cache.ids[duplicate_id] = broker.journal.append(records.DUPLICATES, record)
