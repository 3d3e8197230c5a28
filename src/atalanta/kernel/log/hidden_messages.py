"""Messages that a reader is not shown before the first lease of their queue: they are not durable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.log.first_lease import lighter_pages
from atalanta.kernel.queue.paging.paged_queue import paged_queue_of
from atalanta.kernel.queue.reference import DONE, Reference

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.queue import Queue

NOT_DURABLE: Final = "not durable, so not shown before the first lease"
RANGES_MAX: Final = 1_000  # later ones are not listed


def hidden_ranges(store: MessageStore, queue: Queue, end: int) -> list[tuple[int, int]]:
    """Returns the first RANGES_MAX ranges of non-durable messages up to `end`.

    A page file with some is one range: its last sequences, as many as it has non-durable messages.
    """
    found: list[tuple[int, int]] = []
    _add(found, queue.references, end)
    for page in lighter_pages(store, queue):
        if page.last <= end:
            found.append((page.last - (page.entries - page.durable_count) + 1, page.last))
    paged = paged_queue_of(queue)
    if paged is not None:
        _add(found, paged.tail, end)
    return found[:RANGES_MAX]


def _add(found: list[tuple[int, int]], references: list[Reference], end: int) -> None:
    """Adds the non-durable messages among these, neighbours as one range."""
    for reference in references:
        sequence = reference.sequence
        if sequence > end or len(found) > RANGES_MAX:
            return
        if reference.durable or reference.state == DONE:
            continue
        if found and found[-1][1] == sequence - 1:
            found[-1] = (found[-1][0], sequence)
        else:
            found.append((sequence, sequence))
