"""The kernel's view of a STOMP client: deliveries become MESSAGE frames, answers RECEIPT or ERROR.

Nothing is confirmed before it is durable: a token of the kernel is the number of a receipt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.delivery.bridge_origin import shown
from atalanta.kernel.queue.reference import DELIVERING
from atalanta.message.message import Message
from atalanta.wire.sender_control import SenderControl
from atalanta.wire.stomp.body_text import body_of
from atalanta.wire.stomp.delivered_message import message_headers
from atalanta.wire.stomp.destination import Destinations
from atalanta.wire.stomp.frame import V10, V12, encoded_head
from atalanta.wire.stomp.large_delivery import LargeDelivery, acknowledge_delivered

if TYPE_CHECKING:
    from atalanta.kernel.memory.large_body import LargeBody
    from atalanta.kernel.publish.publisher import Publisher
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.transactions.transaction import SessionTransaction
    from atalanta.wire.stomp.output import StompOutput
    from atalanta.wire.stomp.subscription import Subscription

# Receipts that wait for the disk before no more is read from the client, and when it is read again.
RECEIPTS_MAX: Final = 1_000
RECEIPTS_LOW: Final = 500
END_OF_FRAME: Final = b"\x00\n"
REFUSALS_MAX: Final = 10_000  # of one transaction
MESSAGE_ID_MAX: Final = (1 << 63) - 1


class StompTransaction:
    """A transaction between BEGIN and COMMIT or ABORT. NACKs take effect at the commit.

    A refused message that goes to the dead-letter address does so in the record of the commit (`dead_letters`). The
    others return to their queues behind it: after a crash in between they are there all the same. `refusals`:
    subscription, message id, and whether the message goes to the dead-letter address whatever the number of attempts.
    """

    def __init__(self, transaction: SessionTransaction) -> None:
        self.transaction = transaction
        self.refusals: list[tuple[Subscription, int, bool]] = []
        self.dead_letters: list[tuple[Subscription, int]] = []

    def refuse(self, subscription: Subscription, message_id: int, rejected: bool) -> None:
        """Records a NACK. BrokerError if there are too many."""
        if len(self.refusals) >= REFUSALS_MAX:
            raise BrokerError(ILLEGAL_STATE, f"a transaction has at most {REFUSALS_MAX} NACKs")
        self.refusals.append((subscription, message_id, rejected))

    def take_dead_letters(self, session: Session, now: int) -> None:
        """Makes dead letters a part of the transaction, before its commit."""
        left: list[tuple[Subscription, int, bool]] = []
        for subscription, message_id, rejected in self.refusals:
            for each in subscription.refused_with(message_id):
                if self._dead_letter(session, now, subscription, each, rejected):
                    self.dead_letters.append((subscription, each))
                else:
                    left.append((subscription, each, rejected))
        self.refusals = left

    def _dead_letter(
        self, session: Session, now: int, subscription: Subscription, message_id: int, rejected: bool
    ) -> bool:
        """Makes the move of a message to the dead-letter address a part of the transaction, if it goes there."""
        consumer = session.consumers.get(subscription.consumer_id)
        reference = None if consumer is None else consumer.unacknowledged.get(message_id)
        if consumer is None or reference is None or reference.state != DELIVERING:
            return False
        services = session.services
        if not rejected and not services.redelivery.is_exhausted(reference):
            return False
        consumer.unacknowledged.pop(message_id)
        services.dead_letters.move_with(now, reference, self.transaction)
        return True


class StompSession(SenderControl):
    """The session of a connection. `names`: its destinations. `subscriptions` by the client's id, `consumers` by ours.
    `window_bytes`: what a subscription may hold if its client does not say how much.
    """

    def __init__(self, connection: StompOutput, names: Destinations, window_bytes: int) -> None:
        super().__init__(connection)
        self.connection = connection
        self.names = names
        self.window_bytes = window_bytes
        self.subscriptions: dict[str, Subscription] = {}
        self.consumers: dict[int, Subscription] = {}
        self.transactions: dict[str, StompTransaction] = {}
        self.receipts: dict[int, str] = {}
        self.last_token: int = 0
        self.last_consumer: int = 0
        self.last_receipt: int = 0  # that of DISCONNECT; 0: it has not come
        self.too_many_receipts: bool = False

    def has_queue(self, name: str) -> bool:
        """Returns True if the queue exists."""
        return name in self.kernel.services.queue_registry.by_name

    def take_consumer_number(self) -> int:
        """Returns the number of a new subscription."""
        self.last_consumer += 1
        return self.last_consumer

    @property
    def publisher(self) -> Publisher:
        return self.kernel.services.publisher

    # -- answers --------------------------------------------------------------------------------
    def token_for(self, receipt: str | None) -> int:
        """Returns the token of a request; SILENT if the client wants no receipt."""
        if receipt is None:
            return SILENT
        self.last_token += 1
        self.receipts[self.last_token] = receipt
        if len(self.receipts) >= RECEIPTS_MAX and not self.too_many_receipts:
            self.too_many_receipts = True
            self.hold_input()
        return self.last_token

    def done(self, token: int) -> None:
        receipt = self.receipts.pop(token, None)
        connection = self.connection
        if receipt is None or connection.gone:
            return
        connection.send_frame("RECEIPT", [("receipt-id", receipt)])
        if self.too_many_receipts and len(self.receipts) <= RECEIPTS_LOW:
            self.too_many_receipts = False
            self.release_input()
        if token == self.last_receipt:
            connection.close_soon()

    def failed(self, token: int, error: BrokerError) -> None:
        self.connection.refuse(error.text, self.receipts.pop(token, None))

    def done_when_durable(self, token: int) -> None:
        """Sends the receipt once all records so far are on disk."""
        if token != SILENT:
            self.publisher.store.reply_when_all_is_durable(self, token)

    # -- deliveries -----------------------------------------------------------------------------
    def deliver(self, consumer: QueueConsumer, reference: Reference) -> int:
        message = reference.message
        connection = self.connection
        subscription = self.consumers[consumer.id]
        head = data = b""
        try:
            if consumer.marked is not None:
                message = consumer.marked
            if message.special and self.publisher.origins.seen:
                message = shown(message)
            headers = self._headers(subscription, reference, message)
            if message.large is None:
                head, data = self._encoded(headers, message)
        except Exception as error:  # nothing was written, whatever it is
            why = f"{error.__class__.__name__}: {error}"
            connection.set_aside(self.kernel, consumer, int(reference.message.id), why)
            return 0
        if message.large is not None:
            return self._deliver_large(subscription, consumer, reference, message, message.large, headers)
        out = connection.writer()
        out.write(head)
        out.write(data)
        out.write(END_OF_FRAME)
        connection.delivered()
        if subscription.automatic:
            acknowledge_delivered(self.kernel, consumer, reference)
            return 0
        return subscription.window.cost(int(message.id), len(head) + len(data))

    def _encoded(self, headers: list[tuple[str, str]], message: Message) -> tuple[bytes, bytes]:
        """Returns the head of the MESSAGE frame and its body."""
        body = body_of(message)
        if body.content_type:
            headers = [entry for entry in headers if entry[0] != "content-type"]
            headers.append(("content-type", body.content_type))
        if body.encoding:
            headers.append(("content-encoding", body.encoding))
        version = self.connection.version
        if body.binary or version != V10 or b"\x00" in body.data:
            headers.append(("content-length", str(len(body.data))))
        return encoded_head("MESSAGE", headers, version), body.data

    def _headers(
        self, subscription: Subscription, reference: Reference, message: Message
    ) -> list[tuple[str, str]]:
        """Returns the headers of the MESSAGE frame but for those of its body."""
        message_id = f"{subscription.consumer_id},{message.id}"
        headers = [("destination", subscription.destination.shown(message.address)), ("message-id", message_id)]
        if subscription.id is not None:
            headers.append(("subscription", subscription.id))
        if self.connection.version == V12 and not subscription.automatic:
            headers.append(("ack", message_id))
        headers.extend(message_headers(message, reference.delivery_count, self.names))
        return headers

    def _deliver_large(
        self,
        subscription: Subscription,
        consumer: QueueConsumer,
        reference: Reference,
        message: Message,
        body: LargeBody,
        headers: list[tuple[str, str]],
    ) -> int:
        cost = 0
        if not subscription.automatic:
            cost = subscription.window.cost(int(message.id), body.size)
        LargeDelivery(
            self.kernel, self.connection, consumer, reference, message, body, headers, subscription.automatic
        ).begin()
        return cost

    def drained(self, consumer: QueueConsumer, token: int) -> None:
        """Does nothing: no STOMP client drains."""

    def consumer_gone(self, consumer: QueueConsumer, why: str) -> None:
        subscription = self.consumers.pop(consumer.id, None)
        self.kernel.consumers.pop(consumer.id, None)
        name = "" if subscription is None else f" to {subscription.destination.name}"
        self.connection.refuse(f"the subscription{name} has ended: {why}", None)

    def cut_off(self, why: str) -> None:
        self.connection.refuse(why, None)

    # -- the end --------------------------------------------------------------------------------
    def ended_by_operator(self, now: int) -> None:
        self.kernel.close(now, True)
        self.connection.refuse("an operator has closed the session", None)

    def disconnect(self, now: int, receipt: str | None) -> None:
        """Processes DISCONNECT: the connection closes once everything of the client is on disk."""
        self.kernel.close(now, False)
        self.connection.leave("the client disconnected")
        if receipt is None:
            self.connection.close_soon()
        else:
            self.last_receipt = self.token_for(receipt)
            self.done_when_durable(self.last_receipt)

    def subscription_of(self, message_id: str) -> tuple[Subscription, int]:
        """Returns the subscription and the kernel's id of a message that was delivered as `message_id`. BrokerError."""
        number, comma, rest = message_id.partition(",")
        if comma and number.isdecimal() and rest.isdecimal() and len(message_id) < 40:
            subscription = self.consumers.get(int(number))
            if subscription is not None and int(rest) <= MESSAGE_ID_MAX:
                return subscription, int(rest)
        raise BrokerError(ILLEGAL_STATE, f"message {message_id[:40]!r} is not delivered to any subscription")
