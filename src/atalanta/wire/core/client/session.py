"""A session of a client, over any number of connections.

The channel and the correlation ids stay the same when the session is created again on a new connection. So
unconfirmed messages are sent again as the very same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import REPEATED
from atalanta.message.codec import decode_message
from atalanta.message.encoding.buffer import Reader
from atalanta.wire.core import packet_types
from atalanta.wire.core.client.answer_order import NO_CORRELATION
from atalanta.wire.core.client.consumer import ClientConsumer, Creation
from atalanta.wire.core.client.errors import (
    AddressFull,
    ClientError,
    Closed,
    ConnectionLost,
    DuplicateId,
    QueueDoesNotExist,
    TransactionRolledBack,
    dropped,
    error_of,
)
from atalanta.wire.core.client.producer import ClientProducer, OutgoingMessage, SendQueue
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.request import (
    FAIL,
    FORGET,
    NOTHING_TOLERATED,
    REPEAT,
    ROLLED_BACK,
    Request,
    RequestTable,
)
from atalanta.wire.core.client.settings import SessionSettings
from atalanta.wire.core.confirmations import Confirmations
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse, PacketsConfirmed
from atalanta.wire.core.packets.consumer import (
    Acknowledge,
    ConsumerClose,
    DisconnectConsumer,
    IndividualAcknowledge,
)
from atalanta.wire.core.packets.producer import (
    CreateProducer,
    ProducerCredits,
    ProducerFailCredits,
    RemoveProducer,
)
from atalanta.wire.core.packets.session import (
    NOTICES_KEY,
    AddMetadataV2,
    SessionClose,
    SessionStart,
    SessionStop,
)
from atalanta.wire.core.packets.transaction import Commit, Rollback
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.wire.core.client.connection import BrokerConnection

NO_CONSUMER: Final = 104  # the code of a close that had been carried out

HEADER_BYTES = 13


class ClientSession:
    """A session. `opened` is done when the broker created it the first time; `open`: it exists now."""

    def __init__(
        self, connection: BrokerConnection, channel: int, settings: SessionSettings
    ) -> None:
        self.connection = connection
        self.channel = channel
        self.settings = settings
        self.open: bool = False
        self.closed: bool = False
        self.opened: Reply = Reply()
        self.started: bool = False
        self.consumers: dict[int, ClientConsumer] = {}
        self.producers: dict[int, ClientProducer] = {}
        self.send_queues: dict[str, SendQueue] = {}
        # Frames that create the temporary queues, which a broker deletes with their session.
        self.temporary: dict[str, bytes] = {}
        self.rolled_back: bool = False
        self._ended: ClientError | None = None
        self.confirmations = Confirmations(settings.confirmation_window)
        self._in_transaction: bool = False
        self._commit: Request | None = None  # waits for the messages before it
        self._requests = RequestTable(connection.write, connection.settings.call_timeout_ns)
        self._order = self._requests.order
        self.version: int = packet_types.NEWEST_VERSION  # of all frames that are kept
        self._pending: dict[int, OutgoingMessage] = {}
        self._correlation: int = 0
        self._next_consumer: int = 0
        self._next_producer: int = 1

    # -- requests -------------------------------------------------------------------------------
    @property
    def transacted(self) -> bool:
        return not self.settings.auto_commit_sends

    @property
    def in_transaction(self) -> bool:
        """Returns True if the running transaction has an operation."""
        return self._in_transaction or self._commit is not None

    @property
    def waits(self) -> bool:
        """Returns True if the broker has not answered all requests, or not confirmed all messages."""
        return bool(self._pending) or self._requests.waits()

    def next_correlation(self) -> int:
        self._correlation += 1
        return self._correlation

    def check_usable(self) -> None:
        """Raises the error that makes this session unusable."""
        if self._ended is not None:
            raise self._ended
        if self.closed:
            raise Closed("the session is closed")
        failed = self.connection.failed
        if failed is not None:
            raise failed
        if self.rolled_back:
            raise TransactionRolledBack(
                "the connection was lost during the transaction: nothing of it happened", 111
            )

    def request(
        self, packet: Packet, at_loss: int = REPEAT, tolerated: int = NOTHING_TOLERATED
    ) -> Reply:
        """Sends a request. The reply's value is the answering packet, or None for a plain "done"."""
        self.check_usable()
        return self._ask(packet, at_loss, tolerated)

    def _ask(self, packet: Packet, at_loss: int, tolerated: int = NOTHING_TOLERATED) -> Reply:
        if at_loss == FORGET and not self.open:
            return _answered()
        request = Request(self._encode(packet), Reply(), at_loss, NO_CORRELATION, tolerated)
        return self._requests.add(self.connection.now, request)

    def correlated_request(self, packet: Packet, correlation: int, at_loss: int = REPEAT) -> Reply:
        """Sends a packet with `correlation` (next_correlation); others may be unanswered."""
        self.check_usable()
        request = Request(self._encode(packet), Reply(), at_loss, correlation)
        return self._requests.add(self.connection.now, request)

    def send_packet(self, packet: Packet) -> None:
        """Sends a packet without an answer, if the session is open."""
        if self.open:
            self.connection.write(self._encode(packet))

    def request_acknowledge(self, consumer_id: int, message_id: int, individual: bool) -> Reply:
        """Acknowledges with an answer. The reply fails if the connection is lost: the broker may deliver again."""
        if individual:
            return self.request(IndividualAcknowledge(consumer_id, message_id, True), FAIL)
        return self.request(Acknowledge(consumer_id, message_id, True), FAIL)

    def worked(self) -> None:
        """Records that the running transaction has an operation."""
        if self.transacted:
            self._in_transaction = True

    def keep_temporary(self, name: str, packet: Packet) -> None:
        """Creates this queue again whenever the session is created again."""
        self.temporary[name] = self._encode(packet)

    def _encode(self, packet: Packet) -> bytes:
        return codec.encode(packet, self.channel, self.version)

    # -- consumers and producers ----------------------------------------------------------------
    def start(self) -> None:
        """Lets the broker deliver."""
        if not self.started:
            self.started = True
            self.send_packet(SessionStart())

    def stop(self) -> Reply:
        """Stops deliveries; the reply is done when no delivery is on its way."""
        self.started = False
        return self._ask(SessionStop(), FORGET)

    def consumer(
        self,
        queue: str,
        selector: str | None = None,
        browse_only: bool = False,
        priority: int = 0,
        window: int = 1 << 20,
    ) -> tuple[ClientConsumer, Reply]:
        """Returns a consumer, and the reply that is done when the broker created it."""
        self.check_usable()
        consumer = ClientConsumer(
            self, self._next_consumer, queue, selector, browse_only, priority, window
        )
        self._next_consumer += 1
        self.consumers[consumer.id] = consumer
        outcome = Reply()
        self.request(consumer.creation()).on_done = Creation(consumer, outcome).done
        return consumer, outcome

    def close_consumer(self, consumer: ClientConsumer) -> Reply:
        """Closes a consumer. Its unacknowledged messages return to the queue."""
        gone = consumer.failed is not None
        consumer.flush_acknowledge()
        consumer.close()
        self.consumers.pop(consumer.id, None)
        if gone or self.closed:
            return _answered()
        # A first request without an answer is repeated after a lost connection: the close follows it.
        at_loss = FORGET if consumer.made else REPEAT
        return self._ask(ConsumerClose(consumer.id), at_loss, NO_CONSUMER)

    def producer(self, address: str) -> ClientProducer:
        """Returns a producer for `address`; producers of one address share its credits."""
        self.check_usable()
        queue = self.send_queues.get(address)
        if queue is None:
            queue = SendQueue(self, address, self.settings.producer_window)
            self.send_queues[address] = queue
            if self.open:
                queue.begin()
        producer = ClientProducer(self, queue, self._next_producer)
        self._next_producer += 1
        self.producers[producer.id] = producer
        self._announce_producer(producer)
        return producer

    def close_producer(self, producer: ClientProducer) -> None:
        producer.closed = True
        if self.producers.pop(producer.id, None) is not None and self._knows_producers():
            self.send_packet(RemoveProducer(producer.id))

    def _announce_producer(self, producer: ClientProducer) -> None:
        if self._knows_producers():
            self.send_packet(CreateProducer(producer.id, producer.address))

    def _knows_producers(self) -> bool:
        return self.version >= packet_types.SENDER_ID_VERSION

    def transmit(self, correlation: int, outgoing: OutgoingMessage) -> None:
        """Writes a message whose credits are taken."""
        if correlation >= 0:
            self._pending[correlation] = outgoing
            self._order.sent(correlation)
        self.worked()
        self.connection.write(outgoing.frame)

    # -- transactions ---------------------------------------------------------------------------
    def commit(self) -> Reply:
        """Commits. Errors: TransactionRolledBack, or TransactionOutcomeUnknown when the answer was lost."""
        self.check_usable()
        correlation = self.next_correlation()
        for consumer in self.consumers.values():
            consumer.flush_acknowledge()
        frame = self._encode(Commit(correlation))
        request = Request(frame, Reply(), ROLLED_BACK, correlation, ordered=True)
        self._commit = request
        self.send_queue_empty()
        return request.reply

    def send_queue_empty(self) -> None:
        """Sends a waiting commit if no message waits for credits."""
        request = self._commit
        if request is None:
            return
        for queue in self.send_queues.values():
            if queue.waiting:
                return
        self._commit = None
        self._in_transaction = False
        self._requests.add(self.connection.now, request)

    def rollback(self, last_delivered: bool = False) -> Reply:
        """Undoes all operations since the last commit; deliveries return to their queues."""
        self._in_transaction = False
        if self.rolled_back:
            self.rolled_back = False
            return _answered()
        self.forget_waiting()
        for consumer in self.consumers.values():
            consumer.clear()
        return self._ask(Rollback(last_delivered), FORGET)

    def forget_waiting(self) -> None:
        """Forgets the messages that wait for credits: their transaction is rolled back."""
        for queue in self.send_queues.values():
            queue.waiting.clear()

    # -- life -----------------------------------------------------------------------------------
    def begin(self) -> None:
        """Restores the session's state at the broker, which has created it, and goes on."""
        self._speak(self.connection.version)
        self.open = True
        self.confirmations = Confirmations(self.settings.confirmation_window)
        if self.settings.notices:
            self.send_packet(AddMetadataV2(NOTICES_KEY, "true", False))
        again: list[Request] = []
        for frame in self.temporary.values():
            again.append(Request(frame, Reply(), REPEAT))
        if self.opened.done:
            for consumer in self.consumers.values():
                if not consumer.made:
                    continue  # its first request is still waiting
                if consumer.recreation is not None:
                    again.append(Request(self._encode(consumer.recreation), Reply(), FORGET))
                request = Request(self._encode(consumer.creation()), Reply(), FORGET)
                request.reply.on_done = consumer.created
                again.append(request)
        if self.started:
            self.send_packet(SessionStart())
        for producer in self.producers.values():
            self._announce_producer(producer)
        self._requests.begin(self.connection.now, again)
        for queue in list(self.send_queues.values()):
            queue.begin()
        self.opened.resolve(None)

    def _speak(self, version: int) -> None:
        """Starts to speak the broker's version, in which all frames that wait are written anew."""
        self._order.begin(version)
        if version == self.version:
            return
        before = self.version
        self.version = version
        for name, frame in self.temporary.items():
            self.temporary[name] = codec.reencode(frame, before, version, NO_CORRELATION, NO_CORRELATION)
        self._requests.rewrite(before, version)
        if self._commit is not None:
            self._commit.rewrite(before, version)
        for queue in self.send_queues.values():
            for correlation, outgoing in queue.waiting:
                sender_id = outgoing.producer.id
                outgoing.frame = codec.reencode(outgoing.frame, before, version, correlation, sender_id)

    def close(self) -> Reply:
        """Closes the session at the broker; unacknowledged messages return to their queues."""
        if self.closed or not self.open:
            self.finish(Closed("the session is closed"))
            return _answered()
        for consumer in list(self.consumers.values()):
            consumer.flush_acknowledge()
            consumer.close()
        reply = self._ask(SessionClose(), FORGET)
        self.closed = True
        return reply

    def finish(self, error: ClientError) -> None:
        """Ends the session: all that waits fails with `error`."""
        self.open = False
        self.closed = True
        if self._ended is None:
            self._ended = error
        self.connection.forget(self)
        self.opened.fail(error)
        self._fail_all(error)

    def _fail_all(self, error: ClientError) -> None:
        pending = list(self._pending.values())
        self._pending.clear()
        commit = self._commit
        self._commit = None
        if commit is not None:
            commit.reply.fail(error)
        self._requests.fail(error)
        for outgoing in pending:
            outgoing.producer.refused(outgoing, error)
        for queue in list(self.send_queues.values()):
            queue.fail(error)
        for consumer in list(self.consumers.values()):
            consumer.fail(error)

    def lost(self, error: ConnectionLost) -> None:
        """Records the loss of the connection. With `resume` the session waits for the next one, and so does one that no
        broker has created yet: the next server of a list may do it."""
        self.open = False
        resume = self.connection.settings.resume and self.settings.resume
        if self.closed or (self.opened.done and not resume):
            self.finish(error)
            return
        for consumer in list(self.consumers.values()):
            consumer.connection_lost()
        self._requests.lost(error)
        if self.transacted:
            self._transaction_lost()
            return
        pending = self._pending
        self._pending = {}
        for correlation in reversed(list(pending)):
            outgoing = pending[correlation]
            outgoing.repeated = True
            outgoing.producer.resent += 1
            outgoing.producer.queue.waiting.appendleft((correlation, outgoing))

    def _transaction_lost(self) -> None:
        error = TransactionRolledBack("the connection was lost during the transaction", 111)
        commit = self._commit
        self._commit = None
        pending = list(self._pending.values())
        self._pending.clear()
        for outgoing in pending:
            outgoing.producer.refused(outgoing, error)
        for queue in self.send_queues.values():
            if queue.waiting:
                self._in_transaction = True
                queue.fail(error)
        if commit is not None:
            commit.reply.fail(error)
        elif self._in_transaction:
            self.rolled_back = True
        self._in_transaction = False

    def check_deadlines(self, now: int) -> None:
        """Fails the requests that waited too long for an answer."""
        self._requests.check_deadlines(now)

    # -- frames in ------------------------------------------------------------------------------
    def receive(self, packet_type: int, data: bytes, start: int, end: int) -> None:
        """Processes one frame's body data[start:end]. DecodeError and ProtocolError end the connection."""
        if packet_type == packet_types.SESS_RECEIVE_MSG:
            self._receive_message(data, start, end)
        elif packet_type == packet_types.NULL_RESPONSE:
            if end - start > 8:
                self._done_with_notice(int.from_bytes(data[start : start + 8], "big", signed=True), data[start + 8])
            else:
                self._done(int.from_bytes(data[start:end], "big", signed=True) if end > start else -1)
        elif packet_type == packet_types.SESS_RECEIVE_LARGE_MSG:
            reader = Reader(data, start, end)
            consumer = self.consumers.get(reader.int64("consumer_id"))
            if consumer is not None:
                consumer.deliver_large(reader, end - start + HEADER_BYTES)
        elif packet_type == packet_types.SESS_RECEIVE_CONTINUATION:
            if end - start < 8:
                raise ProtocolError("SESS_RECEIVE_CONTINUATION: consumer_id is missing")
            consumer = self.consumers.get(Reader(data, end - 8, end).int64("consumer_id"))
            if consumer is not None:
                cost = end - start + HEADER_BYTES
                consumer.deliver_continuation(Reader(data, start, end - 8), cost)
        elif packet_type == packet_types.PACKETS_CONFIRMED:
            return
        else:
            version = self.version
            self._packet(codec.decode_range(packet_type, data, start, end, version))
        if self.settings.confirmation_window != -1:
            self._confirm(packet_type, end - start + HEADER_BYTES)

    def _confirm(self, packet_type: int, frame_bytes: int) -> None:
        if self.confirmations.received(packet_type, frame_bytes, True):
            self.confirm()

    def confirm(self) -> None:
        """Lets the broker drop the packets that it keeps for a reattach."""
        if self.open and self.confirmations.pending():
            self.send_packet(PacketsConfirmed(self.confirmations.take()))

    def _receive_message(self, data: bytes, start: int, end: int) -> None:
        if end - start < 12:
            raise ProtocolError("SESS_RECEIVE_MSG: consumer_id is missing")
        tail = Reader(data, end - 12, end)
        consumer = self.consumers.get(tail.int64("consumer_id"))
        if consumer is None:
            return
        delivery_count = tail.int32("delivery_count")
        message = decode_message(Reader(data, start, end - 12))
        consumer.deliver(message, delivery_count, end - start + HEADER_BYTES)

    def _done(self, correlation: int) -> None:
        correlation = self._order.named(correlation)
        outgoing = self._pending.pop(correlation, None)
        if outgoing is not None:
            outgoing.producer.accepted(outgoing)
            return
        self._answer(correlation, None)

    def _done_with_notice(self, correlation: int, outcome: int) -> None:
        """Processes the confirmation of a message that is in no queue by this send (NOTICES_KEY)."""
        outgoing = self._pending.get(correlation)
        if outgoing is None:
            self._answer(correlation, None)
        elif outcome == REPEATED:
            if not outgoing.repeated:
                outgoing.producer.repeats += 1
            self._done(correlation)
        else:
            del self._pending[correlation]
            outgoing.producer.refused(outgoing, dropped(outcome, outgoing.producer.address))

    def _packet(self, packet: Packet) -> None:
        if isinstance(packet, ExceptionResponse):
            self._exception(packet)
        elif isinstance(packet, ProducerCredits):
            queue = self.send_queues.get(packet.address)
            if queue is not None:
                queue.granted(packet.credits)
        elif isinstance(packet, ProducerFailCredits):
            queue = self.send_queues.get(packet.address)
            if queue is not None:
                queue.fail(AddressFull(f"address {packet.address} is full", 210))
        elif isinstance(packet, DisconnectConsumer):
            consumer = self.consumers.pop(packet.consumer_id, None)
            if consumer is not None:
                text = f"queue {consumer.queue} was deleted, or an operator has closed its consumer"
                consumer.fail(QueueDoesNotExist(text, 100))
                # An Artemis node whose operator closes a consumer leaves the closing to the client. Where it is closed
                # already, the node takes no notice.
                self._ask(ConsumerClose(consumer.id), FORGET, NO_CONSUMER)
        else:
            correlation = self._order.named(getattr(packet, "correlation", NO_CORRELATION))
            self._answer(correlation, packet)

    def _exception(self, packet: ExceptionResponse) -> None:
        error = error_of(packet.code, packet.message)
        correlation = self._order.named(packet.correlation)
        outgoing = self._pending.pop(correlation, None)
        if outgoing is not None:
            if outgoing.repeated and isinstance(error, DuplicateId):
                # The message arrived before the connection was lost.
                outgoing.producer.accepted(outgoing)
            else:
                outgoing.producer.refused(outgoing, error)
            return
        if not self._requests.refuse(self.connection.now, correlation, error):
            self.connection.events.session_error(self.channel, error)

    def _answer(self, correlation: int, packet: Packet | None) -> None:
        known = self._requests.answer(self.connection.now, correlation, packet)
        if known and self.closed and self._requests.idle():
            self.finish(Closed("the session is closed"))


def _answered() -> Reply:
    reply = Reply()
    reply.resolve(None)
    return reply

