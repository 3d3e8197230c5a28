"""Waits for the readers of the log (Spark) before their node scales down.

A stream plans a range, reads it, and acknowledges it with its next trigger. Messages that the reader was shown
cannot be delivered to another consumer: the reader may have stored them already, and at the target they would have
another offset. A node that scales down therefore shows nothing new and waits until all shown messages are
acknowledged. Messages that arrive meanwhile were never shown, so they are moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.queue.queue import Queue


class Readers:
    """Call `settle` once, then `waiting` until it returns False. Call `release` if the node stays after all."""

    def __init__(self, trace: Trace, timeout_ms: int) -> None:
        self.trace = trace
        self.timeout_ns = timeout_ms * 1_000_000
        self.until = 0
        self.settling: list[Queue] = []

    def settle(self, now: int, queues: list[Queue]) -> None:
        self.until = now + self.timeout_ns
        self.settling = queues  # includes queues without a reader: a new reader is shown nothing
        for queue in self.settling:
            queue.log.hide_new()
        if self.waiting(now):
            names = ", ".join(queue.name for queue in self.settling if unsettled(queue))
            self.trace.event("scale_down_waits_for_readers", {"queues": names})

    def waiting(self, now: int) -> bool:
        """Returns True while a connected reader has unacknowledged messages and the timeout has not passed."""
        return now < self.until and any(unsettled(queue) for queue in self.settling)

    def release(self) -> None:
        for queue in self.settling:
            queue.log.show_until = -1
        self.settling = []


def unsettled(queue: Queue) -> bool:
    return queue.active_lease() is not None and queue.log.shown_through > queue.log.acked_through


def report_retained(trace: Trace, queues: list[Queue]) -> None:
    """Reports the acknowledged messages that queues retain for a replay: they are not moved."""
    for queue in queues:
        retained = queue.log.retained
        messages = 0 if retained is None else retained.messages()
        if messages > 0:
            groups = ", ".join(sorted(queue.log.leases))
            trace.event(
                "scale_down_retained", {"queue": queue.name, "groups": groups, "messages": messages}
            )
