"""A consumer of an OpenWire client: its window, and what was delivered to it and is not acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.fqqn import split_fqqn
from atalanta.wire.openwire.commands.destinations import ActiveMQTopic
from atalanta.wire.openwire.conversion.destination import has_wildcard, of_kind
from atalanta.wire.openwire.conversion.message_id import same_message
from atalanta.wire.openwire.server.sessions.dispatch_pattern import DispatchPatterns

if TYPE_CHECKING:
    from atalanta.kernel.queue.reference import Reference
    from atalanta.wire.openwire.commands.consumers import ConsumerInfo
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import ConsumerId, MessageId

PREFETCH_MAX: Final = 32_767  # of activemq-client
# RemoveInfo.lastDeliveredSequenceId of activemq-client.
NOTHING_DELIVERED: Final = -1
NOT_KNOWN: Final = -2


class SubscribedDestination:
    """One destination of a consumer. `number` is that of the kernel's consumer, `held` counts its deliveries.

    `own_queue` is the queue that ends with the consumer, None if its queue stays. `virtual`: the queue of a virtual
    topic, whose messages say to which topic they were sent.
    """

    def __init__(self, number: int, destination: ActiveMQDestination, own_queue: str | None, virtual: bool) -> None:
        self.number = number
        self.destination = destination
        self.own_queue = own_queue
        self.virtual = virtual
        self.held: int = 0
        self.wildcard: bool = not virtual and has_wildcard(destination.physical_name or "")
        self.patterns = DispatchPatterns()

    def shown(self, address: str) -> ActiveMQDestination:
        """Returns the destination of a message: its true address, if the consumer has named it with wildcards."""
        return of_kind(self.destination.code(), address) if self.wildcard else self.destination

    def topic_of(self, address: str) -> ActiveMQDestination | None:
        """Returns the virtual topic to which a message was sent; None without one, or if it was sent to the queue."""
        return ActiveMQTopic(address) if self.virtual and not split_fqqn(address)[1] else None

    def count(self, change: int) -> None:
        """Counts deliveries that are held, or no more."""
        self.held += change


class Delivery:
    """A delivery that is not acknowledged. `number` is that of the delivery at its connection, in the message id.

    `rolled_back`: the client delivers it again by itself.
    """

    def __init__(self, number: int, part: SubscribedDestination, reference: Reference, message_id: MessageId) -> None:
        self.number = number
        self.part = part
        self.reference = reference
        self.message_id = message_id
        self.rolled_back: bool = False


class Subscription:
    """A consumer. `parts` by the kernel's number: a composite destination has several, each with its own window.

    `held` by number of the delivery, in ascending order. `extension`: messages that the application has, for which the
    client asked for more before it acknowledges them. `pulls`: the client asks for each message (prefetch 0).
    """

    def __init__(self, consumer_id: ConsumerId, info: ConsumerInfo) -> None:
        self.id = consumer_id
        self.info = info
        self.browser: bool = info.browser
        self.browsed: dict[int, bool] = {}  # the parts of a browser, True: it is at its end
        self.prefetch: int = 0
        self.set_prefetch(info.prefetch_size)
        self.extension: int = 0
        self.strict: bool = False
        self.parts: dict[int, SubscribedDestination] = {}
        self._parts_of: dict[ActiveMQDestination, int] = {}
        self.held: dict[int, Delivery] = {}
        self.pull_number: int = 0  # of the latest pull
        self.pulling: bool = False

    def set_prefetch(self, size: int) -> None:
        """Sets the window in messages; a negative one is the largest. Browsers get messages without a pull."""
        self.prefetch = PREFETCH_MAX if size < 0 else min(size, PREFETCH_MAX)
        if self.browser:
            self.prefetch = max(self.prefetch, 1)

    def name(self) -> str:
        """Returns the name that the client consumes, which may be composite or have wildcards."""
        destination = self.info.destination
        return "" if destination is None else destination.physical_name or ""

    def pulls(self) -> bool:
        return self.prefetch == 0

    def drain_later(self, number: int) -> None:
        """Records a part of a browser that has used up its window before its end."""
        self.browsed[number] = False

    def drains_now(self, number: int) -> bool:
        """Returns True, once, for a part that `drain_later` named: it has credits again."""
        if self.browsed.get(number, True):
            return False
        del self.browsed[number]
        return True

    def end_part(self, number: int) -> bool:
        """Records that a part of a browser is at its end; returns True if all are."""
        self.browsed[number] = True
        return list(self.browsed.values()).count(True) == len(self.parts)

    def has_ended(self, number: int) -> bool:
        """Returns whether a part of a browser was at its end."""
        return self.browsed.get(number, False)

    def begin_pull(self, number: int) -> None:
        """Records the pull that waits for a message."""
        self.pull_number = number
        self.pulling = True

    def waits_for(self, number: int) -> bool:
        """Returns True while the pull of that number waits for a message."""
        return self.pulling and self.pull_number == number

    def add_part(self, part: SubscribedDestination) -> None:
        self.parts[part.number] = part
        self._parts_of[part.destination] = part.number

    def remove_part(self, number: int) -> None:
        part = self.parts.pop(number, None)
        if part is not None and self._parts_of.get(part.destination) == number:
            del self._parts_of[part.destination]

    def has_part(self, destination: ActiveMQDestination) -> bool:
        """Returns True if a part has that destination."""
        return destination in self._parts_of

    # -- deliveries -----------------------------------------------------------------------------
    def hold(self, delivery: Delivery) -> None:
        """Records a delivery."""
        self.held[delivery.number] = delivery
        delivery.part.count(1)

    def hold_again(self, deliveries: list[Delivery]) -> None:
        """Records deliveries whose acknowledgement was rolled back, before those that came later."""
        for delivery in deliveries:
            delivery.rolled_back = True
            delivery.part.count(1)
            self.held[delivery.number] = delivery
        self.held = {number: self.held[number] for number in sorted(self.held)}

    def release(self, deliveries: list[Delivery]) -> None:
        """Forgets deliveries: they are acknowledged, or no more with the client."""
        for delivery in deliveries:
            if self.held.pop(delivery.number, None) is not None:
                delivery.part.count(-1)

    def acknowledged(self, count: int) -> None:
        """Ends the extension of the window by as many messages."""
        self.extension = max(self.extension - count, 0)

    def set_strict(self, strict: bool) -> None:
        """Sets whether messages that the application has count for the prefetch until they are acknowledged."""
        self.strict = strict

    def extend(self, count: int) -> None:
        """Extends the window by messages that the application has, at most by those that are held."""
        if self.strict:
            return
        self.extension = min(self.extension + max(count, 0), len(self.held))

    def room(self, part: SubscribedDestination) -> int:
        """Returns how many more messages of the part the client takes."""
        return self.prefetch + self.extension - part.held

    def find(self, message_id: MessageId) -> Delivery | None:
        """Returns the delivery of a message. Clients send the number back; one that does not is searched for."""
        found = self.held.get(message_id.broker_sequence_id)
        if found is not None and same_message(found.message_id, message_id):
            return found
        for delivery in self.held.values():
            if same_message(delivery.message_id, message_id):
                return delivery
        return None

    def range(self, first_id: MessageId | None, last_id: MessageId) -> list[Delivery]:
        """Returns the deliveries from the first to the last; without a first from the oldest. Empty: not delivered."""
        last = self.find(last_id)
        if last is None:
            return []
        if first_id is not None and same_message(first_id, last_id):
            return [last]
        first = None if first_id is None else self.find(first_id)
        if first is last:
            return [last]
        begin = 0 if first is None else first.number
        found: list[Delivery] = []
        for number, delivery in self.held.items():
            if number > last.number:
                break
            if number >= begin:
                found.append(delivery)
        return found

    def uncounted(self, last_delivered: int) -> list[Delivery]:
        """Returns the deliveries that the application has not seen when the consumer closes.

        `last_delivered`: the number of the last one that it has, or what RemoveInfo has instead.
        """
        if last_delivered == NOT_KNOWN:
            return []
        return [
            delivery for number, delivery in self.held.items() if number > last_delivered or delivery.rolled_back
        ]
