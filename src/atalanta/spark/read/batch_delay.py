"""The wait of a batch for enough messages (`minOffsetsPerTrigger`, `maxTriggerDelay`)."""

from __future__ import annotations

import time
from collections.abc import Callable

from atalanta.spark.options import ReadOptions


class BatchDelay:
    """The wait of one query: until the messages are there, and not longer than a message may wait."""

    def __init__(self, options: ReadOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self.min_messages = options.min_messages
        self.max_delay_s = options.max_delay_s
        self.clock = clock
        self._since_s: float | None = None  # when the first message was seen that no batch has

    def holds(self, waiting: int) -> bool:
        """Returns whether the batch of `waiting` messages is to wait."""
        if self.min_messages is None or waiting == 0 or waiting >= self.min_messages:
            self._since_s = None
            return False
        now_s = self.clock()
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s < self.max_delay_s:
            return True
        self._since_s = None
        return False
