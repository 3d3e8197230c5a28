"""The plan writer: a plan's message gets its references, and a record in the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import encode_message_record
from atalanta.kernel.queue.delivery.origin_headers import name_origin
from atalanta.kernel.trace import queue_sequences, trace_message
from atalanta.message.repetition import is_repeated

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.delivery.plan import Plan
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.registry.duplicate_caches import DuplicateCaches


class PlanWriter:
    """Writes plans into batches, and batches with their plans into the journal."""

    def __init__(
        self, store: MessageStore, duplicates: DuplicateCaches, persist_ids: bool
    ) -> None:
        self.store = store
        self.duplicates = duplicates
        self.persist_ids = persist_ids  # persist-id-cache

    def commit(self, plan: Plan, endpoint: Reply | None, token: int) -> None:
        """Appends one record for message, routes and duplicate ids; the queues get the message when it is durable."""
        batch = records.Batch()
        references = self.add(plan, batch)
        self.append(batch, [plan], references, endpoint, token)

    def add(self, plan: Plan, batch: records.Batch) -> list[Reference]:
        """Returns references for the plan's routes; the batch gets MESSAGE (or DUPLICATES), if any is durable."""
        store = self.store
        store.command.begin_change()
        message = plan.message
        message.id = store.take_message_id()
        if plan.origin is not None:
            name_origin(message, plan.origin.message)
        references: list[Reference] = []
        stored: list[Reference] = []
        # A scheduled message gets its sequence when its time comes (kernel/queue/delivery/scheduled.py).
        scheduled_ms = message.scheduled_ms
        later = scheduled_ms != 0 and (scheduled_ms > store.now // 1_000_000 or is_repeated(message))
        for planned in plan.routes:
            queue = planned.queue
            sequence = 0 if later else queue.take_sequence()
            reference = store.reference(message, queue, sequence, planned.route_to)
            queue.count_pending(1)
            references.append(reference)
            if reference.durable:
                stored.append(reference)
        if message.large is not None:
            store.large.hold(message.large, len(references))
            if stored and not message.large.synced:
                store.large.sync(message.large)  # non-durable, for a leased queue: see LargeReceiver.finish
        if stored:
            store.keep(message, stored)
            record = encode_message_record(message, stored, plan.duplicates)
            batch.add(records.MESSAGE, record)
        elif plan.duplicates and self.persist_ids:
            for cache_name, duplicate_id in plan.duplicates:
                batch.add(
                    records.DUPLICATES,
                    records.encode_duplicates(cache_name, message.id, [duplicate_id]),
                )
        if store.trace.on:
            trace_message(store.trace, "trace_routed", message, queue_sequences(references))
        if plan.diverted is not None:
            for copy in plan.diverted:
                references.extend(self.add(copy, batch))
        return references

    def append(
        self,
        batch: records.Batch,
        plans: list[Plan],
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

    def _record_stored(self, plan: Plan, lsn: int) -> None:
        """Records that the record with this lsn (0: none) holds the message and its duplicate ids."""
        plan.message.lsn = lsn
        for cache_name, duplicate_id in plan.duplicates:
            self.duplicates.cache_of(cache_name).add(duplicate_id, lsn)
