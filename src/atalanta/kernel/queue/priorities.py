"""Message priorities of a queue: higher ones are delivered first (QueueImpl's PriorityLinkedList).

The queue's list stays in order of sequence. While the live messages have different priorities, each priority has a
cursor of its own in the list. As long as all have the same, which is the usual case, none of this is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.reference import DELIVERING, READY

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference

LEVELS: Final = 10  # JMS: 0 … 9
DEFAULT: Final = 4
SCAN_MAX: Final = 2_000  # references examined in one dispatch; the next dispatch examines the rest


def level_of(priority: int) -> int:
    """Returns the level of a message's priority: a value outside of 0…9 counts as the nearest."""
    if priority < 0:
        return 0
    return priority if priority < LEVELS else LEVELS - 1


class Priorities:
    """Counts of live messages by level. `only`: the level of all live messages; -1 while levels are mixed.

    `alike` counts them; while mixed, `live` counts them by level. While mixed, no message of a level is READY below
    `cursors[level]`. `unfinished`: the last search stopped at SCAN_MAX.
    """

    def __init__(self) -> None:
        self.only: int = DEFAULT
        self.alike: int = 0
        self.live: list[int] = []
        self.cursors: list[int] = []
        self.unfinished: bool = False

    def mixed(self) -> bool:
        return self.only < 0

    def mix(self) -> None:
        """Changes to mixed levels: the next message has another level."""
        self.live = [0] * LEVELS
        self.live[self.only] = self.alike
        self.only = -1

    def count(self, level: int) -> None:
        """Counts a live message in; `only` is its level, or -1, or the queue is internal and has no levels."""
        if self.only >= 0:
            self.alike += 1
        else:
            self.live[level] += 1

    def uncount(self, level: int) -> bool:
        """Counts a live message out; returns true if the levels were mixed and are not any more."""
        if self.only >= 0:
            self.alike -= 1
            return False
        self.live[level] -= 1
        if self.live[level] > 0 or self.levels() > 1:
            return False
        self.only = self.highest()
        self.alike = self.live[self.only]
        return True

    def levels(self) -> int:
        """Returns the number of different levels of live messages, while mixed."""
        found = 0
        for count in self.live:
            if count > 0:
                found += 1
        return found

    def highest(self) -> int:
        """Returns the highest level with a live message, while mixed; the default level if there is none."""
        level = LEVELS - 1
        while level >= 0:
            if self.live[level] > 0:
                return level
            level -= 1
        return DEFAULT


def mix_priorities(queue: Queue, level: int) -> None:
    """Handles the first message of another priority: from here on each level has its cursors."""
    priorities = queue.priorities
    if queue.message_count == 0:
        priorities.only = level
        return
    priorities.mix()
    priorities.cursors = [queue.cursor] * LEVELS
    for consumer in queue.consumers:
        consumer.cursors = [consumer.position] * LEVELS


def settle_positions(queue: Queue) -> None:
    """Sets each consumer's position to its cursor of the one level that is left."""
    only = queue.priorities.only
    for consumer in queue.consumers:
        if not consumer.shares and consumer.cursors:
            consumer.position = max(consumer.position, consumer.cursors[only])


def next_by_priority(queue: Queue, consumer: Consumer, now_ms: int) -> Reference | None:
    """Returns the next message as `_next_for`, the highest priority first; sets `priorities.unfinished` at SCAN_MAX.

    Browsers use the same order (QueueBrowserIterator iterates over PriorityLinkedList), and see delivered messages too.
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
