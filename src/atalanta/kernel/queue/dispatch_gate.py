"""The dispatch gate of a queue, and the dispatch steps that only special queues and queues with groups take.

While the gate is closed, no message is delivered; it opens with enough consumers or at the end of the delay.

Follows QueueImpl.canDispatch: consumers-before-dispatch, delay-before-dispatch, and the pause of
group-rebalance-pause-dispatch until no message is being delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.consumers import arrange
from atalanta.kernel.queue.message_groups import marked_first
from atalanta.kernel.queue.reference import DELIVERING

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.last_value_ring import Special
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference

TIMER: Final = "kernel.gate."


class Gate:
    """State of the gate. `delay_ms` -1: the delay never ends. `wake_at`: its end (ns), 0 while it does not run."""

    def __init__(self, consumers: int, delay_ms: int) -> None:
        self.consumers = consumers
        self.delay_ms = delay_ms
        self.is_open: bool = False
        self.wake_at: int = 0

    def shut(self) -> None:
        self.is_open = False
        self.wake_at = 0

    def look(self, now: int, consumers: int, delivering: int) -> bool:
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


def look_at_gate(queue: Queue, special: Special, now: int) -> None:
    """Opens the gate before a dispatch, if its conditions are met."""
    gate = special.gate
    if gate is not None and not gate.is_open:
        if gate.look(now, queue.consumer_count(), queue.delivering_count):
            arrange(queue)


def arm_gate(timers: Timers, now: int, queue: Queue, special: Special) -> None:
    """Sets the timer for the end of the gate's delay, after a dispatch."""
    gate = special.gate
    if gate is not None and not gate.is_open and gate.wake_at > now:
        timers.set(TIMER + queue.name, gate.wake_at)


def hand_out_specially(queue: Queue, consumer: Consumer, reference: Reference) -> int:
    """Delivers from a special or non-destructive queue, or one with groups; returns the cost in credits."""
    special = queue.special
    if special is not None:
        if special.handed_out(consumer):
            arrange(queue)
            if queue.spec.group_first_key is not None:
                consumer.marked = marked_first(reference.message, queue.spec.group_first_key)
    groups = queue.groups
    if groups is not None:
        queue.look_again(groups.handed_out(consumer, reference))
        if groups.full():
            groups.forget_unused(queue.references)
    if queue.keeps_messages:
        reference.delivery_count = 1
    else:
        reference.state = DELIVERING
        reference.delivery_count += 1
        reference.consumer = consumer
        queue.delivering_count += 1
    consumer.unacknowledged.add(reference)
    counting = queue.counting
    if counting is not None and not queue.keeps_messages and counting.holds(consumer, reference):
        cost = reference.size
    else:
        cost = consumer.endpoint.deliver(consumer, reference)
    consumer.marked = None
    return cost
