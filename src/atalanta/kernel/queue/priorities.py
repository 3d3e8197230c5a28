"""Message priorities of a queue: higher ones are delivered first (QueueImpl's PriorityLinkedList).

The queue's list stays in order of sequence. While the live messages have different priorities, each priority has a
cursor of its own in the list. As long as all have the same, which is the usual case, none of this is used.
"""

from __future__ import annotations

from typing import Final

LEVELS: Final = 10  # JMS: 0 … 9
DEFAULT: Final = 4


def level_of(priority: int) -> int:
    """Returns the level of a message's priority: a value outside of 0…9 counts as the nearest."""
    if priority < 0:
        return 0
    return priority if priority < LEVELS else LEVELS - 1


class Priorities:
    """Counts of live messages by level. `only`: the level of all live messages; -1 while levels are mixed.

    `alike` counts them; while mixed, `live` counts them by level. While mixed, no message of a level is READY below
    `cursors[level]`. `unfinished`: the last search did not examine all (Dispatcher).
    """

    def __init__(self) -> None:
        self.only: int = DEFAULT
        self.alike: int = 0
        self.live: list[int] = []
        self.cursors: list[int] = []
        self.unfinished: bool = False

    def mixed(self) -> bool:
        return self.only < 0

    def mix(self, cursor: int) -> None:
        """Changes to mixed levels: the next message has another level. No message below `cursor` is READY."""
        self.cursors = [cursor] * LEVELS
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
