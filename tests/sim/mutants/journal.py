"""Mutants of the journal: what is on disk, and when a node says so."""

from __future__ import annotations

from atalanta.kernel.broker.live_records import LiveRecords
from atalanta.kernel.endpoint import Reply
from atalanta.kernel.journal import records
from atalanta.kernel.publish.plan_writer import PlanWriter
from atalanta.kernel.queue.delivery.message_store import MessageStore
from atalanta.kernel.queue.delivery.plan import RoutingPlan
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.registry.queues import QueueRegistry
from tests.sim.mutants.patching import Patch


def confirmed_before_durable(patch: Patch) -> None:
    append = PlanWriter.append

    def hasty(
        self: PlanWriter, batch: records.Batch, plans: list[RoutingPlan], references: list[Reference],
        endpoint: Reply | None, token: int,
    ) -> int:  # fmt: skip
        if not plans or endpoint is None:
            return append(self, batch, plans, references, endpoint, token)
        endpoint.done(token)
        return append(self, batch, plans, references, None, token)

    patch.setattr(PlanWriter, "append", hasty)


def in_flight_not_given_back(patch: Patch) -> None:
    patch.setattr(Queue, "give_back", lambda self, reference: None)


def repeat_answered_early(patch: Patch) -> None:
    def early(self: MessageStore, lsn: int, endpoint: Reply | None, token: int) -> None:
        if endpoint is not None:
            endpoint.done(token)

    patch.setattr(MessageStore, "reply_when_durable", early)


def duplicate_id_in_a_record_of_its_own(patch: Patch) -> None:
    commit = PlanWriter.commit

    def two_records(
        self: PlanWriter, plan: RoutingPlan, endpoint: Reply | None, token: int
    ) -> None:
        for cache_name, duplicate_id in plan.duplicates:
            record = records.encode_duplicates(cache_name, self.store.next_message_id, [duplicate_id])
            lsn = self.store.journal.append(records.DUPLICATES, record)
            self.duplicates.cache_of(cache_name).add(duplicate_id, lsn)
        plan.duplicates = []
        commit(self, plan, endpoint, token)

    patch.setattr(PlanWriter, "commit", two_records)


def transaction_in_several_records(patch: Patch) -> None:
    append = PlanWriter.append

    def torn(
        self: PlanWriter, batch: records.Batch, plans: list[RoutingPlan], references: list[Reference],
        endpoint: Reply | None, token: int,
    ) -> int:  # fmt: skip
        if batch.encoded is None:
            return append(self, batch, plans, references, endpoint, token)
        batch.encoded.set_int32(0, batch.count)
        *first, last_record = records.decode_batch(batch.encoded.getvalue())
        for kind, payload in first:
            self.store.journal.append(kind, payload)
        last = records.Batch()
        last.add(*last_record)
        return append(self, last, plans, references, endpoint, token)

    patch.setattr(PlanWriter, "append", torn)


def sequence_used_again_after_compaction(patch: Patch) -> None:
    store = QueueRegistry.store

    def from_one(self: QueueRegistry, queue: Queue) -> None:
        kept = queue.next_sequence
        queue.next_sequence = 1
        store(self, queue)
        queue.next_sequence = kept

    patch.setattr(QueueRegistry, "store", from_one)


def compaction_drops_a_message(patch: Patch) -> None:
    message = LiveRecords._message

    def careless(self: LiveRecords, lsn: int, payload: bytes) -> None:
        if lsn % 3:
            message(self, lsn, payload)

    patch.setattr(LiveRecords, "_message", careless)


def compaction_drops_a_duplicate_id(patch: Patch) -> None:
    patch.setattr(LiveRecords, "_duplicate", lambda self, *fields: None)
