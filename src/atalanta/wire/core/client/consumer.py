"""The client's consumers: deliveries, byte credits, and the assembly of large messages.

The broker subtracts the size of each whole frame, length included, from a consumer's credits
(PacketImpl.getPacketSize). The client returns credits at half of the window, as messages are taken from the buffer
(ClientConsumerImpl.flowControl).
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.message.codec import decode_header
from atalanta.message.encoding.buffer import Reader
from atalanta.message.message import Message
from atalanta.wire.core.client.errors import (
    ClientError,
    Closed,
    ConnectionLost,
    TransactionRolledBack,
)
from atalanta.wire.core.client.large_message import BodySink, LargeIncoming
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.request import FAIL
from atalanta.wire.core.packet_types import (
    SESS_ACKNOWLEDGE,
    SESS_FLOWTOKEN,
    SESS_INDIVIDUAL_ACKNOWLEDGE,
)
from atalanta.wire.core.packets.consumer import CreateConsumer, ForceConsumerDelivery, Settle
from atalanta.wire.core.packets.query import QueueQueryResponseV3
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.wire.core.client.session import ClientSession

FORCED_DELIVERY: Final = "_hornetq.forced.delivery.seq"
FORCES_MAX: Final = 100
UNLIMITED: Final = -1
CREDITS_MAX: Final = (1 << 31) - 1

# Frames sent for almost every message: length, type, channel, then the fields.
_acknowledge_frame = struct.Struct(">ibqqqB").pack
_credits_frame = struct.Struct(">ibqqi").pack


class Delivery:
    """A delivered message. `error`: the reason why it has no body; `sink`: the receiver of its body."""

    __slots__ = ("consumer", "cost", "delivery_count", "epoch", "error", "message", "sink")

    def __init__(
        self, consumer: ClientConsumer, message: Message, delivery_count: int, cost: int
    ) -> None:
        self.consumer = consumer
        self.message = message
        self.delivery_count = delivery_count
        self.cost = cost
        self.epoch: int = consumer.epoch
        self.error: str | None = None
        self.sink: BodySink | None = None

    @property
    def lost(self) -> bool:
        """True if its connection or transaction ended: the message is in the broker's queue again."""
        return self.epoch != self.consumer.epoch


class ForcedDeliveries:
    """The questions of a consumer whether the broker has a message (SESS_FORCE_CONSUMER_DELIVERY).

    `sequence` is that of the latest one, `reply` what waits for its answer. With `one_is_enough` a message that arrives
    ends the wait, too.
    """

    def __init__(self) -> None:
        self.sequence: int = 0
        self.answered: int = 0
        self.reply: Reply | None = None
        self.one_is_enough: bool = False

    def add(self) -> Reply:
        """Returns the reply of one more question, which answers those that wait, too."""
        self.sequence += 1
        self.one_is_enough = False
        if self.reply is None:
            self.reply = Reply()
        return self.reply

    def accept_one(self, accepted: bool) -> None:
        """Lets a message end the wait, unless too many questions have no answer."""
        self.one_is_enough = accepted and self.sequence - self.answered <= FORCES_MAX

    def answer(self, sequence: int) -> bool:
        """Records an answer of the broker. Returns False for one of an earlier question."""
        self.answered = max(self.answered, sequence)
        return sequence == self.sequence

    def take(self) -> Reply | None:
        """Returns what waits, and forgets it."""
        reply = self.reply
        self.reply = None
        self.one_is_enough = False
        return reply

    def end(self) -> None:
        reply = self.take()
        if reply is not None:
            reply.resolve(None)


