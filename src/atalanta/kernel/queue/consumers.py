"""A queue's consumers: how they come and go, and in which order they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.priorities import LEVELS
from atalanta.kernel.queue.reference import DONE

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.queue import Queue


def configure(queue: Queue) -> None:
    """What follows from the queue's definition; again when that was changed."""
    spec = queue.spec
    queue.keeps_messages = spec.non_destructive
    queue.guarded = spec.purge_on_no_consumers or not spec.enabled
    # Where everybody gets everything a group cannot be one consumer's.
    queue.groupable = (
        not queue.internal
        and not spec.exclusive
        and not spec.non_destructive
        and spec.group_buckets != 0
    )
    queue.groups = None
    queue.plain = is_plain(queue)
    for reference in queue.references:
        if queue.groupable and reference.state != DONE and reference.message.grouped:
            queue.start_groups()
    for consumer in queue.consumers:
        consumer.shares = shares(queue, consumer)
        if not consumer.browse_only:
            consumer.look_again(queue.cursor)
    arrange(queue)


def is_plain(queue: Queue) -> bool:
    """Whether it hands out without looking at anything, while it has no groups."""
    return queue.special is None and not queue.keeps_messages and queue.counting is None


def add_consumer(queue: Queue, consumer: Consumer) -> None:
    """Behind those of its priority and of higher ones; it begins where the queue is, a browser at the start."""
    consumer.position = 1 if consumer.browse_only else queue.cursor
    consumer.cursors = [consumer.position] * LEVELS
    at = len(queue.consumers)
    while at > 0 and queue.consumers[at - 1].priority < consumer.priority:
        at -= 1
    queue.consumers.insert(at, consumer)
    consumer.shares = shares(queue, consumer)
    if consumer.selector is None and not consumer.browse_only:
        queue.open_consumers += 1
    if queue.spec.group_rebalance and not consumer.browse_only:
        share_groups_anew(queue)
    arrange(queue)
    special = queue.special
    if special is not None and special.exclusive:
        queue.ring = 0  # whoever was asked meanwhile: the first of them is the one
    queue.usage.add_consumer()


def shares(queue: Queue, consumer: Consumer) -> bool:
    """Whether it takes whatever comes, so that the queue's own cursor is its position."""
    return (
        consumer.selector is None
        and not consumer.browse_only
        and not queue.keeps_messages
        and queue.groups is None
    )


def arrange(queue: Queue) -> None:
    """Who is asked in turn, and where each priority ends among them, the highest first."""
    special = queue.special
    queue.turns = queue.consumers if special is None else special.turns(queue.consumers)
    ends: list[int] = []
    consumers = queue.turns
    for index in range(1, len(consumers) + 1):
        if (
            index == len(consumers)
            or consumers[index].priority != consumers[index - 1].priority
        ):
            ends.append(index)
    queue.level_ends = ends
    queue.alike = queue.plain and len(ends) == 1 and queue.open_consumers == len(consumers)


def remove_consumer(queue: Queue, consumer: Consumer) -> None:
    """What it holds unacknowledged is not given back here."""
    queue.consumers.remove(consumer)
    if not consumer.browse_only:
        consumer_left(queue, consumer)
    if consumer.selector is None and not consumer.browse_only:
        queue.open_consumers -= 1
    arrange(queue)
    queue.ring = 0


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
            queue.plain = is_plain(queue)
    special = queue.special
    if special is not None:
        if special.chosen is consumer:
            special.chosen = None
        if last and special.gate is not None:
            special.gate.shut()
