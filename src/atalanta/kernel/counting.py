"""persist-delivery-count-before-delivery: a message goes to its consumer when the journal knows of the delivery.

So a crash while it is under way counts as a delivery, and what a consumer may have seen is never shown as new.
(ServerConsumerImpl.handle writes the record before it delivers, and does not wait for the disk.) As there, this is for
durable messages of durable queues; what was prefetched and comes back unread is counted out again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import Endpoint
from atalanta.kernel.finishing import store_delivery_count
from atalanta.kernel.queue_consumers import arrange
from atalanta.kernel.reference import DELIVERING

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.consumer import Consumer
    from atalanta.kernel.message import Message
    from atalanta.kernel.queue import Queue
    from atalanta.kernel.reference import Reference

UNWRITTEN: Final = 1 << 62


class Counted:
    """One delivery that waits. `reserved`: what of the consumer's credits it has taken so far."""

    def __init__(self, consumer: Consumer, reference: Reference, marked: Message | None) -> None:
        self.consumer = consumer
        self.reference = reference
        self.marked = marked
        self.reserved: int = reference.size
        self.lsn: int = UNWRITTEN if reference.durable else 0

    def is_current(self) -> bool:
        """False once the message was given back, or has ended."""
        reference = self.reference
        return (
            reference.state == DELIVERING
            and reference.consumer is self.consumer
            and not self.consumer.closed
        )


class Counting(Endpoint):
    """Of one queue: deliveries in their order. `new` of them have no record yet."""

    def __init__(self, broker: Broker, queue: Queue) -> None:
        self.broker = broker
        self.queue = queue
        self.waiting: dict[Reference, Counted] = {}
        self.new: list[Counted] = []
        self.durable: int = 0

    def holds(self, consumer: Consumer, reference: Reference) -> bool:
        """The reference is the consumer's; whether it goes out later. `consumer.marked` is kept for then."""
        if not reference.durable and not self.waits(consumer):
            return False
        before = self.waiting.pop(reference, None)
        if before is not None:
            _refund(before)
        counted = Counted(consumer, reference, consumer.marked)
        self.waiting[reference] = counted
        if reference.durable:
            self.new.append(counted)
        return True

    def waits(self, consumer: Consumer) -> bool:
        """Whether something is on its way to the consumer."""
        for counted in self.waiting.values():
            if counted.consumer is consumer and counted.is_current():
                return True
        return False

    def store(self) -> None:
        """The round is over: records for what it chose."""
        new = self.new
        if not new:
            return
        self.new = []
        for counted in new:
            if counted.is_current():
                store_delivery_count(self.broker, counted.reference, 0)
            counted.lsn = self.broker.journal.last
        self.broker.reply_when_durable(self.broker.journal.last, self, 0)

    def done(self, token: int) -> None:
        """Records are on disk."""
        self.durable = self.broker.journal.durable
        self.broker.mark_dirty(self.queue)

    def hand_over(self) -> None:
        """Before a round: what is on disk goes to those who can take it, to each in its order."""
        held_up: dict[Consumer, bool] = {}
        for counted in list(self.waiting.values()):
            consumer = counted.consumer
            if not counted.is_current():
                del self.waiting[counted.reference]
                _refund(counted)
                continue
            if counted.lsn > self.durable or not consumer.started or consumer in held_up:
                held_up[consumer] = True
                continue
            del self.waiting[counted.reference]
            _refund(counted)
            consumer.marked = counted.marked
            cost = consumer.endpoint.deliver(consumer, counted.reference)
            consumer.marked = None
            if not consumer.unlimited:
                consumer.credits -= cost


def _refund(counted: Counted) -> None:
    if not counted.consumer.unlimited:
        counted.consumer.credits += counted.reserved


def begin(broker: Broker, queue: Queue) -> None:
    """The queue is new, or was found at the start."""
    if broker.config.persist_delivery_count_before_delivery and queue.durable and not queue.internal:
        queue.counting = Counting(broker, queue)
        queue.plain = False
        arrange(queue)
