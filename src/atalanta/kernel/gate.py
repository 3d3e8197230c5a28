"""The gate of a queue: nothing is handed out until enough consumers are there, or the longest wait is over.

Follows QueueImpl.canDispatch: consumers-before-dispatch, delay-before-dispatch, and the pause that
group-rebalance-pause-dispatch makes until nothing is in flight.
"""

from __future__ import annotations

from typing import Final

TIMER: Final = "kernel.gate."


class Gate:
    """`delay_ms` -1 waits for ever. `wake_at` (ns): when the delay is over, 0 while it does not run."""

    def __init__(self, consumers: int, delay_ms: int) -> None:
        self.consumers = consumers
        self.delay_ms = delay_ms
        self.is_open: bool = False
        self.wake_at: int = 0

    def shut(self) -> None:
        self.is_open = False
        self.wake_at = 0

    def look(self, now: int, consumers: int, delivering: int) -> bool:
        """May the queue hand out? Opens the gate if so; the delay runs from the first look with a consumer."""
        if self.is_open:
            return True
        if consumers > 0 and self.delay_ms >= 0 and self.wake_at == 0:
            self.wake_at = now + self.delay_ms * 1_000_000
        if delivering > 0:
            return False
        if consumers >= self.consumers or 0 < self.wake_at <= now:
            self.is_open = True
        return self.is_open
