"""What a queue does differently while its messages have different priorities (priorities.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.priorities import LEVELS, level_of
from atalanta.kernel.reference import DELIVERING, READY

if TYPE_CHECKING:
    from atalanta.kernel.consumer import Consumer
    from atalanta.kernel.queue import Queue
    from atalanta.kernel.reference import Reference

SCAN_MAX: Final = 2_000  # references looked at in one dispatch: the rest goes on at the next turn


def mix_priorities(queue: Queue, level: int) -> None:
    """The first message of another priority came: from here on each level has its cursors."""
    priorities = queue.priorities
    if queue.message_count == 0:
        priorities.only = level
        return
    priorities.mix()
    priorities.cursors = [queue.cursor] * LEVELS
    for consumer in queue.consumers:
        consumer.cursors = [consumer.position] * LEVELS


def settle_positions(queue: Queue) -> None:
    """One priority is left: each consumer goes on where it was among its messages (all others are gone)."""
    only = queue.priorities.only
    for consumer in queue.consumers:
        if not consumer.shares and consumer.cursors:
            consumer.position = max(consumer.position, consumer.cursors[only])


def next_by_priority(queue: Queue, consumer: Consumer, now_ms: int) -> Reference | None:
    """As `_next_for`, the highest priority first; `priorities.unfinished` if the look was cut short.

    Browsers, too (QueueBrowserIterator goes by PriorityLinkedList), which see what others hold.
    """
    priorities = queue.priorities
    browsing = consumer.browse_only
    priorities.unfinished = False
    selector = consumer.selector
    cursors = priorities.cursors if consumer.shares else consumer.cursors
    groups = None if browsing else queue.groups
    references = queue.references
    end = len(references)
    looks = 0
    for level in range(LEVELS - 1, -1, -1):
        if priorities.live[level] == 0:
            continue
        start = cursors[level] if browsing else max(cursors[level], priorities.cursors[level])
        index = queue.index_of(start)
        while index < end:
            reference = references[index]
            if looks >= SCAN_MAX:
                cursors[level] = reference.sequence
                priorities.unfinished = True
                return None
            looks += 1
            index += 1
            message = reference.message
            if level_of(message.priority) != level:
                continue
            if reference.state != READY and not (browsing and reference.state == DELIVERING):
                continue
            if message.expiration != 0 and not browsing:
                if queue.set_aside_expired(reference, now_ms):
                    continue
            if selector is not None and not selector.matches(message):
                continue
            if groups is not None and not groups.takes(consumer, reference):
                continue
            cursors[level] = reference.sequence + 1
            return reference
        cursors[level] = queue.end()
    return None
