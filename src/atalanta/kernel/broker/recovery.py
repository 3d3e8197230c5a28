"""Recovery: replays the journal's records into a broker.

A later record of the same key replaces the earlier one. A deletion of an unknown object is ignored, because
compaction dropped its creation. `finish` puts the result into an empty Broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from atalanta.kernel.broker.damaged_records import DamagedRecords
from atalanta.kernel.broker.reserved_ids import FoundIds
from atalanta.kernel.broker.settled_messages import (
    SETTLED_AT,
    KnownMessage,
    SettledMessages,
)
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import (
    StoredMessage,
    decode_message_record,
    decode_plain_message,
)
from atalanta.kernel.log import retention
from atalanta.kernel.log.lease import decode_lease
from atalanta.kernel.queue.delivery.displacement import restore
from atalanta.kernel.queue.paging.paged_queue import behind_pages, paged_queue_of
from atalanta.kernel.queue.paging.recovery import PagingRecovery
from atalanta.kernel.queue.paging.retained_messages import retained_of
from atalanta.kernel.queue.queue import Queue, by_sequence
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.queue.spec import decode_queue_spec
from atalanta.kernel.registry.queues import parse_filter
from atalanta.kernel.routing.address import Address
from atalanta.kernel.routing.router import join_stored
from atalanta.kernel.routing.virtual_topics import takes_local
from atalanta.kernel.trace import queue_sequences, trace_message
from atalanta.kernel.transactions import xa, xa_records, xa_recovery
from atalanta.message.encoding.buffer import DecodeError, Reader

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker


DAMAGED: Final = "the file of its body is damaged"


class Recovery:
    """Collects the records of a journal: `on_record` takes each in order, then `finish` builds the broker."""

    def __init__(self, broker: Broker, settled_at: int = SETTLED_AT) -> None:
        """`settled_at`: with so many more messages than before, `settle` puts them into their queues."""
        self.broker = broker
        self._settled_at = settled_at
        broker.scheduled.running = False  # until the node starts
        self.messages: dict[int, KnownMessage] = {}
        self._unsettled = 0  # those of `messages` that were looked at and must wait for the end
        self.sequences: dict[int, int] = {}
        # cache -> id -> (age, lsn): relocated records are behind newer ones, so `finish` sorts them.
        self.duplicates: dict[str, dict[bytes, tuple[int, int]]] = {}
        # In-doubt branches: xid -> (XA_PREPARED, its lsn).
        self.prepared: dict[bytes, tuple[bytes, int]] = {}
        self.paging = PagingRecovery()
        self.settled = SettledMessages(
            broker.store, broker.queue_registry.by_id, broker.addresses, broker.values, self.paging
        )
        self.first_segment: int = 1  # of the journal: earlier ones were compacted
        self.ids = FoundIds()

    def on_record(self, lsn: int, kind: int, payload: bytes) -> None:
        """Applies one record. DecodeError names a record whose content does not decode."""
        try:
            self._apply(lsn, kind, payload)
        except (DecodeError, BrokerError) as error:  # BrokerError: a filter that cannot be used
            raise DecodeError("journal", 0, f"record {lsn} of kind {kind}: {error}") from error

    def described(self, found: Sequence[tuple[int, bytes]]) -> str:
        """Returns what damaged records had, in words, by the queues that are known so far."""
        damaged = DamagedRecords()
        for kind, payload in found:
            damaged.add(kind, payload)
        registry = self.broker.queue_registry
        return damaged.text({queue_id: queue.name for queue_id, queue in registry.by_id.items()})

    def _apply(self, lsn: int, kind: int, payload: bytes) -> None:
        if kind == records.BATCH:
            for member_kind, member in records.decode_batch(payload):
                if member_kind == records.BATCH:
                    raise DecodeError("batch.kind", 0, "a batch within a batch")
                self._apply(lsn, member_kind, member)
        elif kind == records.MESSAGE:
            self._message(lsn, decode_message_record(payload))
        elif kind == records.PLAIN_MESSAGE:
            self._message(lsn, decode_plain_message(payload))
        elif kind == records.ACKS:
            self._acks(Reader(payload))
        elif kind == records.ACK_THROUGH:
            self._ack_through(Reader(payload))
        elif kind == records.DELIVERY:
            self._delivery(Reader(payload))
        elif kind == records.PAGE:
            page, message_ids = self.paging.page(lsn, payload)
            self._sequence(page.queue_id, page.last)
            self.ids.message_id_max = max(self.ids.message_id_max, page.id_max, page.number)
            for message_id in message_ids:
                self._forget(message_id, page.queue_id)
        elif kind == records.PAGE_DONE:
            reader = Reader(payload)
            reader.int64("page.queue")
            self.paging.done(reader.int64("page.number"))
        elif kind == records.PLACED:
            self._placed(Reader(payload))
        elif kind == records.DUPLICATES:
            self._duplicates(lsn, Reader(payload))
        elif kind == records.DUPLICATES_DROPPED:
            self.duplicates.pop(Reader(payload).simple_string("duplicates.cache"), None)
        elif kind == records.QUEUE:
            self._queue(lsn, payload)
        elif kind == records.QUEUE_DELETED:
            self._queue_deleted(Reader(payload).int64("queue.id"))
        elif kind == records.ADDRESS:
            self._address(lsn, Reader(payload))
        elif kind == records.ADDRESS_DELETED:
            self.broker.addresses.pop(Reader(payload).simple_string("address.name"), None)
        elif kind == records.XA_PREPARED:
            self.prepared[Reader(payload).blob("xa.xid")] = (payload, lsn)
        elif kind == records.XA_ENDED:
            self._branch_ended(lsn, Reader(payload))
        else:
            self._small(lsn, kind, Reader(payload))

    def _message(self, lsn: int, stored: StoredMessage) -> None:
        message_id = stored.message.id
        self.ids.message_id_max = max(self.ids.message_id_max, message_id)
        for found in stored.routes:
            if found.sequence > self.sequences.get(found.queue_id, 0):
                self.sequences[found.queue_id] = found.sequence
        stored.routes = join_stored(stored.routes)
        if message_id not in self.settled.messages or not self.settled.renew(stored, lsn):
            self.messages[message_id] = (stored, lsn)
        for cache, duplicate_id in stored.duplicates:
            self.duplicates.setdefault(cache, {})[duplicate_id] = (message_id, lsn)

    def _acks(self, reader: Reader) -> None:
        queue_id = reader.int64("acks.queue")
        for _ in range(reader.int32("acks.count")):
            message_id = reader.int64("acks.message")
            if not self._forget(message_id, queue_id):
                self.paging.ack(queue_id, message_id)

    def _sequence(self, queue_id: int, sequence: int) -> None:
        if sequence > self.sequences.get(queue_id, 0):
            self.sequences[queue_id] = sequence

    def _forget(self, message_id: int, queue_id: int) -> bool:
        """Removes the message from that queue; returns False if it was not there, or is in a page of the queue."""
        known = self.messages.get(message_id)
        if known is None:
            return self.settled.forget(message_id, queue_id)
        routes = [kept for kept in known[0].routes if kept.queue_id != queue_id]
        if len(routes) == len(known[0].routes):
            return False
        if routes:
            known[0].routes = routes
        else:
            del self.messages[message_id]
        return True

    def _known(self, message_id: int) -> KnownMessage | None:
        """Returns a message that is not in its queues, or not any more; None if the journal has none of this id."""
        known = self.messages.get(message_id)
        if known is None:
            known = self.settled.take_back(message_id)
            if known is not None:
                self.messages[message_id] = known
        return known

    def _take_back(self, references: list[Reference]) -> None:
        """Takes messages out of their queues: their state must wait for the end."""
        for reference in references:
            self._known(reference.message.id)

    def _ack_through(self, reader: Reader) -> None:
        queue_id = reader.int64("ack_through.queue")
        sequence = reader.int64("ack_through.sequence")
        queue = self.broker.queue_registry.by_id.get(queue_id)
        if queue is not None:
            queue.log.acknowledge_through(sequence)
            self._take_back(self.settled.acknowledged(queue))

    def _delivery(self, reader: Reader) -> None:
        queue_id = reader.int64("delivery.queue")
        message_id = reader.int64("delivery.message")
        known = self._known(message_id)
        count = reader.int32("delivery.count")
        at_ms = reader.int64("delivery.at")
        if known is not None:
            for found in known[0].routes:
                if found.queue_id == queue_id:
                    found.delivery_count = count
                    found.scheduled_ms = at_ms
                    return
        self.paging.deliver(queue_id, message_id, count, at_ms)

    def _placed(self, reader: Reader) -> None:
        queue_id = reader.int64("placed.queue")
        for _ in range(reader.int32("placed.count")):
            known = self._known(reader.int64("placed.message"))
            sequence = reader.int64("placed.sequence")
            self.sequences[queue_id] = max(self.sequences.get(queue_id, 0), sequence)
            if known is not None:
                for found in known[0].routes:
                    if found.queue_id == queue_id:
                        found.sequence = sequence

    def _duplicates(self, lsn: int, reader: Reader) -> None:
        cache = self.duplicates.setdefault(reader.simple_string("duplicates.cache"), {})
        age = reader.int64("duplicates.age")
        for _ in range(reader.int32("duplicates.count")):
            duplicate_id = reader.take(reader.int32("duplicates.length"), "duplicates.id")
            cache[duplicate_id] = (age, lsn)

    def _queue(self, lsn: int, payload: bytes) -> None:
        broker = self.broker
        reader = Reader(payload)
        queue_id = reader.int64("queue.id")
        spec = decode_queue_spec(reader)
        queue = Queue(
            queue_id,
            spec,
            parse_filter(spec.filter_text),
            reader.simple_string("queue.incarnation"),
        )
        next_sequence = reader.int64("queue.next_sequence")
        acked_through = reader.int64("queue.log.acked_through")
        previous = broker.queue_registry.by_id.get(queue_id)
        if previous is not None and previous.references:
            if self.settled.renew_queue(previous, lsn, payload, next_sequence, acked_through):
                return
            self._take_back(previous.live())
        queue.restore(lsn, next_sequence, acked_through)
        queue.take_local(takes_local(broker.config.virtual_topic_forms, queue.name))
        for _ in range(reader.int32("queue.leases")):
            queue.lease(decode_lease(reader))
        for _ in range(reader.int32("queue.lost")):
            start = reader.int64("lost.start")
            end = reader.int64("lost.end")
            queue.log.lost.append((start, end, reader.simple_string("lost.why")))
        for lease in queue.log.leases.values():
            lease.decode_history(reader)
        if previous is not None:
            self._forget_name(previous)
        broker.queues[queue.name] = queue
        broker.queue_registry.by_id[queue_id] = queue
        self.ids.binding_id_max = max(self.ids.binding_id_max, queue_id)

    def _queue_deleted(self, queue_id: int) -> None:
        queue = self.broker.queue_registry.by_id.pop(queue_id, None)
        if queue is not None:
            self.settled.leave(queue)
            self._forget_name(queue)

    def _forget_name(self, queue: Queue) -> None:
        """Removes the queue's name, unless another queue has it by now."""
        if self.broker.queues.get(queue.name) is queue:
            del self.broker.queues[queue.name]

    def _address(self, lsn: int, reader: Reader) -> None:
        name = reader.simple_string("address.name")
        anycast = reader.boolean("address.anycast")
        multicast = reader.boolean("address.multicast")
        auto_created = reader.boolean("address.auto_created")
        address = self.broker.addresses.get(name)
        if address is None:
            address = Address(name, anycast, multicast, auto_created)
            self.broker.addresses[name] = address
        address.restore(lsn, anycast, multicast, auto_created)

    def _small(self, lsn: int, kind: int, reader: Reader) -> None:
        if kind == records.COUNTERS:
            message_id = reader.int64("counters.message")
            binding_id = reader.int64("counters.binding")
            announced = reader.int64("counters.announced") if reader.left() else -1
            self.ids.on_counters(message_id, binding_id, announced)
        elif kind == records.FIRST_SEGMENT:
            self.first_segment = max(self.first_segment, reader.int64("segment.number"))
        elif kind == records.LEASE:
            queue = self.broker.queue_registry.by_id.get(reader.int64("lease.queue"))
            lease = decode_lease(reader)
            lease.decode_history(reader)
            if queue is not None:
                queue.lease(lease)
        elif kind == records.LOST:
            queue = self.broker.queue_registry.by_id.get(reader.int64("lost.queue"))
            start = reader.int64("lost.start")
            end = reader.int64("lost.end")
            if queue is not None:
                queue.log.add_lost(start, end, reader.simple_string("lost.why"))
        elif kind == records.VALUE:
            key = reader.simple_string("value.key")
            length = reader.int32("value.length")
            if length < 0:
                self.broker.values.restore(key, None, lsn)
            else:
                self.broker.values.restore(key, reader.take(length, "value.bytes"), lsn)
        else:
            raise DecodeError("kind", 0, f"unknown record kind {kind}: written by a newer version?")

    def _branch_ended(self, lsn: int, reader: Reader) -> None:
        xid = reader.blob("xa.xid")
        outcome = reader.int8("xa.outcome")
        self.prepared.pop(xid, None)
        heuristics = self.broker.branches.heuristics
        heuristics.pop(xid, None)
        if outcome != xa.ENDED:
            heuristics[xid] = xa.Heuristic(outcome, lsn, xa_records.decode_user(reader))

    def settle(self) -> None:
        """Implements GrowingReplay.settle: puts messages into their queues when there are many."""
        fresh = len(self.messages) - self._unsettled
        if fresh < self._settled_at:
            return
        newest = list(islice(reversed(self.messages.items()), fresh))
        for message_id, (stored, lsn) in reversed(newest):
            if self.settled.takes(stored):
                del self.messages[message_id]
                self._restore(0, stored, lsn)
            elif self.settled.ended(stored):
                del self.messages[message_id]
        self._unsettled = len(self.messages)
        for name, ids in self.duplicates.items():
            if len(ids) > 4 * self.broker.caches.size_of(name):
                self.duplicates[name] = dict(self._newest(name, ids, 2))

    def forget_before(self, lsn: int) -> None:
        """Implements GrowingReplay.forget_before. Other objects have records of their own for their end."""
        self.messages = {key: known for key, known in self.messages.items() if known[1] >= lsn}
        for name, ids in self.duplicates.items():
            self.duplicates[name] = {key: known for key, known in ids.items() if known[1] >= lsn}
        self._unsettled = 0
        self.paging.forget_ended()

    def finish(self, now: int, epochs: int = 0) -> None:
        """Puts queues below their addresses and references in their order; the ids begin above all that may be used.

        `epochs`: those of the node's group since the last one in the journal.
        """
        broker = self.broker
        broker.set_now(now)
        broker.large.begin_recovery()
        for known in broker.addresses.values():
            known.created_at = now
            known.queue_left_at = now
        for queue in broker.queues.values():
            address = broker.addresses.get(queue.spec.address)
            if address is None:
                address = Address(queue.spec.address, False, False, queue.spec.auto_created)
                address.created_at = now
                address.queue_left_at = now
                broker.addresses[address.name] = address
            address.add_routing_type(queue.spec.routing_type)
            address.internal = queue.internal
            address.add_queue(queue)
            if broker.config.persist_delivery_count_before_delivery:
                broker.dispatcher.store_counts_first(queue)
            queue.restore_sequences(now, self.sequences.get(queue.id, 0))
            for lease in queue.log.leases.values():
                lease.restore(now)
        broker.address_registry.add_all(list(broker.addresses.values()))
        broker.queue_registry.count_leased()
        retention.restore(broker.values, broker.paging, broker.queue_registry.by_id)
        for queue in broker.queues.values():
            self._take_back(self.settled.unusual(queue))
        self.paging.attach(broker.paging, broker.queue_registry.by_id)
        for stored, lsn in self.messages.values():
            self._restore(now, stored, lsn)
        self._restore_duplicates()
        for queue in broker.queues.values():
            paged = paged_queue_of(queue)
            # Pages are behind the list: a finished reference there must not look like one that is.
            queue.end_restore(paged is None and queue.id not in self.settled.unsorted)
            retained = retained_of(queue)
            if retained is not None:
                retained.end_restore()
            if paged is not None:
                paged.tail.sort(key=by_sequence)
                if queue.references:
                    last = queue.references[len(queue.references) - 1].sequence
                    broker.paging.read_through(now, queue, last)
        for payload, lsn in self.prepared.values():
            xa_recovery.restore(broker.branches, broker.queue_registry.by_id, now, payload, lsn)
        for queue in broker.queues.values():
            if queue.special is not None:
                restore(broker.store, now, queue, queue.special)
        broker.reserved_ids.begin(now, self.ids, epochs)
        broker.large.end_recovery()
        if self.paging.damaged:
            self._forget_damaged()
        broker.origins.restore()
        self.messages.clear()
        self.duplicates.clear()

    def _restore_duplicates(self) -> None:
        for name, ids in self.duplicates.items():
            cache = self.broker.caches.cache_of(name)
            for duplicate_id, (_, lsn) in self._newest(name, ids, 1):
                cache.add(duplicate_id, lsn)

    def _newest(self, name: str, ids: dict[bytes, tuple[int, int]], times: int) -> list[tuple[bytes, tuple[int, int]]]:
        """Returns the newest ids of a cache, in their order: so many times its size."""
        found = sorted(ids.items(), key=_by_age)
        return found[max(0, len(found) - times * self.broker.caches.size_of(name)) :]

    def _restore(self, now: int, stored: StoredMessage, lsn: int) -> None:
        broker = self.broker
        message = stored.message
        references: list[Reference] = []
        if stored.file >= 0 and not self._restore_body(stored):
            return
        for found in stored.routes:
            queue = broker.queue_registry.by_id.get(found.queue_id)
            if queue is None or 0 < found.sequence <= queue.log.released_through():
                continue
            retained = retained_of(queue)
            if retained is not None and 0 < found.sequence <= queue.log.acked_through:
                if found.sequence > retained.last_of_pages():
                    reference = Reference(message, queue, found.sequence, found.route_to)
                    retained.take_restored(reference)
                    references.append(reference)
                continue
            reference = Reference(message, queue, found.sequence, found.route_to)
            reference.delivery_count = found.delivery_count
            if found.sequence == 0:
                broker.scheduled.schedule_new(reference, message.scheduled_ms)
            elif behind_pages(queue, found.sequence):
                broker.paging.take_restored(reference)
            else:
                self.settled.note_order(queue, found.sequence)
                queue.add(reference)
                if found.scheduled_ms > now // 1_000_000:
                    broker.scheduled.schedule(reference, found.scheduled_ms)
            references.append(reference)
            broker.memory.charge(reference)
        if references:
            if message.large is not None:
                broker.large.hold(message.large, len(references))
            message.lsn = lsn
            message.store_for(references)
            broker.store.messages[message.id] = message
            broker.store.stored_bytes += message.size
            if broker.trace.on:
                trace_message(broker.trace, "trace_recovered", message, queue_sequences(references))

    def _restore_body(self, stored: StoredMessage) -> bool:
        """Restores a large body. A message with an incomplete file is reported and left out: it cannot be delivered."""
        broker = self.broker
        stored.message.large = broker.large.restored(
            stored.file, stored.file_bytes, stored.file_crc
        )
        if stored.message.large is not None:
            return True
        names: list[str] = []
        for found in stored.routes:
            queue = broker.queue_registry.by_id.get(found.queue_id)
            if queue is not None and (found.sequence == 0 or found.sequence > queue.log.released_through()):
                names.append(queue.name)
                self.paging.note_damaged(queue, stored.message.id, found.sequence)
        if names:
            broker.large.damaged(
                stored.file, stored.file_bytes, stored.message.id, ", ".join(names)
            )
        return False

    def _forget_damaged(self) -> None:
        """Appends the acknowledgements of damaged messages. A reader of the log view is told of the loss."""
        batch = records.Batch()
        for queue, found in self.paging.damaged.items():
            batch.add(records.ACKS, records.encode_acks(queue.id, [message_id for message_id, _ in found]))
            for _, sequence in found:
                if queue.leased and sequence > 0:
                    queue.log.record_lost(queue.id, sequence, sequence, DAMAGED, batch)
        self.broker.plans.append(batch, [], [], None, 0)


def _by_age(item: tuple[bytes, tuple[int, int]]) -> int:
    return item[1][0]
