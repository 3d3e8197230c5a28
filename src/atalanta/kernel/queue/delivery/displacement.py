"""Messages that replace others in their queue: last values and rings (chosen by kernel/queue/last_value_ring.py).

An older last value is removed when a newer one enters memory, as a new message or from a page file (as in Artemis,
LastValueQueue.addTail). Its ACKS record is behind the newer message's own record, so a crash never loses the newest;
recovery applies the rule again. A ring is cut at the end of a batch of inputs, and once more after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.last_value_ring import SpecialQueue
    from atalanta.kernel.queue.queue import Queue

# Blocks of page files read in one batch of inputs to cut one ring; a shortened ring may need several batches.
BLOCKS_A_TURN: Final = 32
UNBOUNDED: Final = 1 << 62


def cut_rings(store: MessageStore) -> None:
    """Cuts the rings at the end of a batch of inputs; one record per queue. Consumers had the messages before that."""
    for queue in store.dispatches.take_rings():
        if queue.special is not None and not queue.deleted:
            cut(store, store.now, queue, queue.special, BLOCKS_A_TURN)


def cut(store: MessageStore, now: int, queue: Queue, special: SpecialQueue, blocks_max: int) -> None:
    """Removes the oldest messages beyond the ring's size; those in page files are read into memory for that.

    After `blocks_max` blocks the rest is left to the next batch of inputs.
    """
    store.discard(special.beyond_ring(queue))
    blocks = 0
    while queue.paged is not None and special.excess(queue) > 0:
        if blocks >= blocks_max:
            special.overfull = True
            store.dispatches.note_ring(queue)
            store.paging.touch(queue)
            return
        blocks += 1
        if not store.paging.read_next(now, queue):
            return
        store.discard(special.beyond_ring(queue))


def restore(store: MessageStore, now: int, queue: Queue, special: SpecialQueue) -> None:
    """Removes, after a restart, the older last values in memory and the messages beyond a ring's size."""
    store.discard(special.restore(queue))
    cut(store, now, queue, special, UNBOUNDED)
