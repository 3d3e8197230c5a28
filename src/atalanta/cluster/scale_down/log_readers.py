"""Readers of the log (Spark) before their node leaves: they get no more, and finish what they were shown.

A stream plans a range, reads it, and acknowledges it with its next trigger. What it was shown can be given to nobody
else: it may be stored already, and at the target it would have another place. So a node that leaves shows nothing new
and waits until all is acknowledged; what comes meanwhile was never shown, and moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.queue import Queue


class Readers:
    """`settle` once, then `waiting` until it is False; `release` if the node stays after all."""

    def __init__(self, broker: Broker, timeout_ms: int) -> None:
        self.broker = broker
        self.timeout_ns = timeout_ms * 1_000_000
        self.until = 0
        self.settling: list[Queue] = []

    def settle(self, now: int, queues: list[Queue]) -> None:
        self.until = now + self.timeout_ns
        self.settling = queues  # also those that nobody reads yet: a reader that comes is shown nothing
        for queue in self.settling:
            queue.log.hide_new()
        if self.waiting(now):
            names = ", ".join(queue.name for queue in self.settling if unsettled(queue))
            self.broker.trace.event("scale_down_waits_for_readers", {"queues": names})

    def waiting(self, now: int) -> bool:
        """A reader that is there has not acknowledged all it was shown, and its time is not over."""
        return now < self.until and any(unsettled(queue) for queue in self.settling)

    def release(self) -> None:
        for queue in self.settling:
            queue.log.show_all()
        self.settling = []


def unsettled(queue: Queue) -> bool:
    return queue.active_lease() is not None and queue.log.shown_through > queue.log.acked_through
