"""The delivery of scheduled messages whose time has come, or which an operator delivers now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import encode_message_record
from atalanta.kernel.queue.reference import READY, SCHEDULED
from atalanta.message.repetition import due_message, next_message, stored_repetition

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message
    from atalanta.message.repetition import Repetition

# Messages that one timer input releases; the rest follows by a zero timer.
DUE_MAX: Final = 5_000
# Until a repeated message tries again to enter a full address.
FULL_WAIT_MS: Final = 1_000


def on_timer(store: MessageStore, now: int) -> None:
    """Releases the messages whose time has come."""
    scheduled = store.scheduled
    scheduled.armed_ms = 0
    release(store, scheduled.take_due(now // 1_000_000, DUE_MAX))
    if scheduled.armed_ms == 0:
        scheduled.arm()


def deliver_early(store: MessageStore, references: list[Reference]) -> int:
    """Releases scheduled messages now (QueueImpl.deliverScheduledMessages); returns their number."""
    store.command.begin_change()
    released: list[Reference] = []
    for reference in references:
        if reference.state == SCHEDULED and reference not in store.scheduled.in_transfer:
            store.scheduled.remove(reference)
            released.append(reference)
    release(store, released)
    return len(released)


def release(store: MessageStore, due: list[Reference]) -> None:
    """Enqueues messages whose time has come: new ones with a new sequence (journalled, PLACED), others at theirs.

    A repeated one schedules what follows, in the same record.
    """
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
        following = _following(store, reference)
        if not following:
            queue.count_pending(1)
            reference.sequence = queue.take_sequence()
            arriving.append(reference)
            if reference.durable:
                sequences.setdefault(queue.id, []).append((int(reference.message.id), reference.sequence))
        elif _is_full(store, reference):
            store.scheduled.schedule_new(reference, store.now // 1_000_000 + FULL_WAIT_MS)
        else:
            _place(store, arriving, sequences)  # the order of the sequences is that of the records
            arriving, sequences = [], {}
            _repeat(store, reference, following)
    _place(store, arriving, sequences)


def _place(store: MessageStore, arriving: list[Reference], sequences: dict[int, list[tuple[int, int]]]) -> None:
    """Journals the new sequences of messages, by queue; then they are enqueued."""
    if arriving:
        batch = records.Batch()
        for queue_id, taken in sequences.items():
            batch.add(records.PLACED, records.encode_placed(queue_id, taken))
        store.append(batch, arriving, None, 0)


# -- repeated messages ----------------------------------------------------------------------------
def _repeat(store: MessageStore, reference: Reference, following: list[tuple[int, Repetition]]) -> None:
    """Ends a repeated message whose time has come: in its place are one that comes now, and those that follow.

    All of it is one record: after a crash the message has come and the next one waits, or neither.
    """
    queue = reference.queue
    message = reference.message
    batch = records.Batch()
    made = [_made(store, reference, due_message(message, store.take_message_id()), queue.take_sequence(), batch)]
    for at_ms, repetition in following:
        fresh = next_message(message, store.take_message_id(), at_ms, repetition)
        made.append(_made(store, reference, fresh, 0, batch))
    if reference.durable:
        batch.add(records.ACKS, records.encode_acks(queue.id, [int(message.id)]))
    store.drop(reference)
    lsn = store.append(batch, made, None, 0)
    for each in made:
        each.message.lsn = lsn


def _made(
    store: MessageStore, reference: Reference, message: Message, sequence: int, batch: records.Batch
) -> Reference:
    """Returns the reference of a new message in the queue of a repeated one; the batch gets its record."""
    made = store.reference(message, reference.queue, sequence, reference.route_to)
    reference.queue.count_pending(1)
    if message.large is not None:
        store.large.hold(message.large, 1)
    if made.durable:
        store.keep(message, [made])
        batch.add(records.MESSAGE, encode_message_record(message, [made], []))
    return made


def _following(store: MessageStore, reference: Reference) -> list[tuple[int, Repetition]]:
    """Returns what a message schedules. Properties that another client wrote, and that mean nothing, repeat nothing."""
    message = reference.message
    try:
        repetition = stored_repetition(message)
    except ValueError:
        return []
    return [] if repetition is None else repetition.following(store.now // 1_000_000, message.scheduled_ms)


def _is_full(store: MessageStore, reference: Reference) -> bool:
    """Returns True if the address takes no messages: a repeated one waits, with all that follow."""
    memory = store.memory
    return memory.disk_exhausted or (memory.refusing > 0 and memory.refusal(reference.queue.account) >= 0)
