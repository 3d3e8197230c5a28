"""The steps of a queue's dispatching that only special queues and queues with groups take (special.py, groups.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.groups import marked_first
from atalanta.kernel.reference import DELIVERING

if TYPE_CHECKING:
    from atalanta.kernel.consumer import Consumer
    from atalanta.kernel.queue import Queue
    from atalanta.kernel.reference import Reference
    from atalanta.kernel.special import Special


def share_groups_anew(queue: Queue) -> None:
    """group-rebalance: a consumer came; with a pause, only when nothing is in flight any more."""
    groups = queue.groups
    if groups is not None:
        queue.look_again(groups.release_all())
    special = queue.special
    if special is not None and special.gate is not None:
        if queue.spec.group_rebalance_pause_dispatch:
            special.gate.shut()


def consumer_left(queue: Queue, consumer: Consumer) -> None:
    """Its groups, and its place as the only one, are free."""
    last = queue.consumer_count() == 0
    groups = queue.groups
    if groups is not None:
        queue.look_again(groups.release(consumer))
        if last and queue.message_count == 0 and queue.pending == 0:
            queue.groups = None
            queue.groupable = True
            queue.plain = queue.special is None and not queue.keeps_messages
    special = queue.special
    if special is not None:
        if special.chosen is consumer:
            special.chosen = None
        if last and special.gate is not None:
            special.gate.shut()


def look_at_gate(queue: Queue, special: Special, now: int) -> None:
    gate = special.gate
    if gate is not None and not gate.is_open:
        if gate.look(now, queue.consumer_count(), queue.delivering_count):
            queue.arrange()


def hand_out_specially(queue: Queue, consumer: Consumer, reference: Reference) -> int:
    """With groups, an exclusive consumer, or a queue that keeps what it hands out; returns the cost."""
    special = queue.special
    if special is not None:
        if special.handed_out(consumer):
            queue.arrange()
            if queue.spec.group_first_key is not None:
                consumer.marked = marked_first(reference.message, queue.spec.group_first_key)
        if not queue.keeps_messages:
            special.taken(reference)
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
    cost = consumer.endpoint.deliver(consumer, reference)
    consumer.marked = None
    return cost
