"""The delivery of scheduled messages whose time has come, or which an operator delivers now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records
from atalanta.kernel.queue.reference import READY, SCHEDULED

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.reference import Reference

# Messages that one timer input releases; the rest follows by a zero timer.
DUE_MAX: Final = 5_000


def on_timer(store: MessageStore, now: int) -> None:
    """Releases the messages whose time has come."""
    scheduled = store.scheduled
    scheduled.armed_ms = 0
    release(store, scheduled.take_due(now // 1_000_000, DUE_MAX))
    if scheduled.armed_ms == 0:
        scheduled.arm()


def deliver_early(store: MessageStore, references: list[Reference]) -> int:
    """Releases scheduled messages now (QueueImpl.deliverScheduledMessages); returns their number."""
    released: list[Reference] = []
    for reference in references:
        if reference.state == SCHEDULED and reference not in store.scheduled.in_transfer:
            store.scheduled.remove(reference)
            released.append(reference)
    release(store, released)
    return len(released)


def release(store: MessageStore, due: list[Reference]) -> None:
    """Enqueues messages whose time has come: new ones with a new sequence (journalled, PLACED), others at theirs."""
    arriving: list[Reference] = []
    sequences: dict[int, list[tuple[int, int]]] = {}
    for reference in due:
        queue = reference.queue
        special = queue.special
        # Asked before the reference counts as a waiting one.
        refused = special is not None and reference.sequence != 0 and special.refuses(queue, reference)
        queue.count_scheduled(reference, -1)
        reference.state = READY
        if refused:
            store.discard([reference])
            continue
        if reference.sequence != 0:
            queue.give_back(reference)
            if special is not None:
                store.discard(special.beyond_ring(queue))
            store.dispatches.mark_dirty(queue)
            if queue.open_consumers == 0 and not queue.has_match(reference.message):
                store.dispatches.note_unattended(queue)
            continue
        # The message was counted at its arrival, and is counted again when it is enqueued.
        queue.count_unsequenced(reference, -1)
        reference.sequence = queue.take_sequence()
        queue.count_pending(1)
        arriving.append(reference)
        if reference.durable:
            sequences.setdefault(queue.id, []).append((int(reference.message.id), reference.sequence))
    if not arriving:
        return
    batch = records.Batch()
    for queue_id, taken in sequences.items():
        batch.add(records.PLACED, records.encode_placed(queue_id, taken))
    store.append(batch, arriving, None, 0)
