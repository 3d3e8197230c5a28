"""A queue's consumers: how they are added and removed, and the order in which they are offered messages."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from atalanta.kernel.queue.priorities import LEVELS

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue


def configure(queue: Queue) -> None:
    """Applies the queue's changed definition to its messages and consumers."""
    queue.reconfigure()
    for consumer in queue.consumers:
        consumer.shares = shares(queue, consumer)
        if not consumer.browse_only:
            consumer.rewind(queue.cursor)
    arrange(queue)


def add_consumer(queue: Queue, consumer: QueueConsumer) -> None:
    """Adds the consumer behind those of its priority and of higher ones; it starts at the cursor, or at 1 (browser).

    The browsers of a priority are behind its consumers, whose turns they do not change.
    """
    turns = turns_by_priority(queue) if consumer.browse_only else {}
    consumer.position = 1 if consumer.browse_only else queue.cursor
    consumer.cursors = [consumer.position] * LEVELS
    at = len(queue.consumers)
    while at > 0 and _is_behind(queue.consumers[at - 1], consumer):
        at -= 1
    queue.consumers.insert(at, consumer)
    consumer.shares = shares(queue, consumer)
    queue.count_consumer(consumer, 1)
    if queue.spec.group_rebalance and not consumer.browse_only:
        share_groups_anew(queue)
    arrange(queue, turns)
    queue.usage.add_consumer()


def _is_behind(one: QueueConsumer, other: QueueConsumer) -> bool:
    """Returns true if `one`, added before, comes behind `other` in the list."""
    if one.priority != other.priority:
        return one.priority < other.priority
    return one.browse_only and not other.browse_only


def shares(queue: Queue, consumer: QueueConsumer) -> bool:
    """Returns true if the consumer takes every message, so that the queue's own cursor is its position."""
    return (
        consumer.selector is None
        and not consumer.browse_only
        and not queue.keeps_messages
        and queue.groups is None
    )


def _descending(consumer: QueueConsumer) -> int:
    return -consumer.priority


def turns_by_priority(queue: Queue) -> dict[int, int]:
    """Returns the turn of each priority, before the list of consumers changes."""
    consumers = queue.turns
    ends = queue.level_ends
    return {consumers[end - 1].priority: queue.level_turns[level] for level, end in enumerate(ends)}


def arrange(queue: Queue, turns: dict[int, int] | None = None) -> None:
    """Sets the consumers to be offered messages, and the end of each priority among them, the highest first.

    Each priority has its own turns (PriorityCollection): they begin anew when a consumer is added or removed, so the
    first consumer of an exclusive queue becomes its only one. When browsers come and go, they stay (`turns`).
    """
    if turns is None:
        turns = turns_by_priority(queue)
    special = queue.special
    found = claimed(queue.consumers) if queue.claims > 0 else queue.consumers
    queue.turns = found if special is None else special.turns(found)
    ends: list[int] = []
    level_turns: list[int] = []
    consumers = queue.turns
    start = 0
    while start < len(consumers):
        priority = consumers[start].priority
        end = bisect_right(consumers, -priority, lo=start, key=_descending)
        turn = turns.get(priority, 0)
        level_turns.append(turn if turn < end - start else 0)
        ends.append(end)
        start = end
    queue.level_ends = ends
    queue.level_turns = level_turns
    queue.alike = queue.plain and len(ends) == 1 and queue.open_consumers == len(consumers)


def claimed(consumers: list[QueueConsumer]) -> list[QueueConsumer]:
    """Returns the consumers that may get messages: if some claim the queue, the first of them alone, and browsers.

    They are in order of priority, then of age: the exclusive consumers of ActiveMQ Classic.
    """
    for claiming in consumers:
        if claiming.claims() and not claiming.browse_only:
            return [consumer for consumer in consumers if consumer is claiming or consumer.browse_only]
    return consumers


def remove_consumer(queue: Queue, consumer: QueueConsumer) -> None:
    """Removes the consumer; the caller returns its unacknowledged messages."""
    turns = turns_by_priority(queue) if consumer.browse_only else {}
    queue.consumers.remove(consumer)
    queue.count_consumer(consumer, -1)
    if not consumer.browse_only:
        consumer_left(queue, consumer)
    arrange(queue, turns)


def share_groups_anew(queue: Queue) -> None:
    """Releases all groups after a consumer was added (group-rebalance); the pause option closes the gate as well."""
    groups = queue.groups
    if groups is not None:
        queue.rewind(groups.release_all())
    special = queue.special
    if special is not None and special.gate is not None:
        if queue.spec.group_rebalance_pause_dispatch:
            special.gate.close()


def consumer_left(queue: Queue, consumer: QueueConsumer) -> None:
    """Releases the groups of a closed consumer, and its role as the exclusive one."""
    last = queue.consumer_count() == 0
    groups = queue.groups
    if groups is not None:
        queue.rewind(groups.release(consumer))
        if last and queue.message_count == 0 and queue.pending == 0:
            queue.groups = None
            queue.groupable = True
            queue.plain = queue.is_plain()
    special = queue.special
    if special is not None:
        if special.chosen is consumer:
            special.chosen = None
        if last and special.gate is not None:
            special.gate.close()
