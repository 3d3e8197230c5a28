"""The limit of messages that wait for a slow subscriber beyond its prefetch, as in ActiveMQ Classic.

Only queues that are not durable subscriptions have one (pending-message-limit). It is looked at behind the dispatch, so
that consumers have got what their credits allow. What is beyond it is set aside, and leaves the queue
(kernel/publish/surplus_messages.py). Other queues pay one check for each dispatch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.reference import READY
from atalanta.kernel.queue.spec import MULTICAST

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.kernel.settings.address_settings import AddressSettings

# The values of pending-message-eviction beside 0, the oldest.
LOWEST_PRIORITY: Final = 1
SAME_PROPERTY: Final = 2
EXPIRED_LOOK_MS: Final = 1_000  # between two searches for expired messages, which go first


class PendingLimit:
    """The limit of one queue: `most` messages wait, -1: any number, which `rate` times the prefetch replaces.

    `found`: references that are set aside. `told`: it was reported that the queue drops messages.
    """

    def __init__(self, most: int, rate: float, eviction: int, property_name: str) -> None:
        self.most = most
        self.rate = rate
        self.eviction = eviction
        self.property_name = property_name
        self.found: list[Reference] = []
        self.looked_ms: int = 0
        self.told: bool = False

    def take_consumer(self, prefetch: int, wanted: int) -> None:
        """Takes the prefetch of a consumer, and the lower limit that it wants for itself; 0: none."""
        if self.rate >= 0:
            self.most = int(self.rate * prefetch)
        if wanted > 0 and (self.most < 0 or wanted < self.most):
            self.most = wanted

    def may_exceed(self, queue: Queue) -> bool:
        """Returns true if more messages wait than the limit, consumers' credits not counted."""
        return self.most >= 0 and waiting(queue) > self.most and not queue.paused

    def excess(self, queue: Queue) -> int:
        """Returns how many messages wait beyond the limit and what consumers may still get (0 or less: none)."""
        excess = waiting(queue) - self.most
        for consumer in queue.consumers:
            if excess > 0 and not consumer.browse_only:
                excess -= _room(queue, consumer)
        return excess

    def set_aside(self, queue: Queue, excess: int, now_ms: int) -> None:
        """Sets so many messages aside, expired ones first; those are with the queue's expired ones."""
        if now_ms >= self.looked_ms + EXPIRED_LOOK_MS:
            self.looked_ms = now_ms
            excess -= _set_expired_aside(queue, now_ms)
        if excess <= 0:
            return
        if self.eviction == SAME_PROPERTY:
            chosen = self._replaced(queue, excess)
        elif self.eviction == LOWEST_PRIORITY and queue.priorities.mixed():
            chosen = sorted(_ready(queue, -1), key=_priority)[:excess]
        else:
            chosen = _ready(queue, excess)
        for reference in chosen:
            queue.reserve(reference, reference.delivery_count)
        self.found.extend(chosen)

    def is_news(self) -> bool:
        """Returns true once: it is to be reported that the queue drops messages."""
        news = not self.told
        self.told = True
        return news

    def take_found(self) -> list[Reference]:
        """Returns and forgets the references that are set aside."""
        found = self.found
        self.found = []
        return found

    def _replaced(self, queue: Queue, excess: int) -> list[Reference]:
        """Returns all messages but the newest for each value of the property; the oldest if all differ
        (UniquePropertyMessageEvictionStrategy)."""
        ready = _ready(queue, -1)
        newest: dict[str, Reference] = {}
        for reference in ready:
            value = reference.message.property_value(self.property_name)
            if value is not None:
                newest[str(value)] = reference
        if not newest or len(newest) == len(ready):
            return ready[:excess]
        kept = {reference.sequence: True for reference in newest.values()}
        replaced = [reference for reference in ready if reference.sequence not in kept]
        missing = excess - len(replaced)
        if missing > 0:
            replaced.extend([reference for reference in ready if reference.sequence in kept][:missing])
        return replaced


def pending_limit_of(spec: QueueSpec, settings: AddressSettings) -> PendingLimit | None:
    """Returns the limit of a new queue; None unless it is a subscription that is not durable, of an address with one.
    """
    most, rate = settings.pending_message_limit, settings.pending_message_prefetch_rate
    if (most < 0 and rate < 0) or spec.durable or spec.internal or spec.routing_type != MULTICAST:
        return None
    property_name = settings.pending_message_eviction_property or ""
    return PendingLimit(most, rate, settings.pending_message_eviction, property_name)


def waiting(queue: Queue) -> int:
    """Returns the number of messages that wait for a consumer, in memory and in page files."""
    return queue.message_count - queue.delivering_count - queue.scheduled_count


def _room(queue: Queue, consumer: QueueConsumer) -> int:
    """Returns how many messages a consumer may still get; with credits in bytes, messages of the usual size.

    One without flow control gets everything, unless its connection takes no more: then it has its window before it.
    """
    if consumer.unlimited:
        return consumer.prefetch if consumer.counts_messages else queue.message_count
    if consumer.credits <= 0 or consumer.counts_messages:
        return max(0, consumer.credits)
    return consumer.credits * queue.message_count // max(1, queue.bytes)


def _ready(queue: Queue, most: int) -> list[Reference]:
    """Returns the oldest messages in memory that wait, up to `most`; -1: all."""
    found: list[Reference] = []
    index = queue.skip_taken()
    references = queue.references
    while index < len(references) and len(found) != most:
        reference = references[index]
        index += 1
        if reference.state == READY:
            found.append(reference)
    return found


def _set_expired_aside(queue: Queue, now_ms: int) -> int:
    """Sets the expired messages aside; returns their number."""
    found = 0
    for reference in _ready(queue, -1):
        if 0 < reference.message.expiration <= now_ms:
            queue.set_expired_aside(reference)
            found += 1
    return found


def _priority(reference: Reference) -> int:
    return int(reference.message.priority)
