"""The plan writer: a plan's message gets its references, and a record in the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import encode_message_record
from atalanta.kernel.queue.delivery.origin_headers import name_origin
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.trace import queue_sequences, trace_message
from atalanta.message.repetition import is_repeated

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.memory.large_body import LargeBody
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.delivery.plan import RoutingPlan
    from atalanta.kernel.registry.duplicate_caches import DuplicateCaches
    from atalanta.message.message import Message


class PlanWriter:
    """Writes plans into batches, and batches with their plans into the journal."""

    def __init__(
        self, store: MessageStore, duplicates: DuplicateCaches, persist_ids: bool
    ) -> None:
        self.store = store
        self.duplicates = duplicates
        self.persist_ids = persist_ids  # persist-id-cache

    def commit(self, plan: RoutingPlan, endpoint: Reply | None, token: int) -> None:
        """Appends one record for message, routes and duplicate ids; the queues get the message when it is durable."""
        batch = records.Batch()
        references = self.add(plan, batch)
        self.append(batch, [plan], references, endpoint, token)

    def add(self, plan: RoutingPlan, batch: records.Batch) -> list[Reference]:
        """Returns references for the plan's routes; the batch gets MESSAGE (or DUPLICATES), if any is durable."""
        # The steps of `references`, `write` and `enter` in one loop: most messages of transactions pass here.
        store = self.store
        store.command.begin_change()
        message = plan.message
        message.id = store.take_message_id()
        if plan.origin is not None:
            name_origin(message, plan.origin.message)
        references: list[Reference] = []
        stored: list[Reference] = []
        later = message.scheduled_ms != 0 and self.is_later(message)
        for planned in plan.routes:
            queue = planned.queue
            sequence = 0 if later else queue.take_sequence()
            reference = store.reference(message, queue, sequence, planned.route_to)
            queue.count_pending(1)
            references.append(reference)
            if reference.durable:
                stored.append(reference)
        if message.large is not None:
            self._hold_body(message.large, references, stored)
        if stored:
            store.keep(message, stored)
            batch.add(records.MESSAGE, encode_message_record(message, stored, plan.duplicates))
        elif plan.duplicates and self.persist_ids:
            self._write_ids(plan, batch)
        if store.trace.on:
            trace_message(store.trace, "trace_routed", message, queue_sequences(references))
        if plan.diverted is not None:
            for copy in plan.diverted:
                references.extend(self.add(copy, batch))
        return references

    def is_later(self, message: Message) -> bool:
        """Returns True for a scheduled message: it gets its sequence when its time comes
        (kernel/queue/delivery/scheduled.py)."""
        scheduled_ms = message.scheduled_ms
        return scheduled_ms != 0 and (scheduled_ms > self.store.now // 1_000_000 or is_repeated(message))

    def references(self, plan: RoutingPlan) -> list[Reference]:
        """Returns references for the plan's routes, without sequences yet. The message gets its id; no queue and no
        account knows of it."""
        message = plan.message
        message.id = self.store.take_message_id()
        if plan.origin is not None:
            name_origin(message, plan.origin.message)
        return [Reference(message, planned.queue, 0, planned.route_to) for planned in plan.routes]

    def write(self, plan: RoutingPlan, references: list[Reference], batch: records.Batch) -> bool:
        """Adds MESSAGE to the batch, or DUPLICATES if no reference is durable; returns True for MESSAGE."""
        stored = [reference for reference in references if reference.durable]
        if stored:
            batch.add(records.MESSAGE, encode_message_record(plan.message, stored, plan.duplicates))
            return True
        if plan.duplicates and self.persist_ids:
            self._write_ids(plan, batch)
        return False

    def enter(self, message: Message, references: list[Reference]) -> None:
        """Charges the references of a message to memory, and keeps the message for the durable ones."""
        store = self.store
        stored: list[Reference] = []
        for reference in references:
            queue = reference.queue
            if store.memory.charge(reference):
                store.limit(queue)
            queue.count_pending(1)
            if reference.durable:
                stored.append(reference)
        if message.large is not None:
            self._hold_body(message.large, references, stored)
        if stored:
            store.keep(message, stored)
        if store.trace.on:
            trace_message(store.trace, "trace_routed", message, queue_sequences(references))

    def _hold_body(self, body: LargeBody, references: list[Reference], stored: list[Reference]) -> None:
        large = self.store.large
        large.hold(body, len(references))
        if stored and not body.synced:
            large.sync(body)  # non-durable, for a leased queue: see LargeReceiver.finish

    def _write_ids(self, plan: RoutingPlan, batch: records.Batch) -> None:
        for cache_name, duplicate_id in plan.duplicates:
            record = records.encode_duplicates(cache_name, plan.message.id, [duplicate_id])
            batch.add(records.DUPLICATES, record)

    def append(
        self,
        batch: records.Batch,
        plans: list[RoutingPlan],
        references: list[Reference],
        endpoint: Reply | None,
        token: int,
    ) -> int:
        """Appends the batch to the journal, if it holds anything; returns the lsn (0: none).

        When that is durable, the references enter their queues and `endpoint.done(token)` follows.
        """
        self.store.command.begin_change()
        lsn = 0
        after_lsn = 0
        if len(batch) > 0:
            lsn = batch.append_to(self.store.journal)
        for plan in plans:
            after_lsn = max(after_lsn, plan.after_lsn)
            self._record_stored(plan, lsn)
            if plan.diverted is not None:
                for copy in plan.diverted:
                    self._record_stored(copy, lsn)
        self.store.enqueue_when_durable(lsn, after_lsn, references, endpoint, token)
        return lsn

    def _record_stored(self, plan: RoutingPlan, lsn: int) -> None:
        """Records that the record with this lsn (0: none) holds the message and its duplicate ids."""
        plan.message.lsn = lsn
        for cache_name, duplicate_id in plan.duplicates:
            self.duplicates.cache_of(cache_name).add(duplicate_id, lsn)
