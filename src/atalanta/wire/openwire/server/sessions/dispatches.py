"""The messages that are sent to the consumers of one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.delivery.bridge_origin import shown
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.identifiers import MessageId
from atalanta.wire.openwire.conversion.delivered_message import delivered_message, message_id_of
from atalanta.wire.openwire.conversion.message_id import IdTexts
from atalanta.wire.openwire.encoding.structure import EncodeError
from atalanta.wire.openwire.server.sessions.subscription import Delivery

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.sessions.session import Session
    from atalanta.message.message import Message
    from atalanta.wire.openwire.conversion.message_id import Correlations
    from atalanta.wire.openwire.server.advisories.advisories import Advisories
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput
    from atalanta.wire.openwire.server.sessions.pulls import Pulls
    from atalanta.wire.openwire.server.sessions.subscription import (
        SubscribedDestination,
        Subscription,
    )
    from atalanta.wire.wildcard_queues import WildcardQueues

SIZE_BYTES: Final = 4  # before each frame


class Dispatches:
    """Converts and sends messages. The others are what the connections of the node share."""

    def __init__(
        self,
        connection: OpenWireOutput,
        advisories: Advisories,
        pulls: Pulls,
        wildcard_queues: WildcardQueues,
        correlations: Correlations,
    ) -> None:
        self.connection = connection
        self.ids = IdTexts()
        self.advisories = advisories
        self.pulls = pulls
        self.wildcard_queues = wildcard_queues
        self.correlations = correlations
        broker = connection.host.broker
        self.origins = broker.origins
        self.node_id = broker.node_id

    def deliver(
        self,
        kernel: Session,
        consumer: QueueConsumer,
        subscription: Subscription,
        reference: Reference,
        message: Message,
        number: int,
    ) -> Delivery | None:
        """Delivers a message; `number` is that of the delivery at the connection.

        Returns the delivery of a large message, whose body has to be read first.
        """
        part = subscription.parts[consumer.id]
        if self._repeats(subscription, part, reference, message, number):
            return None
        try:
            message_id = message_id_of(message, self.node_id, number, self.ids)
        except Exception as error:  # nothing was changed, whatever it is
            why = f"{error.__class__.__name__}: {error}"
            self.connection.set_aside(kernel, consumer, int(reference.message.id), why)
            return None
        delivery = Delivery(number, part, reference, message_id)
        subscription.hold(delivery)
        large = message.large
        if large is None:
            self.send(kernel, consumer, subscription, delivery, message, message.body)
        elif not self._refuses(kernel, consumer, subscription, delivery, int(large.size)):
            return delivery
        return None

    def _repeats(
        self,
        subscription: Subscription,
        part: SubscribedDestination,
        reference: Reference,
        message: Message,
        number: int,
    ) -> bool:
        """Delivers a message as one before it. Returns False if it has to be converted."""
        connection = self.connection
        if message.large is not None or reference.delivery_count > 1 or connection.gone:
            return False
        format = connection.decoder.format
        pattern = part.patterns.find(format, message)
        if pattern is None:
            return False
        message_id = MessageId(None, pattern.producer_id, int(part.patterns.number), number)
        if not pattern.write(format, connection.out, message, message.body, message_id):
            part.patterns.forget(pattern)
            return False
        subscription.hold(Delivery(number, part, reference, message_id))
        connection.flush_later()
        connection.delivered()
        return True

    def send(
        self,
        kernel: Session,
        consumer: QueueConsumer,
        subscription: Subscription,
        delivery: Delivery,
        message: Message,
        body: bytes,
    ) -> None:
        """Sends a message. One that OpenWire cannot carry to this client goes to the dead-letter address."""
        redeliveries = max(int(delivery.reference.delivery_count) - 1, 0)
        destination = delivery.part.shown(message.address)
        temporary = self.advisories.temporary.kinds
        connection = self.connection
        try:
            if message.special and self.origins.seen:
                message = shown(message)
            made = delivered_message(
                message, body, destination, delivery.message_id, redeliveries, temporary, self.correlations
            )
            topic = delivery.part.topic_of(message.address)
            if topic is not None:
                made.original_destination = topic
        except Exception as error:  # nothing was changed, whatever it is
            self._set_aside(kernel, consumer, subscription, delivery, f"{error.__class__.__name__}: {error}")
            return
        try:
            begin = len(connection.out)
            connection.send_delivery(MessageDispatch(subscription.id, destination, made, redeliveries))
            patterns = delivery.part.patterns
            written = len(connection.out) > begin  # the end of a bridge in this node takes commands, not frames
            if written and redeliveries == 0 and message.large is None and patterns.wants():
                frame = connection.out.getvalue()[begin + SIZE_BYTES :]
                patterns.learn(connection.decoder.format, frame, message, made)
        except EncodeError as unencodable:  # a separate name: mypyc gives each name one type
            self._set_aside(kernel, consumer, subscription, delivery, str(unencodable))

    def _refuses(
        self, kernel: Session, consumer: QueueConsumer, subscription: Subscription, delivery: Delivery, size: int
    ) -> bool:
        """Returns True for a body of so many bytes that no frame to this client has it: it is not read at all."""
        agreed = self.connection.decoder.format.options
        if size <= agreed.frame_bytes_max:
            return False
        why = f"a body of {size} bytes: at most {agreed.frame_bytes_max} are accepted"
        self._set_aside(kernel, consumer, subscription, delivery, why)
        return True

    def _set_aside(
        self, kernel: Session, consumer: QueueConsumer, subscription: Subscription, delivery: Delivery, why: str
    ) -> None:
        """Reports a message that cannot be sent; it goes to the dead-letter address, but not for a browser."""
        subscription.release([delivery])
        self.connection.set_aside(kernel, consumer, int(delivery.reference.message.id), why)
