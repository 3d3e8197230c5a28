"""The kernel's side of a bridge: an endpoint with one consumer and no replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.queue.consumer import DeliveryEndpoint, QueueConsumer
from atalanta.kernel.queue.consumers import add_consumer, remove_consumer
from atalanta.kernel.queue.reference import DELIVERING, Reference
from atalanta.kernel.trace import trace_message

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.queue.delivery.dispatch_list import DispatchList
    from atalanta.kernel.queue.queue import Queue
    from atalanta.message.selector.selector import Filter


class BridgeEndpoint(DeliveryEndpoint):
    """The endpoint of a bridge. `take` gets each message of the queue and returns its cost in credits."""

    def __init__(
        self, take: Callable[[Reference], int], dispatches: DispatchList, trace: Trace
    ) -> None:
        self.take = take
        self.dispatches = dispatches
        self.trace = trace

    def consumer_of(self, queue: Queue, selector: Filter | None = None) -> QueueConsumer:
        """Returns a consumer of the queue, to be attached."""
        return QueueConsumer(0, queue, self, selector, False, 0)

    def attach(self, consumer: QueueConsumer, window_bytes: int) -> None:
        """Adds the consumer to its queue, with credits for `window_bytes`."""
        consumer.show_started(True, False)
        consumer.add_credits(window_bytes)
        add_consumer(consumer.queue, consumer)
        self.dispatches.mark_dirty(consumer.queue)

    def detach(self, consumer: QueueConsumer) -> None:
        """Removes the consumer, and returns its unfinished messages to the queue, to be sent again."""
        consumer.close()
        queue = consumer.queue
        if consumer in queue.consumers:
            remove_consumer(queue, consumer)
        held = consumer.unacknowledged.values()
        consumer.unacknowledged.clear()
        for reference in held:
            self._give_back(queue, reference)
        self.dispatches.mark_dirty(queue)

    def give_back(self, consumer: QueueConsumer, references: list[Reference]) -> None:
        """Returns messages that were not sent to the queue; the consumer stays."""
        for reference in references:
            consumer.unacknowledged.pop(reference.message.id)
            self._give_back(consumer.queue, reference)
        self.dispatches.mark_dirty(consumer.queue)

    def _give_back(self, queue: Queue, reference: Reference) -> None:
        """Returns one message to the queue; a failed attempt of a bridge is no delivery (BridgeImpl.cancelRefs)."""
        if reference.state == DELIVERING:
            reference.uncount_delivery()
            queue.give_back(reference)
            if self.trace.on:
                trace_message(self.trace, "trace_given_back", reference.message, queue.name)

    def deliver(self, consumer: QueueConsumer, reference: Reference) -> int:
        return self.take(reference)

    def drained(self, consumer: QueueConsumer, token: int) -> None:
        return None

    def done(self, token: int) -> None:
        return None

    def failed(self, token: int, error: BrokerError) -> None:
        return None

    def consumer_gone(self, consumer: QueueConsumer, why: str) -> None:
        consumer.close()
