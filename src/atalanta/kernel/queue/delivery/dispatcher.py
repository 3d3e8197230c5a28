"""The dispatcher: it delivers the messages of queues to their consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from atalanta.kernel.queue.consumers import arrange
from atalanta.kernel.queue.delivery.delivery_counts import DeliveryCounts
from atalanta.kernel.queue.delivery.expiry_scan import may_expire
from atalanta.kernel.queue.dispatch_gate import TIMER as GATE_TIMER
from atalanta.kernel.queue.message_groups import marked_first
from atalanta.kernel.queue.paging.paged_queue import PagedQueue, paged_queue_of
from atalanta.kernel.queue.priorities import LEVELS, level_of
from atalanta.kernel.queue.reference import DELIVERING, READY

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.last_value_ring import SpecialQueue
    from atalanta.kernel.queue.pending_limit import PendingLimit
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.selector.selector import Filter

# Messages that one queue delivers in one batch of inputs; the next batch continues.
DISPATCH_MAX: Final = 2_000
# References examined in one search for a consumer's next message; the next dispatch examines the rest.
EXAMINED_MAX: Final = 2_000
# Blocks of page files that one dispatch reads to find what waits beyond the limit of a queue.
BLOCKS_A_TURN: Final = 32
# Expired messages that one dispatch finds; moving them is more work than a delivery.
EXPIRED_MAX: Final = 200
# The timer for the end of the longest wait of a queue's drains for credits.
DRAIN_TIMER: Final = "kernel.drain."
# Results of an offer that delivers nothing.
NONE: Final = 0
UNKNOWN: Final = -1


class Dispatcher:
    """Delivers messages. `counts`: by queue id, of the queues with persist-delivery-count-before-delivery."""

    def __init__(self, store: MessageStore, timers: Timers) -> None:
        self.store = store
        self.timers = timers
        self.counts: dict[int, DeliveryCounts] = {}
        self.left: int = 0  # messages that the present dispatch may still deliver

    def store_counts_first(self, queue: Queue) -> None:
        """Makes a durable queue store delivery counts before the delivery, at its creation or recovery."""
        if queue.durable and not queue.internal:
            self.counts[queue.id] = DeliveryCounts(self.store, queue)
            queue.store_counts_first()
            arrange(queue)

    def remove(self, queue: Queue) -> None:
        """Drops the state of a deleted queue."""
        self.counts.pop(queue.id, None)

    # -- one queue ------------------------------------------------------------------------------
    def dispatch(self, now: int, queue: Queue) -> int:
        """Delivers up to DISPATCH_MAX messages; if work is left, the queue is listed for the next dispatch.

        Expired references on the way, about EXPIRED_MAX, are put into `queue.found_expired` for the broker to move.
        Returns the number of messages delivered, or more where selectors have worked.
        """
        self.left = DISPATCH_MAX
        more = self._deliver_ready(queue, now)
        if queue.paged is not None:
            paged = paged_queue_of(queue)
            if paged is not None:
                paged.browsed.clear()
            if not more:
                more = self.store.paging.on_idle(now, queue)
        counts = self._counts_of(queue)
        if more:
            self.store.dispatches.mark_dirty(queue)
        elif queue.aside:
            self._answer_drains(now, queue, counts)
        if counts is not None:
            counts.store_counts()
        special = queue.special
        if special is not None:
            self._arm_gate(now, queue, special)
        limit = queue.pending_limit
        if limit is not None and not more and limit.may_exceed(queue):
            self._limit_pending(now, queue, limit)
        return DISPATCH_MAX - self.left

    def _deliver_ready(self, queue: Queue, now: int) -> bool:
        """Delivers to the consumers round-robin; returns true if work may be left."""
        special = queue.special
        if special is not None:
            _try_gate(queue, special, now)
        counts = self._counts_of(queue)
        if counts is not None:
            counts.deliver_durable()
        if not queue.turns or (queue.paused and queue.alike):
            return False
        now_ms = now // 1_000_000
        if queue.alike and queue.priorities.only >= 0:
            return self._deliver_alike(queue, now_ms)
        while self.left > 0 and len(queue.found_expired) < EXPIRED_MAX:
            start = 0
            result = NONE
            for level, end in enumerate(queue.level_ends):
                result = self._offer(queue, level, start, end, now_ms)
                if result != NONE:
                    break
                start = end
            if result == NONE:
                return False
            if result == UNKNOWN:
                return True
            self.left -= result
        return True

    def _deliver_alike(self, queue: Queue, now_ms: int) -> bool:
        """Delivers each message to the next consumer with credit, in one pass over the list: the usual case."""
        references = queue.references
        size: i64 = len(references)
        index: i64 = queue.index_of(queue.cursor)
        end = min(size, index + 2 * DISPATCH_MAX)
        left: i64 = self.left
        consumers = queue.consumers
        count = len(consumers)
        expired: i64 = 0
        while index < end and left > 0 and expired < EXPIRED_MAX:
            reference = references[index]
            if reference.state != READY:
                index += 1
                continue
            if reference.message.expiration != 0 and _set_aside_if_expired(queue, reference, now_ms):
                expired += 1
            else:
                consumer: QueueConsumer | None = None
                for _ in range(count):
                    turn = queue.level_turns[0] % count
                    queue.level_turns[0] = turn + 1
                    if consumers[turn].ready():
                        consumer = consumers[turn]
                        break
                if consumer is None:
                    self.left = int(left)
                    return False
                queue.cursor = reference.sequence + 1
                self._deliver(queue, consumer, reference)
                left -= 1
            index += 1
        self.left = int(left)
        if index > 0 and index <= size:
            # All before are delivered or finished; a reference given back meanwhile is not skipped.
            passed = references[index - 1].sequence + 1
            if passed > queue.cursor and references[index - 1].state != READY:
                queue.cursor = passed
        return index < size

    def _offer(self, queue: Queue, level: int, start: int, end: int, now_ms: int) -> int:
        """Delivers one message to a ready consumer of turns[start:end]; returns its cost, NONE or UNKNOWN (yet)."""
        count = end - start
        first = queue.level_turns[level] % count
        for _ in range(count):
            turn = queue.level_turns[level] % count
            queue.level_turns[level] = (turn + 1) % count
            consumer = queue.turns[start + turn]
            if not consumer.ready() or (queue.paused and not consumer.browse_only):
                continue
            by_priority = queue.priorities.mixed()
            paged: PagedQueue | None = None
            if queue.paged is not None:
                paged = paged_queue_of(queue)
            reference: Reference | None = None
            in_memory = paged is None or consumer.position < queue.end() or by_priority
            if in_memory or not (consumer.browse_only or queue.keeps_messages):
                if by_priority:
                    reference = _next_by_priority(queue, consumer, now_ms)
                    in_memory = reference is not None or queue.priorities.unfinished
                else:
                    reference = _next(queue, consumer, now_ms)
                    in_memory = reference is not None or consumer.position < queue.end()
            if paged is not None and not in_memory:
                if consumer.browse_only or queue.keeps_messages:
                    reference = paged.browse(consumer, now_ms)
                    if reference is None and consumer.position <= paged.last:
                        return UNKNOWN
            if reference is not None:
                groups = queue.groups
                if (consumer.browse_only and turn != first) or (
                    groups is not None and groups.keeps_turn(reference)
                ):
                    queue.level_turns[level] = first  # the consumer whose turn it is remains the next
                if groups is not None and not consumer.browse_only:
                    consumer = groups.choose(consumer, queue.turns[start:end], reference)
                self._deliver(queue, consumer, reference)
                return _cost(consumer.selector)
            if queue.priorities.unfinished if by_priority else consumer.position < queue.end():
                return UNKNOWN
        return NONE

    def _counts_of(self, queue: Queue) -> DeliveryCounts | None:
        return self.counts.get(queue.id) if queue.counted_first else None

    def _arm_gate(self, now: int, queue: Queue, special: SpecialQueue) -> None:
        """Sets the timer for the end of the gate's delay, after a dispatch."""
        gate = special.gate
        if gate is not None and not gate.is_open and gate.wake_at > now:
            self.timers.set(GATE_TIMER + queue.name, gate.wake_at)

    def _answer_drains(self, now: int, queue: Queue, counts: DeliveryCounts | None) -> None:
        """Answers the drains after a dispatch that left nothing to deliver.

        Drains of consumers that may not have got everything yet continue to wait; for credits until the deadline.
        A JMS client sends credits from another thread: they may arrive behind its drain.
        """
        for consumer, token, deadline in queue.take_drains():
            if consumer.closed:
                continue
            if consumer.blocked or (counts is not None and counts.waits(consumer)):
                queue.drain(consumer, token, deadline)
            elif now < deadline and consumer.awaits_credits():
                queue.drain(consumer, token, deadline)
                self.timers.set(DRAIN_TIMER + queue.name, deadline)
            else:
                consumer.endpoint.drained(consumer, token)

    def _limit_pending(self, now: int, queue: Queue, limit: PendingLimit) -> None:
        """Sets aside what waits beyond the limit; the broker removes it. What is in page files is read for that."""
        topped_up = False
        for consumer in queue.consumers:
            if consumer.endpoint.top_up(consumer):
                topped_up = True
        if topped_up:
            self.store.dispatches.mark_dirty(queue)
            return
        for _ in range(BLOCKS_A_TURN):
            excess = limit.excess(queue)
            if excess <= 0:
                return
            limit.set_aside(queue, excess, now // 1_000_000)
            if queue.paged is None or not self.store.paging.read_next(now, queue):
                return
        self.store.dispatches.mark_dirty(queue)

    # -- one message ----------------------------------------------------------------------------
    def _deliver(self, queue: Queue, consumer: QueueConsumer, reference: Reference) -> None:
        if consumer.browse_only:
            cost = consumer.endpoint.deliver(consumer, reference)
        elif not queue.plain:
            consumer.counts.add_delivered(reference.size, self.store.now)
            cost = self._deliver_specially(queue, consumer, reference)
        else:
            consumer.counts.add_delivered(reference.size, self.store.now)
            reference.state = DELIVERING
            reference.delivery_count += 1
            reference.consumer = consumer
            queue.delivering_count += 1
            consumer.unacknowledged.add(reference)
            cost = consumer.endpoint.deliver(consumer, reference)
        if queue.deliveries is not None:
            queue.deliveries.append((consumer, reference))
        if not consumer.unlimited:
            consumer.credits -= cost

    def _deliver_specially(self, queue: Queue, consumer: QueueConsumer, reference: Reference) -> int:
        """Delivers from a special or non-destructive queue, or one with groups; returns the cost in credits."""
        special = queue.special
        if special is not None:
            if special.record_delivery(consumer):
                arrange(queue)
                if queue.spec.group_first_key is not None:
                    consumer.marked = marked_first(reference.message, queue.spec.group_first_key)
        groups = queue.groups
        if groups is not None:
            queue.rewind(groups.record_delivery(consumer, reference))
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
        counts = self._counts_of(queue)
        if counts is not None and not queue.keeps_messages and counts.defer(consumer, reference):
            cost = reference.size
        else:
            cost = consumer.endpoint.deliver(consumer, reference)
        consumer.marked = None
        return cost


def _try_gate(queue: Queue, special: SpecialQueue, now: int) -> None:
    """Opens the gate before a dispatch, if its conditions are met."""
    gate = special.gate
    if gate is not None and not gate.is_open:
        if gate.try_open(now, queue.consumer_count(), queue.delivering_count):
            arrange(queue)


def _set_aside_if_expired(queue: Queue, reference: Reference, now_ms: int) -> bool:
    """Sets an expired reference aside for the broker, but not while a log-view lease pins the queue.

    What another node may have is sent to it once more.
    """
    if reference.message.expiration > now_ms or queue.active_lease() is not None or not may_expire(reference):
        return False
    queue.set_expired_aside(reference)
    return True


def _cost(selector: Filter | None) -> int:
    return 1 if selector is None else selector.cost


def _next(queue: Queue, consumer: QueueConsumer, now_ms: int) -> Reference | None:
    """Returns the consumer's next message in memory, and moves its position."""
    position = consumer.position
    if not consumer.browse_only and position < queue.cursor:
        position = queue.cursor
    references = queue.references
    index = queue.index_of(position)
    end = len(references)
    selector = consumer.selector
    stop = min(end, index + EXAMINED_MAX // _cost(selector))
    groups = None if consumer.browse_only else queue.groups
    while index < stop:
        reference = references[index]
        index += 1
        if reference.state != READY and not (
            consumer.browse_only and reference.state == DELIVERING
        ):
            continue
        message = reference.message
        if message.expiration != 0 and not consumer.browse_only:
            if _set_aside_if_expired(queue, reference, now_ms):
                if len(queue.found_expired) >= EXPIRED_MAX:
                    stop = index
                continue
        if selector is not None and not selector.matches(message):
            continue
        if groups is not None and not groups.takes(consumer, reference):
            continue
        consumer.position = reference.sequence + 1
        if consumer.shares:
            queue.cursor = consumer.position
        return reference
    consumer.position = references[stop - 1].sequence + 1 if stop else position
    if consumer.shares and consumer.position > queue.cursor:
        queue.cursor = consumer.position
    return None


def _next_by_priority(queue: Queue, consumer: QueueConsumer, now_ms: int) -> Reference | None:
    """Returns the next message as `_next`, the highest priority first; sets `priorities.unfinished` at EXAMINED_MAX.

    Browsers use the same order (QueueBrowserIterator iterates over PriorityLinkedList), and see delivered messages too.
    """
    priorities = queue.priorities
    browsing = consumer.browse_only
    priorities.unfinished = False
    selector = consumer.selector
    cursors = priorities.cursors if consumer.shares else consumer.cursors
    groups = None if browsing else queue.groups
    references = queue.references
    end = len(references)
    examined = 0
    cost = _cost(selector)
    for level in range(LEVELS - 1, -1, -1):
        if priorities.live[level] == 0:
            continue
        start = cursors[level] if browsing else max(cursors[level], priorities.cursors[level])
        index = queue.index_of(start)
        while index < end:
            reference = references[index]
            if examined >= EXAMINED_MAX or len(queue.found_expired) >= EXPIRED_MAX:
                cursors[level] = reference.sequence
                priorities.unfinished = True
                return None
            examined += cost
            index += 1
            message = reference.message
            if level_of(message.priority) != level:
                continue
            if reference.state != READY and not (browsing and reference.state == DELIVERING):
                continue
            if message.expiration != 0 and not browsing:
                if _set_aside_if_expired(queue, reference, now_ms):
                    continue
            if selector is not None and not selector.matches(message):
                continue
            if groups is not None and not groups.takes(consumer, reference):
                continue
            cursors[level] = reference.sequence + 1
            return reference
        cursors[level] = queue.end()
    return None
