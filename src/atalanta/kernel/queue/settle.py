"""A reference is finished: it leaves its queue, the memory and the journal; the message goes with the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records
from atalanta.kernel.queue.reference import DELIVERING, DONE, SCHEDULED, PagedReference, Reference
from atalanta.kernel.trace import tell

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.ports import Timers

SPENT_TIMER: Final = "kernel.spent"
FREED_MAX: Final = 2_000  # references one turn frees


def finish(broker: Broker, references: list[Reference], batch: records.Batch) -> None:
    """Take references out of their queues; what was durable goes into the batch as ACKS, one record a queue."""
    per_queue: dict[int, list[int]] = {}
    for reference in references:
        if reference.state == DONE:
            continue
        queue = reference.queue
        if reference.state != DELIVERING and (queue.keeps_messages or not queue.has(reference)):
            continue  # a non-destructive queue keeps it; or did, and this is a copy from a file
        if reference.durable:
            per_queue.setdefault(queue.id, []).append(reference.message.id)
        note_lost(broker, reference, "acknowledged by another consumer", batch)
        drop_from_queue(broker, reference)
        if broker.trace.on:
            tell(broker.trace, "story_acknowledged", reference.message, queue.name)
        queue.acknowledged += 1
    for queue_id, message_ids in per_queue.items():
        batch.add(records.ACKS, records.encode_acks(queue_id, message_ids))


def note_lost(broker: Broker, reference: Reference, why: str, batch: records.Batch) -> None:
    """A message that a log-view reader was shown leaves by another way: say so, durably, for `lost_ranges`."""
    queue = reference.queue
    sequence = reference.sequence
    if not reference.durable or not queue.log.is_shown(sequence):
        return
    queue.log.add_lost(sequence, why)
    batch.add(records.LOST, records.encode_lost(queue.id, sequence, why))


def drop_from_queue(broker: Broker, reference: Reference) -> None:
    """Memory only: the reference leaves its queue, the message goes with its last reference."""
    queue = reference.queue
    if reference.state == SCHEDULED:
        broker.scheduled.forget(reference)
    queue.remove(reference)
    drop(broker, reference)
    if queue.special is not None and queue.delivering_count == 0:
        broker.mark_dirty(queue)  # its gate may have waited for this


def drop(broker: Broker, reference: Reference) -> None:
    """The reference no longer counts for its message (it may never have been in its queue)."""
    reference.state = DONE
    broker.memory.release(reference)
    if reference.queue.paged is not None:
        broker.paging.touch(reference.queue)
    if isinstance(reference, PagedReference):
        broker.paging.finished(reference)
        return
    large = reference.message.large
    if large is not None:
        broker.large.release(large)
    if reference.durable:
        unstore(broker, reference)


def unstore(broker: Broker, reference: Reference) -> None:
    """The journal need not keep the message for this reference any more."""
    message = reference.message
    if message.unstore(reference) and message.id in broker.messages:
        del broker.messages[message.id]
        broker.stored_bytes -= reference.size
        if message.plain:
            message.plain = False
            broker.journal.forget(message.lsn)


def store_delivery_count(broker: Broker, reference: Reference, at_ms: int) -> None:
    """So that a poison message is not new again after a restart, nor too early; nothing waits for it."""
    if isinstance(reference, PagedReference):
        reference.page.deliveries[reference.index] = (reference.delivery_count, at_ms)
    broker.journal.append(
        records.DELIVERY,
        records.encode_delivery(
            reference.queue.id, reference.message.id, reference.delivery_count, at_ms
        ),
    )


class Spent:
    """References that no queue has any more, until their memory is freed, some at a time.

    A reader may acknowledge a million at once. Freeing them is half of the work of that, and nobody waits for it.
    """

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.lists: list[list[Reference]] = []

    def add(self, references: list[Reference]) -> None:
        """The caller keeps none of them."""
        if len(references) > FREED_MAX:
            self.lists.append(references)
            self.timers.set(SPENT_TIMER, 0)

    def on_timer(self, now: int) -> None:
        """The next ones."""
        references = self.lists[len(self.lists) - 1]
        del references[-FREED_MAX:]
        if not references:
            self.lists.pop()
        if self.lists:
            self.timers.set(SPENT_TIMER, now)
