"""persist-delivery-count-before-delivery: a message goes to its consumer when the journal knows of the delivery.

So a crash while it is under way counts as a delivery, and what a consumer may have seen is never shown as new.
(ServerConsumerImpl.handle writes the record before it delivers, and does not wait for the disk.) As there, this is for
durable messages of durable queues; what was prefetched and comes back unread is counted out again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import Reply
from atalanta.kernel.queue.consumers import arrange
from atalanta.kernel.queue.reference import DELIVERING

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message

UNWRITTEN: Final = 1 << 62


class Counted:
    """One delivery that waits. `reserved`: what of the consumer's credits it has taken so far."""

    def __init__(self, consumer: Consumer, reference: Reference, marked: Message | None) -> None:
        self.consumer = consumer
        self.reference = reference
        self.marked = marked
        self.reserved: int = reference.size
        self.lsn: int = UNWRITTEN if reference.durable else 0
        self.over: bool = False

    def is_current(self) -> bool:
        """False once the message was given back, or has ended."""
        reference = self.reference
        return (
            not self.over
            and reference.state == DELIVERING
            and reference.consumer is self.consumer
            and not self.consumer.closed
        )


class Counting(Reply):
    """Of one queue: deliveries to each consumer in their order, `by_reference` the latest of each message. `new` ones
    have no record yet. What nobody can take yet costs nothing: only the first of each consumer is looked at."""

    def __init__(self, store: MessageStore, queue: Queue) -> None:
        self.store = store
        self.queue = queue
        self.waiting: dict[Consumer, deque[Counted]] = {}
        self.by_reference: dict[Reference, Counted] = {}
        self.new: list[Counted] = []
        self.durable: int = 0

    def holds(self, consumer: Consumer, reference: Reference) -> bool:
        """The reference is the consumer's; whether it goes out later. `consumer.marked` is kept for then."""
        if not reference.durable and not self.waits(consumer):
            return False
        before = self.by_reference.get(reference)
        if before is not None:
            self._end(before)
        counted = Counted(consumer, reference, consumer.marked)
        self.by_reference[reference] = counted
        line = self.waiting.get(consumer)
        if line is None:
            line = deque()
            self.waiting[consumer] = line
        line.append(counted)
        if reference.durable:
            self.new.append(counted)
        return True

    def waits(self, consumer: Consumer) -> bool:
        """Whether something is on its way to the consumer."""
        line = self.waiting.get(consumer)
        return line is not None and self._first(consumer, line) is not None

    def _first(self, consumer: Consumer, line: deque[Counted]) -> Counted | None:
        """The next that the consumer is to get; those before it that were given back are forgotten."""
        while line:
            counted = line[0]
            if counted.is_current():
                return counted
            line.popleft()
            self._end(counted)
        self.waiting.pop(consumer, None)
        return None

    def _end(self, counted: Counted) -> None:
        """It goes out, or does not any more: its credits are the consumer's again."""
        if counted.over:
            return
        counted.over = True
        del self.by_reference[counted.reference]
        if not counted.consumer.unlimited:
            counted.consumer.credits += counted.reserved

    def store_counts(self) -> None:
        """Stores the counts of what the dispatch chose, after it."""
        new = self.new
        if not new:
            return
        self.new = []
        for counted in new:
            if counted.is_current():
                self.store.store_delivery_count(counted.reference, 0)
            counted.lsn = self.store.journal.last
        self.store.reply_when_durable(self.store.journal.last, self, 0)

    def done(self, token: int) -> None:
        """Records are on disk."""
        self.durable = self.store.journal.durable
        self.store.dispatches.mark_dirty(self.queue)

    def hand_over(self) -> None:
        """Before a round: what is on disk goes to those who can take it, to each in its order."""
        for consumer, line in list(self.waiting.items()):
            counted = self._first(consumer, line)
            while counted is not None and counted.lsn <= self.durable and consumer.started:
                line.popleft()
                self._end(counted)
                consumer.marked = counted.marked
                cost = consumer.endpoint.deliver(consumer, counted.reference)
                consumer.marked = None
                if not consumer.unlimited:
                    consumer.credits -= cost
                counted = self._first(consumer, line)


def begin(store: MessageStore, queue: Queue) -> None:
    """The queue, new or found in the journal, counts deliveries before they go out, if it is durable."""
    if queue.durable and not queue.internal:
        queue.counting = Counting(store, queue)
        queue.plain = False
        arrange(queue)
