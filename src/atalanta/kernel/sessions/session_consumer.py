"""The consumer of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.endpoint import Reply
from atalanta.kernel.errors import MAX_CONSUMERS, BrokerError
from atalanta.kernel.publish.redelivery import ADDRESS_DELAY
from atalanta.kernel.queue.consumer import QueueConsumer
from atalanta.kernel.queue.reference import DELIVERING, Reference
from atalanta.kernel.trace import trace_message

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.sessions.services import SessionServices
    from atalanta.kernel.sessions.session import Session
    from atalanta.message.selector.selector import Filter


class SessionConsumer(QueueConsumer):
    """A consumer that a client has in its session; the consumer of a bridge has no session."""

    def __init__(
        self,
        session: Session,
        consumer_id: int,
        queue: Queue,
        selector: Filter | None,
        browse_only: bool,
        priority: int,
        claims: bool = False,
    ) -> None:
        super().__init__(consumer_id, queue, session.endpoint, selector, browse_only, priority)
        self.session = session
        self.reserved_bytes: int = 0
        self._claims: bool = claims

    def claims(self) -> bool:
        return self._claims

    def take_prefetched(self, first_as_delivered: bool) -> list[Reference]:
        """Takes the unacknowledged messages, as if they were not delivered, maybe but for the first.

        A large message that is being sent is delivered again from its beginning. Messages of a non-destructive queue
        stay in it, and the consumer gets them again.
        """
        if self.stream is not None:
            self.stream.abort()
        prefetched = self.unacknowledged.take_all()
        if self.queue.keeps_messages:
            for reference in prefetched:
                self.rewind(reference.sequence)
            return []
        for reference in prefetched[1 if first_as_delivered else 0 :]:
            reference.uncount_delivery()
        return prefetched

    def remove(self, now: int, services: SessionServices, failed: bool) -> None:
        """Closes the consumer and removes it from its queue. Its messages return to the queue.

        They count as delivered if the connection was lost (`failed`). A transient queue is deleted after its last
        consumer.
        """
        queue = self.queue
        self.close()
        client = self.session.client
        client.consumer_memory.release(self.reserved_bytes)
        if self.stream is not None:
            self.stream.abort()
        held = self.unacknowledged.take_all()
        if queue.deleted:
            return
        services.queue_registry.remove_consumer(now, queue, self)
        if services.trace.on:
            for reference in held:
                if reference.state == DELIVERING:
                    trace_message(services.trace, "trace_given_back", reference.message, queue.name)
        services.redelivery.redeliver(now, held, False, ADDRESS_DELAY, failed)
        services.dispatches.mark_dirty(queue)
        if queue.consumer_count() > 0:
            return
        if queue.spec.transient:
            services.queue_registry.delete(now, queue.name, "last consumer left")
        elif queue.spec.purge_on_no_consumers:
            services.mover.purge(queue, "purged without consumers")


class LaterDrain(Reply):
    """A drain of a consumer that waits for the journal as a reply does."""

    def __init__(self, consumer: SessionConsumer, deadline: int) -> None:
        self.consumer = consumer
        self.deadline = deadline

    def done(self, token: int) -> None:
        consumer = self.consumer
        if not consumer.closed:
            services = consumer.session.services
            consumer.queue.drain(consumer, token, self.deadline)
            services.dispatches.mark_dirty(consumer.queue)

    def failed(self, token: int, error: BrokerError) -> None:
        return None


def check_consumer_allowed(now: int, queue: Queue) -> None:
    """Raises BrokerError FENCED or MAX_CONSUMERS if the queue takes no further consumer."""
    lease = queue.active_lease()
    if lease is not None:
        raise lease.refuse(now, queue.name)
    limit = queue.spec.max_consumers
    if 0 <= limit <= queue.consumer_count():
        raise BrokerError(MAX_CONSUMERS, f"AMQ229200: queue {queue.name} already has {limit} consumers")
