"""persist-delivery-count-before-delivery: a message goes to its consumer after the journal has its delivery count.

A crash during the delivery then counts as a delivery, and a message that a consumer may have seen is never shown as
new. (ServerConsumerImpl.handle writes the record before the delivery, and does not wait for the disk.) As in Artemis,
this is for durable messages of durable queues. A prefetched message that returns unread is counted out again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import Reply
from atalanta.kernel.queue.reference import DELIVERING

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message

UNWRITTEN: Final = 1 << 62


class CountedDelivery:
    """A delivery that waits for its record. `reserved`: the part of the consumer's credits that it has taken."""

    def __init__(self, consumer: QueueConsumer, reference: Reference, marked: Message | None) -> None:
        self.consumer = consumer
        self.reference = reference
        self.marked = marked
        self.reserved: int = reference.size
        self.lsn: int = UNWRITTEN if reference.durable else 0
        self.over: bool = False

    def is_current(self) -> bool:
        """Returns false once the message was given back or finished."""
        reference = self.reference
        return (
            not self.over
            and reference.state == DELIVERING
            and reference.consumer is self.consumer
            and not self.consumer.closed
        )


class DeliveryCounts(Reply):
    """The waiting deliveries of one queue: to each consumer in their order, `by_reference` the latest of each message.

    `new` ones have no record yet. Deliveries that wait for credit cost nothing: only each consumer's first is examined.
    """

    def __init__(self, store: MessageStore, queue: Queue) -> None:
        self.store = store
        self.queue = queue
        self.waiting: dict[QueueConsumer, deque[CountedDelivery]] = {}
        self.by_reference: dict[Reference, CountedDelivery] = {}
        self.new: list[CountedDelivery] = []
        self.durable: int = 0

    def defer(self, consumer: QueueConsumer, reference: Reference) -> bool:
        """Takes over the delivery, with `consumer.marked`; returns true if it must wait for the journal."""
        if not reference.durable and not self.waits(consumer):
            return False
        before = self.by_reference.get(reference)
        if before is not None:
            self._end(before)
        counted = CountedDelivery(consumer, reference, consumer.marked)
        self.by_reference[reference] = counted
        line = self.waiting.get(consumer)
        if line is None:
            line = deque()
            self.waiting[consumer] = line
        line.append(counted)
        if reference.durable:
            self.new.append(counted)
        return True

    def waits(self, consumer: QueueConsumer) -> bool:
        """Returns true if a delivery to the consumer waits."""
        line = self.waiting.get(consumer)
        return line is not None and self._first(consumer, line) is not None

    def _first(self, consumer: QueueConsumer, line: deque[CountedDelivery]) -> CountedDelivery | None:
        """Returns the consumer's next delivery; removes those before it that were given back."""
        while line:
            counted = line[0]
            if counted.is_current():
                return counted
            line.popleft()
            self._end(counted)
        self.waiting.pop(consumer, None)
        return None

    def _end(self, counted: CountedDelivery) -> None:
        """Ends a delivery that is sent or void; the consumer gets its credits back."""
        if counted.over:
            return
        counted.over = True
        del self.by_reference[counted.reference]
        if not counted.consumer.unlimited:
            counted.consumer.credits += counted.reserved

    def store_counts(self) -> None:
        """Stores the delivery counts of the deliveries that the dispatch chose."""
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
        """Records that the journal's records are on disk."""
        self.durable = self.store.journal.durable
        self.store.dispatches.mark_dirty(self.queue)

    def deliver_durable(self) -> None:
        """Sends the durable deliveries to the consumers that can take them, to each in its order, before a dispatch."""
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
