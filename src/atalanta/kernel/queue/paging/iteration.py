"""Iteration over all messages of a queue, in memory and in page files: for checks and management of small queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.paging.paged_queue import paged_queue_of

if TYPE_CHECKING:
    from atalanta.kernel.queue.paging.paged_queue import PagedQueue
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference


def everything(queue: Queue) -> list[Reference]:
    """Returns all unfinished messages, in order; messages in page files as copies, all of them at once."""
    found = queue.live()
    paged = paged_queue_of(queue)
    if paged is None:
        return found
    outside = paged.after(0)
    while outside:
        found.extend(outside)
        outside = paged.after(outside[len(outside) - 1].sequence)
    return found


def validate_paged(queue: Queue, paged: PagedQueue) -> None:
    """Asserts that the counters of messages outside of memory agree (reads every page: for tests).

    Later messages may be in memory: a branch in doubt holds them, or held them (Paging.take).
    """
    outside: list[Reference] = []
    previous = 0
    found = paged.after(previous)
    while found:
        outside.extend(found)
        found = paged.after(found[len(found) - 1].sequence)
    for reference in outside:
        assert reference.sequence > previous, f"queue {queue.name}: order of pages"
        previous = reference.sequence
    count = len(outside)
    size = sum(reference.size for reference in outside)
    assert count == paged.count, f"queue {queue.name}: {count} outside, {paged.count} counted"
    assert size == paged.bytes, f"queue {queue.name}: {size} bytes outside, {paged.bytes} counted"
    assert paged.tail_bytes == sum(reference.size for reference in paged.tail)
    for page in paged.pages:
        assert 0 <= page.unread <= page.live, f"queue {queue.name}: page {page.number}"
