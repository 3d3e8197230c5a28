"""The messages of a queue that are outside of memory, as far as the queue knows them."""

from __future__ import annotations


class PagedMessages:
    """Totals of messages outside of memory: the base of PagedQueue.

    `count` and `bytes` are part of the queue's own. `last` is the highest sequence. `wanted`: redistribution needs the
    messages in memory.
    """

    def __init__(self) -> None:
        self.count: int = 0
        self.bytes: int = 0
        self.last: int = 0
        self.wanted: bool = False

    def request(self) -> None:
        """Requests the messages in memory for a reader that is no consumer (redistribution)."""
        self.wanted = True
