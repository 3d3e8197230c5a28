"""The messages that are sent to the consumers of one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.conversion.delivered_message import delivered_message
from atalanta.wire.openwire.encoding.structure import EncodeError

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.sessions.session import Session
    from atalanta.message.message import Message
    from atalanta.wire.openwire.server.advisories.advisories import Advisories
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput
    from atalanta.wire.openwire.server.sessions.pulls import Pulls
    from atalanta.wire.openwire.server.sessions.subscription import Delivery, Subscription
    from atalanta.wire.openwire.server.sessions.wildcard_queues import WildcardQueues


class Dispatches:
    """Converts and sends messages. The others are what the connections of the node share."""

    def __init__(
        self, connection: OpenWireOutput, advisories: Advisories, pulls: Pulls, wildcard_queues: WildcardQueues
    ) -> None:
        self.connection = connection
        self.advisories = advisories
        self.pulls = pulls
        self.wildcard_queues = wildcard_queues
        broker = connection.host.broker
        self.trace = broker.trace
        self.node_id = broker.node_id

    def send(
        self,
        kernel: Session,
        consumer: Consumer,
        subscription: Subscription,
        delivery: Delivery,
        message: Message,
        body: bytes,
    ) -> None:
        """Sends a message. One that OpenWire cannot carry to this client goes to the dead-letter address."""
        redeliveries = max(int(delivery.reference.delivery_count) - 1, 0)
        destination = delivery.part.shown(message.address)
        temporary = self.advisories.temporary.kinds
        try:
            made = delivered_message(message, body, destination, delivery.message_id, redeliveries, temporary)
            self.connection.send_delivery(MessageDispatch(subscription.id, destination, made, redeliveries))
        except EncodeError as error:
            message_id = int(message.id)
            self.trace.event(
                "message_not_convertible",
                {"queue": consumer.queue.name, "message": message_id, "why": str(error)},
            )
            subscription.release([delivery])
            if not consumer.browse_only:
                self.pulls.set_aside(kernel, consumer.id, message_id)
