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
from atalanta.wire.stomp.credits import begin_credits
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
    from atalanta.wire.stomp.acceptor import StompAcceptor
    from atalanta.wire.stomp.destination import Destination
    from atalanta.wire.stomp.output import StompOutput
    from atalanta.wire.stomp.subscription import Part, Subscription
    from atalanta.wire.wildcard_queues import WildcardQueues

# Receipts that wait for the disk before no more is read from the client, and when it is read again.
RECEIPTS_MAX: Final = 1_000
RECEIPTS_LOW: Final = 500
END_OF_FRAME: Final = b"\x00\n"
REFUSALS_MAX: Final = 10_000  # of one transaction
MESSAGE_ID_MAX: Final = (1 << 63) - 1
LANES_KEPT: Final = 1_000  # before those in which nothing waits any more are forgotten


class StompTransaction:
    """A transaction between BEGIN and COMMIT or ABORT. NACKs take effect at the commit.

    A refused message that goes to the dead-letter address does so in the record of the commit (`dead_letters`). The
    others return to their queues behind it: after a crash in between they are there all the same. `refusals`: the part
    of a subscription, message id, and whether the message goes to the dead-letter address whatever the number of
    attempts. `single`: a NACK is of one message, also in the mode client. `lane`: where its messages wait for room.
    """

    def __init__(self, transaction: SessionTransaction, single: bool) -> None:
        self.transaction = transaction
        self.single = single
        self.lane: str = ""
        self.refusals: list[tuple[Part, int, bool]] = []
        self.dead_letters: list[tuple[Part, int]] = []
        self._acknowledged: dict[tuple[int, int], bool] = {}  # consumer, message: the first ones of the transaction
        self._examined: int = 0

    def has_acknowledged(self, part: Part, message_id: int) -> bool:
        """Returns True for a message that an acknowledgement of this transaction has taken."""
        taken = self.transaction.acknowledged
        while self._examined < len(taken):
            reference = taken[self._examined]
            self._examined += 1
            if reference.consumer is not None:
                self._acknowledged[(reference.consumer.id, int(reference.message.id))] = True
        return (part.number, message_id) in self._acknowledged

    def refuse(self, part: Part, message_id: int, rejected: bool) -> None:
        """Records a NACK. BrokerError if there are too many."""
        if len(self.refusals) >= REFUSALS_MAX:
            raise BrokerError(ILLEGAL_STATE, f"a transaction has at most {REFUSALS_MAX} NACKs")
        self.refusals.append((part, message_id, rejected))

    def take_dead_letters(self, session: Session, now: int) -> None:
        """Makes dead letters a part of the transaction, before its commit."""
        left: list[tuple[Part, int, bool]] = []
        for part, message_id, rejected in self.refusals:
            subscription = part.subscription
            cumulative = subscription.cumulative and not self.single
            for each, number in subscription.through(part, message_id, cumulative):
                if self._dead_letter(session, now, each, number, rejected):
                    self.dead_letters.append((each, number))
                else:
                    left.append((each, number, rejected))
        self.refusals = left

    def _dead_letter(
        self, session: Session, now: int, part: Part, message_id: int, rejected: bool
    ) -> bool:
        """Makes the move of a message to the dead-letter address a part of the transaction, if it goes there."""
        consumer = session.consumers.get(part.number)
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
    """The session of a connection. `names`: its destinations. `subscriptions` by the client's key, `parts` by number.

    `classic`: what the acceptor's option `stompClassic` says. `copies`: the token of a message with several
    destinations -> those that are not confirmed, if they are more than one. `unconfirmed`: the token of a SUBSCRIBE ->
    the subscription that waits for it. `lanes`: destination -> the lane of `waiting` where messages for it wait, or
    have waited.
    """

    def __init__(
        self, connection: StompOutput, names: Destinations, options: StompAcceptor, wildcard_queues: WildcardQueues
    ) -> None:
        super().__init__(connection)
        self.connection = connection
        self.names = names
        self.options = options
        self.classic: bool = options.classic
        self.wildcard_queues = wildcard_queues
        self.subscriptions: dict[str, Subscription] = {}
        self.parts: dict[int, Part] = {}
        self.transactions: dict[str, StompTransaction] = {}
        self.receipts: dict[int, str] = {}
        self.copies: dict[int, int] = {}
        self.unconfirmed: dict[int, Subscription] = {}
        self.lanes: dict[str, str] = {}
        self.last_lane: int = 0
        self.last_token: int = 0
        self.last_consumer: int = 0
        self.last_receipt: int = 0  # that of DISCONNECT; 0: it has not come
        self.too_many_receipts: bool = False

    def has_queue(self, name: str) -> bool:
        """Returns True if the queue exists."""
        return name in self.kernel.services.queue_registry.by_name

    def take_consumer_number(self) -> int:
        """Returns the number of a new consumer."""
        self.last_consumer += 1
        return self.last_consumer

    def add_part(self, part: Part) -> None:
        """Adds a part of a subscription, before the kernel's consumer is created."""
        part.subscription.add_part(part)
        self.parts[part.number] = part

    def remove_part(self, part: Part) -> None:
        """Removes a part of a subscription."""
        part.subscription.remove_part(part.number)
        self.parts.pop(part.number, None)

    @property
    def publisher(self) -> Publisher:
        return self.kernel.services.publisher

    def take_lane(
        self, known: str | None, destinations: list[Destination], transaction: StompTransaction | None
    ) -> str:
        """Returns the lane for a message that is to wait: `known`, or a new one. What follows it finds that lane."""
        lane = known
        if lane is None:
            self.last_lane += 1
            lane = str(self.last_lane)
        if len(self.lanes) >= LANES_KEPT:
            self.lanes = {name: each for name, each in self.lanes.items() if each in self.waiting.lanes}
        for destination in destinations:
            if self.lanes.get(destination.name, "") not in self.waiting.lanes:
                self.lanes[destination.name] = lane
        if transaction is not None:
            transaction.lane = lane
        return lane

    # -- answers --------------------------------------------------------------------------------
    def token_for(self, receipt: str | None, copies: int = 1) -> int:
        """Returns the token of a request that is confirmed so many times; SILENT if the client wants no receipt."""
        if receipt is None:
            return SILENT
        self.last_token += 1
        if copies > 1:
            self.copies[self.last_token] = copies
        self.receipts[self.last_token] = receipt
        if self._receipts_at_disk() >= RECEIPTS_MAX and not self.too_many_receipts:
            self.too_many_receipts = True
            self.hold_input()
        return self.last_token

    def _receipts_at_disk(self) -> int:
        """Returns how many receipts wait for the disk: the others wait for room, and have limits of their own."""
        return len(self.receipts) - self.waiting.count

    def done(self, token: int) -> None:
        if self.copies and token in self.copies:
            left = self.copies.pop(token) - 1
            if left > 0:
                self.copies[token] = left
                return
        receipt = self.receipts.pop(token, None)
        connection = self.connection
        if receipt is None or connection.gone:
            return
        connection.send_frame("RECEIPT", [("receipt-id", receipt)])
        if self.unconfirmed:
            self._begin(self.unconfirmed.pop(token, None))
        if self.too_many_receipts and self._receipts_at_disk() <= RECEIPTS_LOW:
            self.too_many_receipts = False
            self.release_input()
        if token == self.last_receipt:
            connection.close_soon()

    def confirm_later(self, subscription: Subscription, token: int) -> None:
        """Sends the RECEIPT of a SUBSCRIBE once all so far is on disk; its messages follow."""
        if not subscription.confirmed:
            self.unconfirmed[token] = subscription
        self.done_when_durable(token)

    def _begin(self, subscription: Subscription | None) -> None:
        """Begins the deliveries of a subscription that is confirmed now."""
        if subscription is not None and not self.kernel.closed:
            subscription.confirm()
            for part in subscription.parts.values():
                begin_credits(self, part)

    def failed(self, token: int, error: BrokerError) -> None:
        self.waiting.clear()  # what follows was sent in the belief that this succeeds
        self.connection.refuse(error.text, self.receipts.pop(token, None))

    def done_when_durable(self, token: int) -> None:
        """Sends the receipt once all records so far are on disk."""
        if token != SILENT:
            self.publisher.store.reply_when_all_is_durable(self, token)

    # -- deliveries -----------------------------------------------------------------------------
    def deliver(self, consumer: QueueConsumer, reference: Reference) -> int:
        message = reference.message
        connection = self.connection
        part = self.parts[consumer.id]
        subscription = part.subscription
        head = data = b""
        try:
            if consumer.marked is not None:
                message = consumer.marked
            if message.special and self.publisher.origins.seen:
                message = shown(message)
            headers = self._headers(part, reference, message)
            if message.large is None:
                head, data = self._encoded(headers, message)
        except Exception as error:  # nothing was written, whatever it is
            why = f"{error.__class__.__name__}: {error}"
            connection.set_aside(self.kernel, consumer, int(reference.message.id), why)
            return 0
        if message.large is not None:
            return self._deliver_large(part, consumer, reference, message, message.large, headers)
        out = connection.writer()
        out.write(head)
        out.write(data)
        out.write(END_OF_FRAME)
        connection.delivered()
        if subscription.automatic:
            if not subscription.browser:
                acknowledge_delivered(self.kernel, consumer, reference)
            return 0
        if subscription.ordered:
            subscription.add_delivery(part.number, int(message.id))
        return part.window.cost(int(message.id), len(head) + len(data))

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
        self, part: Part, reference: Reference, message: Message
    ) -> list[tuple[str, str]]:
        """Returns the headers of the MESSAGE frame but for those of its body."""
        subscription = part.subscription
        message_id = f"{part.number},{message.id}"
        headers = [("destination", part.destination.shown(message.address)), ("message-id", message_id)]
        if subscription.id is not None:
            headers.append(("subscription", subscription.id))
        if self.connection.version == V12 and not subscription.automatic:
            headers.append(("ack", message_id))
        headers.extend(message_headers(message, reference.delivery_count, self.names, self.classic))
        return headers

    def _deliver_large(
        self,
        part: Part,
        consumer: QueueConsumer,
        reference: Reference,
        message: Message,
        body: LargeBody,
        headers: list[tuple[str, str]],
    ) -> int:
        cost = 0
        subscription = part.subscription
        if not subscription.automatic:
            if subscription.ordered:
                subscription.add_delivery(part.number, int(message.id))
            cost = part.window.cost(int(message.id), body.size)
        automatic = subscription.automatic and not subscription.browser
        LargeDelivery(self.kernel, self.connection, consumer, reference, message, body, headers, automatic).begin()
        return cost

    def drained(self, consumer: QueueConsumer, token: int) -> None:
        """Ends a browser: it gets nothing that comes later."""
        part = self.parts.get(consumer.id)
        if part is None or not part.subscription.browser:
            return
        if consumer.credits <= 0 and not consumer.unlimited:  # the client's window is used up: there may be more
            part.drain_again(True)
            return
        part.end_browsing()
        consumer.add_credits(0)
        if part.subscription.is_browsed():
            self.end_browser(part.subscription)

    def report_left_out(self, queue: str, error: BrokerError) -> None:
        """Reports a queue that matches the wildcards of a subscription, but cannot be consumed."""
        news = self.wildcard_queues.is_news(self.kernel.identity.user, queue, error.text)
        self.connection.left_out(queue, error, news)

    def end_browser(self, subscription: Subscription) -> None:
        """Sends the end of a browser, as ActiveMQ Classic does: a message without a body."""
        headers = [("destination", subscription.text), ("message-id", "0"), ("browser", "end")]
        if subscription.id is not None:
            headers.append(("subscription", subscription.id))
        self.connection.send_frame("MESSAGE", headers)

    def consumer_gone(self, consumer: QueueConsumer, why: str) -> None:
        self.kernel.consumers.pop(consumer.id, None)
        part = self.parts.get(consumer.id)
        name = ""
        if part is not None:
            self.remove_part(part)
            if part.matched:
                return
            name = f" to {part.destination.name}"
        self.connection.refuse(f"the subscription{name} has ended: {why}", None)

    def cut_off(self, why: str) -> None:
        frame = self.connection.processed
        self.connection.refuse(why, None if frame is None else frame.get("receipt"))

    # -- the end --------------------------------------------------------------------------------
    def leave(self) -> None:
        """Ends what the kernel does not know of: no queue is added to a subscription any more."""
        for key in self.subscriptions:
            self.wildcard_queues.unwatch(self.kernel.identity, self.connection.conn, key)

    def ended_by_operator(self, now: int) -> None:
        self.leave()
        self.kernel.close(now, True)
        self.connection.refuse("an operator has closed the session", None)

    def disconnect(self, now: int, receipt: str | None) -> None:
        """Processes DISCONNECT: the connection closes once everything of the client is on disk.

        In Classic, messages that it holds count as delivered; in Artemis the oldest one of each consumer does
        (StompProtocolManager.cleanup).
        """
        self.leave()
        if not self.classic:
            self.kernel.roll_back(now, self.kernel.transaction, True)
        self.kernel.close(now, self.classic)
        self.connection.leave("the client disconnected")
        if receipt is None:
            self.connection.close_soon()
        else:
            self.last_receipt = self.token_for(receipt)
            self.done_when_durable(self.last_receipt)

    def delivered_as(self, message_id: str) -> tuple[Part, int]:
        """Returns the part of a subscription and the kernel's id of the message `message_id`. BrokerError."""
        number, comma, rest = message_id.partition(",")
        if comma and number.isdecimal() and rest.isdecimal() and len(message_id) < 40:
            part = self.parts.get(int(number))
            if part is not None and int(rest) <= MESSAGE_ID_MAX:
                return part, int(rest)
        raise BrokerError(ILLEGAL_STATE, f"message {message_id[:40]!r} is not delivered to any subscription")
