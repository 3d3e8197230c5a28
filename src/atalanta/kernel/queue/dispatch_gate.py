"""The dispatch gate of a queue.

While the gate is closed, no message is delivered; it opens with enough consumers or at the end of the delay.

Follows QueueImpl.canDispatch: consumers-before-dispatch, delay-before-dispatch, and the pause of
group-rebalance-pause-dispatch until no message is being delivered.
"""

from __future__ import annotations

from typing import Final

TIMER: Final = "kernel.gate."


class Gate:
    """State of the gate. `delay_ms` -1: the delay never ends. `wake_at`: its end (ns), 0 while it does not run."""

    def __init__(self, consumers: int, delay_ms: int) -> None:
        self.consumers = consumers
        self.delay_ms = delay_ms
        self.is_open: bool = False
        self.wake_at: int = 0

    def close(self) -> None:
        self.is_open = False
        self.wake_at = 0

    def try_open(self, now: int, consumers: int, delivering: int) -> bool:
        """Opens the gate if the queue may deliver; returns true if it is open. The first consumer starts the delay."""
        if self.is_open:
            return True
        if consumers > 0 and self.delay_ms >= 0 and self.wake_at == 0:
            self.wake_at = now + self.delay_ms * 1_000_000
        if delivering > 0:
            return False
        if consumers >= self.consumers or 0 < self.wake_at <= now:
            self.is_open = True
        return self.is_open
