"""The passing of time for scheduled messages."""

from __future__ import annotations

from atalanta.kernel.queue.delivery.scheduled_messages import SCHEDULED_TIMER
from tests.kernel.broker_rig import SECOND, Bench


def tick(bench: Bench) -> None:
    """The timer fires if its time has come."""
    due = bench.timers.due.get(SCHEDULED_TIMER)
    if due is not None and due <= bench.now:
        del bench.timers.due[SCHEDULED_TIMER]
        bench.broker.on_timer(bench.now, SCHEDULED_TIMER)
    bench.settle()


def wait(bench: Bench, seconds: int) -> None:
    bench.settle()
    bench.now += seconds * SECOND
    tick(bench)
