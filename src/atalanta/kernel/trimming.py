"""What is finished at the front of a queue leaves memory while it is in the processor's caches still.

So the next messages get memory that is there, too, and a thousand queues do not keep a dozen finished messages each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from atalanta.kernel.reference import DONE

if TYPE_CHECKING:
    from atalanta.kernel.queue import Queue

# Finished references that are looked for, at least; and that they are one in so many, since the others are moved.
FINISHED_MIN: Final = 4
FINISHED_SHARE: Final = 6


def trim_front(queue: Queue) -> None:
    """Take finished references off the front of `queue.references`.

    The list itself is changed, so that the others are not touched: not for who is called while somebody walks it.
    """
    references = queue.references
    size: i64 = len(references)
    if queue.tombstones * FINISHED_SHARE < size:
        return
    finished: i64 = 0
    while finished < size and references[finished].state == DONE:
        finished += 1
    if finished > 0:
        del references[:finished]
        queue.tombstones = max(0, queue.tombstones - int(finished))
