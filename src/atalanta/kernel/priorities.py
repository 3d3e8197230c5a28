"""Message priorities of a queue: higher ones are handed out first (QueueImpl's PriorityLinkedList).

The queue's list stays in order of sequence; while the live messages have different priorities, each priority has a
cursor of its own in it. As long as all have the same, which is the usual case, nothing of this is looked at.
"""

from __future__ import annotations

from typing import Final

LEVELS: Final = 10  # JMS: 0 … 9
DEFAULT: Final = 4


def level_of(priority: int) -> int:
    """A message's priority as a level: what lies outside of 0…9 counts as the nearest."""
    if priority < 0:
        return 0
    return priority if priority < LEVELS else LEVELS - 1


class Priorities:
    """`only` is the level all live messages have, -1 while they are mixed.

    They are counted in `alike`, while mixed in `live` by level. While mixed, nothing of a level is READY below
    `cursors[level]`. `unfinished` says that the last look was cut short.
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
        """The next message has another level."""
        self.live = [0] * LEVELS
        self.live[self.only] = self.alike
        self.only = -1

    def count(self, level: int) -> None:
        """A live message more; `only` is its level, or -1, or the queue is internal and has no levels."""
        if self.only >= 0:
            self.alike += 1
        else:
            self.live[level] += 1

    def uncount(self, level: int) -> bool:
        """A live message less; True if they were mixed and are not any more."""
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
        """While mixed: how many different priorities live messages have."""
        found = 0
        for count in self.live:
            if count > 0:
                found += 1
        return found

    def highest(self) -> int:
        """While mixed: the highest level with a live message; the default's if there is none."""
        level = LEVELS - 1
        while level >= 0:
            if self.live[level] > 0:
                return level
            level -= 1
        return DEFAULT
