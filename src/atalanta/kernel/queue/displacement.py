"""Messages that replace others in their queue: last values and rings (chosen by kernel/queue/last_value_ring.py).

An older last value is removed when a newer one enters memory, as a new message or from a page file (as in Artemis,
LastValueQueue.addTail). Its ACKS record is behind the newer message's own record, so a crash never loses the newest;
recovery applies the rule again. A ring is cut at the end of a batch of inputs, and once more after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records
from atalanta.kernel.queue.reference import READY, PagedReference
from atalanta.kernel.trace import tell

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.last_value_ring import Special
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference

# Blocks of page files read in one batch of inputs to cut one ring; a shortened ring may need several batches.
BLOCKS_A_TURN: Final = 32
UNBOUNDED: Final = 1 << 62


def _forget(store: MessageStore, references: list[Reference], batch: records.Batch) -> None:
    message_ids: list[int] = []
    queue_id = 0
    for reference in references:
        if reference.durable:
            queue_id = reference.queue.id
            message_ids.append(reference.message.id)
            if not isinstance(reference, PagedReference):
                store.unstore(reference)
            reference.durable = False
    if message_ids:
        batch.add(records.ACKS, records.encode_acks(queue_id, message_ids))


def enter(store: MessageStore, special: Special, reference: Reference) -> None:
    """Applies the last-value and ring rules to a message that entered its queue.

    In the tail of a queue that pages, last values are not compared before the messages are read back.
    """
    queue = reference.queue
    if special.last_value_key is not None and (queue.paged is None or reference.state != READY):
        replaced = special.entered(reference)
        if replaced is not None:
            discard(store, [replaced])
    if special.ring_size >= 0 and not special.overfull:
        special.overfull = True
        store.dispatches.note_ring(queue)


def cut_rings(store: MessageStore) -> None:
    """Cuts the rings at the end of a batch of inputs; one record per queue. Consumers had the messages before that."""
    for queue in store.dispatches.take_rings():
        if queue.special is not None and not queue.deleted:
            cut(store, store.now, queue, queue.special, BLOCKS_A_TURN)


def cut(store: MessageStore, now: int, queue: Queue, special: Special, blocks_max: int) -> None:
    """Removes the oldest messages beyond the ring's size; those in page files are read into memory for that.

    After `blocks_max` blocks the rest is left to the next batch of inputs.
    """
    discard(store, special.beyond_ring(queue))
    blocks = 0
    while queue.paged is not None and special.excess(queue) > 0:
        if blocks >= blocks_max:
            special.overfull = True
            store.dispatches.note_ring(queue)
            store.paging.touch(queue)
            return
        blocks += 1
        if not store.paging.bring(now, queue):
            return
        discard(store, special.beyond_ring(queue))


def restore(store: MessageStore, now: int, queue: Queue, special: Special) -> None:
    """Removes, after a restart, the older last values in memory and the messages beyond a ring's size."""
    discard(store, special.restore(queue))
    cut(store, now, queue, special, UNBOUNDED)


def discard(store: MessageStore, references: list[Reference]) -> None:
    """Removes references of one queue from the queue and from the journal."""
    if not references:
        return
    batch = records.Batch()
    _forget(store, references, batch)
    for reference in references:
        _leave(store, reference)
    store.append(batch, [], None, 0)


def _leave(store: MessageStore, reference: Reference) -> None:
    queue = reference.queue
    if queue.special is not None:
        queue.special.replaced += 1
    store.drop_from_queue(reference)
    if store.trace.on:
        tell(store.trace, "story_replaced", reference.message, queue.name)
