"""Messages that replace others in their queue: last values and rings (chosen by kernel/queue/last_value_ring.py).

An older last value is removed at the end of the batch of inputs in which a newer one entered (Artemis,
LastValueQueue.addTail). The deliveries come before: consumers with credit see each value, as those of Artemis do, whose
delivery runs beside the senders. Its ACKS record is behind the newer message's own record, so a crash never loses the
newest; recovery applies the rule again. A ring is cut at the end of a batch of inputs, and once more after a restart.
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


def displace(store: MessageStore) -> None:
    """Removes older last values and cuts rings at the end of a batch of inputs. Consumers had the messages before."""
    for queue in store.dispatches.take_displacements():
        special = queue.special
        if special is None:
            continue
        special.listed = False
        outdated = special.take_outdated()
        if not queue.deleted:
            store.discard(outdated)
            cut(store, store.now, queue, special, BLOCKS_A_TURN)


def cut(store: MessageStore, now: int, queue: Queue, special: SpecialQueue, blocks_max: int) -> None:
    """Removes the oldest messages beyond the ring's size; those in page files are read into memory for that.

    After `blocks_max` blocks the rest is left to the next batch of inputs.
    """
    store.discard(special.beyond_ring(queue))
    blocks = 0
    while queue.paged is not None and special.excess(queue) > 0:
        if blocks >= blocks_max:
            special.listed = True
            store.dispatches.note_displacement(queue)
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