class ClientConsumer:
    """A consumer. Deliveries wait in `buffer` until taken, or are passed to `on_message` at once if it is set.

    `failed` is the reason why no more messages come. `window`: bytes, -1 is unlimited, 0 is one message for each
    `want_one`.
    """

    def __init__(
        self,
        session: ClientSession,
        consumer_id: int,
        queue: str,
        selector: str | None,
        browse_only: bool,
        priority: int,
        window: int,
    ) -> None:
        self.session = session
        self.id = consumer_id
        self.queue = queue
        self.selector = selector
        self.browse_only = browse_only
        self.priority = priority
        self.window = window
        self.half: int = window // 2
        self.epoch: int = 0
        self.buffer: deque[Delivery] = deque()
        self.on_message: Callable[[Delivery], None] | None = None
        self.sinks: Callable[[], BodySink] | None = None  # receivers of large bodies; None: memory
        self.waiter: Reply | None = None
        self.on_news: Callable[[], None] | None = None  # called when `buffer` got a message, or the consumer failed
        self.recreates: bool = True  # the queue, if the broker lost it
        self.failed: ClientError | None = None
        self.closed: bool = False
        self.made: bool = False  # the broker created it, at least once
        # Creates the queue again if the broker lost it before the next connection.
        self.recreation: CreateQueueV2 | None = None
        self.delivered: int = 0
        self._taken_bytes: int = 0
        self._granted: bool = False  # the broker has the credits of the window
        self._shrinking: bool = False  # the broker has not answered yet how much it had sent
        self._wanted: bool = False
        self._large: LargeIncoming | None = None
        self._forces: ForcedDeliveries = ForcedDeliveries()
        self._acknowledge_id: int = -1
        self._acknowledge_bytes: int = 0
        self._flush_wanted: bool = False

    @property
    def pre_acknowledged(self) -> bool:
        """Returns whether the broker counts a message as acknowledged when it sends it."""
        return self.session.settings.pre_acknowledge

    @property
    def buffered(self) -> int:
        """Returns the number of messages received and not yet taken."""
        return len(self.buffer)

    # -- creation -------------------------------------------------------------------------------
    def creation(self) -> CreateConsumer:
        """Returns the request that creates the consumer."""
        return CreateConsumer(
            consumer_id=self.id,
            queue=self.queue,
            filter=self.selector,
            browse_only=self.browse_only,
            priority=self.priority,
        )

    def created(self, reply: Reply) -> None:
        """Records that the broker created the consumer (again), and gives credits."""
        if reply.error is not None:
            self.fail(reply.error)
            return
        self.made = True
        if self.closed or not self.session.open:
            return  # a second loss came before the answer
        answer = reply.value
        if self.recreates and isinstance(answer, QueueQueryResponseV3):
            self.recreation = recreation_of(answer)
        if self.window > 0 or self.window == UNLIMITED:
            self._credits(self.window)
            self._granted = True
        elif self._wanted:
            self._credits(1)
        self._ask()

    # -- deliveries -----------------------------------------------------------------------------
    def deliver(self, message: Message, delivery_count: int, cost: int) -> None:
        """Processes SESS_RECEIVE_MSG."""
        if delivery_count == 0 and message.has_property(FORCED_DELIVERY):
            self._forced(message)
            return
        self._hand_over(Delivery(self, message, delivery_count, cost))

    def _hand_over(self, delivery: Delivery) -> None:
        if self.closed:
            return
        self.delivered += 1
        if self.window == 0:
            # A message may cost more than its single credit; 0 resets the credit.
            self._wanted = False
            if self.session.open:
                self._credits(0)
        on_message = self.on_message
        if on_message is not None:
            on_message(delivery)
            return
        self.buffer.append(delivery)
        self._wake()
        if self._forces.one_is_enough:
            self._forces.end()

    def _wake(self) -> None:
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            waiter.resolve(None)
        if self.on_news is not None:
            self.on_news()

    def deliver_large(self, reader: Reader, cost: int) -> None:
        """Processes SESS_RECEIVE_LARGE_MSG behind its consumer id."""
        delivery_count = reader.int32("delivery_count")
        size = reader.int64("body_size")
        if size < 0:
            raise ProtocolError(f"SESS_RECEIVE_LARGE_MSG: body_size {size}")
        limit = self.session.settings.large_message_max
        sink = None if self.sinks is None else self.sinks()
        self._large = LargeIncoming(decode_header(reader), delivery_count, limit, sink)
        self._give_back_piece(cost)

    def deliver_continuation(self, reader: Reader, cost: int) -> None:
        """Processes SESS_RECEIVE_CONTINUATION; its last field, the consumer id, is read already."""
        large = self._large
        if large is None:
            raise ProtocolError("SESS_RECEIVE_CONTINUATION without SESS_RECEIVE_LARGE_MSG before it")
        large.add(reader.blob("body"))
        if reader.boolean("continues"):
            self._give_back_piece(cost)
            return
        self._large = None
        delivery = Delivery(self, large.complete(), large.delivery_count, cost)
        delivery.sink = large.sink
        if large.too_large():
            delivery.error = (
                f"message {large.message.id} of queue {self.queue} has {large.received} bytes, "
                f"more than largeMessageMaxBytes={large.bytes_max}"
            )
        self._hand_over(delivery)
        self._ask()

    # -- taking ---------------------------------------------------------------------------------
    def take(self) -> Delivery | None:
        """Returns the next message, or None, and returns its credits to the broker."""
        if not self.buffer:
            return None
        delivery = self.buffer.popleft()
        if self.window > 0:
            self._taken_bytes += delivery.cost
            if self._taken_bytes >= self.half:
                self._give_back(0)
        return delivery

    def _give_back(self, cost: int) -> None:
        self._taken_bytes += cost
        if self._taken_bytes >= self.half and self.session.open and not self._shrinking:
            self._credits(min(self._taken_bytes, CREDITS_MAX))
            self._taken_bytes = 0

    def resize(self, window: int) -> None:
        """Changes the window, of at least one byte before and after. A smaller one counts once the broker has answered.

        Until then what it had sent before is on its way. A message of the buffer counts for the new window.
        """
        more = window - self.window
        self.window = window
        self.half = window // 2
        if not self._granted or self._shrinking:
            return
        if more > 0:
            self._credits(more)
        elif more < 0:
            self._shrinking = True
            self._credits(0)  # resets them
            self._forces.sequence += 1
            self.session.send_packet(ForceConsumerDelivery(self.id, self._forces.sequence))

    def _shrunk(self) -> None:
        """Gives the credits of the window that no message of the buffer uses."""
        self._shrinking = False
        left = self.window - sum(each.cost for each in self.buffer)
        self._taken_bytes = min(left, 0)
        if left > 0:
            self._credits(left)

    def _give_back_piece(self, cost: int) -> None:
        """Returns the credits of a piece that others follow at once: a message may be larger than the window."""
        if self.window > 0:
            self._give_back(cost)
        elif self.window == 0 and self.session.open:
            self._credits(cost)

    def handled(self, cost: int) -> None:
        """Returns the credits of a delivery that `on_message` got."""
        if self.window > 0:
            self._give_back(cost)

    def want_one(self) -> None:
        """Asks for one message if the window is 0."""
        if self.window == 0 and not self._wanted and not self.buffer:
            self._wanted = True
            if self.session.open:
                self._credits(1)

    def withdraw(self) -> Reply | None:
        """Withdraws the credit for a message; None if there was none.

        The reply is done when the broker has processed that, and messages already sent are in `buffer`.
        """
        if not self._wanted:
            return None
        self._wanted = False
        if not self.session.open or self.failed is not None:
            return None
        self._credits(0)
        return self.force()

    def arrival(self) -> Reply:
        """Returns a reply that is done when `buffer` has a message or the consumer failed. One waiter at a time."""
        reply = self.waiter
        if reply is None:
            reply = Reply()
            if self.buffer or self.failed is not None or self.closed:
                reply.resolve(None)
            else:
                self.waiter = reply
        if not reply.done:
            self.want_one()  # an earlier wait may have withdrawn its credit
        return reply

    # -- forced delivery ------------------------------------------------------------------------
    def force(self) -> Reply:
        """Returns a reply that is done once all messages that the queue or the credits allow now are in `buffer`."""
        if self.failed is not None:
            failed = Reply()
            failed.fail(self.failed)
            return failed
        reply = self._forces.add()
        self._ask()
        return reply

    def available(self) -> Reply:
        """Returns a reply that is done when a message arrives, or once the broker has none (or no credits for it).

        A broker that has used up the window may wait for credits, for a second, before it answers a `force`; so only
        FORCES_MAX of them are left without an answer. With a window of 0 `withdraw` needs the answer.
        """
        reply = self.force()
        self._forces.accept_one(self.window != 0)
        return reply

    def _ask(self) -> None:
        if self._forces.reply is not None and self.session.open:
            self.session.send_packet(ForceConsumerDelivery(self.id, self._forces.sequence))

    def _forced(self, message: Message) -> None:
        sequence = message.property_value(FORCED_DELIVERY)
        if not isinstance(sequence, int) or not self._forces.answer(int(sequence)):
            return
        if self._shrinking:
            self._shrunk()
        if self._large is not None and (self.window == 0 or not self.buffer):
            # Artemis answers between the pieces of a large message: asked again behind the last one. But with messages
            # in the buffer there may be no credits left for its next piece, until the program takes them.
            if self.window == 0:
                self._credits(1)  # for the next piece, if the credit was withdrawn
            return
        self._forces.end()

    # -- acknowledging --------------------------------------------------------------------------
    def acknowledge_through(self, delivery: Delivery, batch_bytes: int) -> None:
        """Acknowledges this message and all before it; a lost delivery is ignored.

        The packet is sent at the end of the event-loop iteration in which `batch_bytes` have come together.
        """
        if delivery.lost or self.failed is not None:
            return
        self._acknowledge_id = delivery.message.id
        self._acknowledge_bytes += delivery.cost
        if self._acknowledge_bytes >= batch_bytes and not self._flush_wanted:
            self._flush_wanted = True
            self.session.connection.want_flush(self)

    def flush_acknowledge(self) -> None:
        """Sends the collected acknowledgements of acknowledge_through."""
        self._flush_wanted = False
        message_id = self._acknowledge_id
        if message_id >= 0 and self.session.open:
            self._acknowledge_id = -1
            self._acknowledge_bytes = 0
            self._acknowledge(SESS_ACKNOWLEDGE, message_id)

    def acknowledge_one(self, delivery: Delivery) -> None:
        """Acknowledges this message alone, without an answer."""
        if delivery.lost or self.failed is not None or not self.session.open:
            return
        self._acknowledge(SESS_INDIVIDUAL_ACKNOWLEDGE, delivery.message.id)

    def acknowledge_and_wait(self, delivery: Delivery, individual: bool) -> Reply:
        """Returns a reply that is done when the broker has acknowledged; it fails for a lost delivery."""
        refusal = self.refusal(delivery)
        if refusal is not None:
            return refusal
        self._acknowledge_id = -1
        self._acknowledge_bytes = 0
        self.session.worked()
        return self.session.request_acknowledge(self.id, delivery.message.id, individual)

    def settle(self, delivery: Delivery, reject: bool, delay_ms: int) -> Reply:
        """Gives one delivery back (Settle); the reply is done when that is durable. An Atalanta node only."""
        refusal = self.refusal(delivery)
        if refusal is not None:
            return refusal
        session = self.session
        correlation = session.next_correlation()
        packet = Settle(correlation, self.id, delivery.message.id, reject, delay_ms)
        return session.correlated_request(packet, correlation, FAIL)

    def refusal(self, delivery: Delivery) -> Reply | None:
        """Returns a failed reply if the broker has taken the delivery back, else None."""
        error = self.failed
        if error is None and not delivery.lost:
            return None
        if error is None and self.session.transacted:
            error = TransactionRolledBack("the message is back in its queue: its transaction ended", 111)
        elif error is None:
            error = ConnectionLost("the message is back in its queue: its connection was lost", 4)
        reply = Reply()
        reply.fail(error)
        return reply

    def _acknowledge(self, packet_type: int, message_id: int) -> None:
        session = self.session
        session.worked()
        session.connection.write(
            _acknowledge_frame(26, packet_type, session.channel, self.id, message_id, 0)
        )

    def _credits(self, amount: int) -> None:
        session = self.session
        session.connection.write(
            _credits_frame(21, SESS_FLOWTOKEN, session.channel, self.id, amount)
        )

    # -- end ------------------------------------------------------------------------------------
    def clear(self) -> None:
        """Drops the messages in the buffer for a rollback, and returns their credits."""
        self.epoch += 1
        cost = 0
        for delivery in self.buffer:
            cost += delivery.cost
        self.buffer.clear()
        self._acknowledge_id = -1
        self._acknowledge_bytes = 0
        if self.window > 0:
            self._give_back(cost)

    def connection_lost(self) -> None:
        """Drops all received messages; credits begin anew on the next connection."""
        self.epoch += 1
        self.buffer.clear()
        self._large = None
        self._taken_bytes = 0
        self._granted = self._shrinking = False
        self._acknowledge_id = -1
        self._acknowledge_bytes = 0

    def fail(self, error: ClientError) -> None:
        """Ends the consumer with an error. Messages that the broker took back with it are dropped."""
        if self.failed is None:
            self.failed = error
            if not isinstance(error, Closed):
                self.connection_lost()
        force = self._forces.take()
        if force is not None:
            force.fail(error)
        self._wake()

    def close(self) -> None:
        """Closes the consumer for the application."""
        self.closed = True
        self.buffer.clear()
        self.fail(Closed(f"the consumer of {self.queue} is closed"))


def recreation_of(queue: QueueQueryResponseV3) -> CreateQueueV2 | None:
    """Returns the request that creates a queue again which may disappear, None for any other queue.

    Such a queue is not durable, or was created automatically (ActiveMQSessionContext.recreateConsumerOnServer). The
    session that created a temporary queue creates it again itself.
    """
    if queue.name is None or queue.address is None or queue.temporary:
        return None
    if queue.durable and not queue.auto_created:
        return None
    return CreateQueueV2(
        address=queue.address,
        queue=queue.name,
        filter=queue.filter,
        durable=queue.durable,
        auto_created=queue.auto_created,
        routing_type=queue.routing_type,
        max_consumers=queue.max_consumers,
        purge_on_no_consumers=queue.purge_on_no_consumers,
    )


class Creation:
    """Passes the answer to a consumer's creation to the caller."""

    def __init__(self, consumer: ClientConsumer, outcome: Reply) -> None:
        self.consumer = consumer
        self.outcome = outcome

    def done(self, reply: Reply) -> None:
        self.consumer.created(reply)
        if reply.error is not None:
            self.consumer.session.consumers.pop(self.consumer.id, None)
            self.outcome.fail(reply.error)
        else:
            self.outcome.resolve(reply.value)
