"""One session of a client, over as many connections as it takes.

Requests without a correlation id are asked one at a time: their answers carry nothing to tell them
apart. Sends, commits and the log view have correlation ids and are pipelined. The channel and the
ids stay the same when the session is made again on a new connection, so what was not confirmed is
sent again as the very same bytes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from atalanta.kernel.buffer import Reader
from atalanta.kernel.message import decode_message
from atalanta.wire.core import codec, types
from atalanta.wire.core.client_consumer import ClientConsumer
from atalanta.wire.core.client_errors import (
    AddressFull,
    ClientError,
    Closed,
    ConnectionLost,
    DuplicateId,
    QueueDoesNotExist,
    TransactionOutcomeUnknown,
    TransactionRolledBack,
    error_of,
)
from atalanta.wire.core.client_producer import AddressCredits, ClientProducer, Sending
from atalanta.wire.core.client_reply import Reply
from atalanta.wire.core.client_request import (
    FAIL,
    FORGET,
    NO_CORRELATION,
    NOTHING_TOLERATED,
    REPEAT,
    ROLLED_BACK,
    Request,
)
from atalanta.wire.core.client_settings import SessionSettings
from atalanta.wire.core.confirmations import Confirmations
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_connection import (
    ExceptionResponse,
    NullResponse,
    PacketsConfirmed,
)
from atalanta.wire.core.packets_consumer import (
    Acknowledge,
    ConsumerClose,
    DisconnectConsumer,
    IndividualAcknowledge,
)
from atalanta.wire.core.packets_producer import (
    CreateProducer,
    ProducerCredits,
    ProducerFailCredits,
    RemoveProducer,
    RequestProducerCredits,
)
from atalanta.wire.core.packets_session import (
    CreateSessionV2,
    SessionClose,
    SessionStart,
    SessionStop,
)
from atalanta.wire.core.packets_transaction import Commit, Rollback

if TYPE_CHECKING:
    from atalanta.wire.core.client import ClientConnection

HEADER_BYTES = 13


class ClientSession:
    """`opened` is done when the broker made the session the first time; `open`: it exists now."""

    def __init__(
        self, connection: ClientConnection, channel: int, settings: SessionSettings
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
        self.credits: dict[str, AddressCredits] = {}
        # Frames that make what a broker forgets with its session: temporary queues.
        self.temporary: dict[str, bytes] = {}
        self.rolled_back: bool = False
        self.confirmations = Confirmations(settings.confirmation_window)
        self._in_transaction: bool = False
        self._requests: deque[Request] = deque()
        self._current: Request | None = None
        self._correlated: dict[int, Request] = {}
        self._pending: dict[int, Sending] = {}
        self._correlation: int = 0
        self._next_consumer: int = 0
        self._next_producer: int = 1

    # -- asking ---------------------------------------------------------------------------------
    @property
    def transacted(self) -> bool:
        return not self.settings.auto_commit_sends

    def next_correlation(self) -> int:
        self._correlation += 1
        return self._correlation

    def check_usable(self) -> None:
        """Raises what keeps this session from doing anything."""
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
        """Ask; the answering packet, or None for a plain "done", becomes the value of the reply."""
        self.check_usable()
        return self._ask(packet, at_loss, tolerated)

    def _ask(self, packet: Packet, at_loss: int, tolerated: int = NOTHING_TOLERATED) -> Reply:
        if at_loss == FORGET and not self.open:
            return _answered()
        reply = Reply()
        self._requests.append(Request(self._encode(packet), reply, at_loss, -1, tolerated))
        self._pump()
        return reply

    def correlated_request(self, packet: Packet, correlation: int, at_loss: int = REPEAT) -> Reply:
        """For packets that carry `correlation` (next_correlation): many may be under way."""
        self.check_usable()
        reply = Reply()
        request = Request(self._encode(packet), reply, at_loss, correlation)
        self._correlated[correlation] = request
        if self.open:
            self._send_request(request)
        return reply

    def send_packet(self, packet: Packet) -> None:
        """No answer is expected; nothing happens while the session is not open."""
        if self.open:
            self.connection.write(self._encode(packet))

    def request_acknowledge(self, consumer_id: int, message_id: int, individual: bool) -> Reply:
        """An acknowledgement with an answer. A loss answers it too: the message is with the broker."""
        if individual:
            return self.request(IndividualAcknowledge(consumer_id, message_id, True), FORGET)
        return self.request(Acknowledge(consumer_id, message_id, True), FORGET)

    def worked(self) -> None:
        """Something happened in the transaction that runs."""
        if self.transacted:
            self._in_transaction = True

    def keep_temporary(self, name: str, packet: Packet) -> None:
        """Make this queue again whenever the session is made again."""
        self.temporary[name] = self._encode(packet)

    def _encode(self, packet: Packet) -> bytes:
        return codec.encode(packet, self.channel, self.connection.version)

    def _send_request(self, request: Request) -> None:
        request.sent = True
        request.deadline = self.connection.now + self.connection.settings.call_timeout_ns
        self.connection.write(request.frame)

    def _pump(self) -> None:
        if self.open and self._current is None and self._requests:
            request = self._requests.popleft()
            self._current = request
            self._send_request(request)

    # -- consumers and producers ----------------------------------------------------------------
    def start(self) -> None:
        """Let the broker deliver."""
        if not self.started:
            self.started = True
            self.send_packet(SessionStart())

    def stop(self) -> Reply:
        """Done when no delivery is under way any more."""
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
        """A consumer, and the reply that says whether the broker made it."""
        self.check_usable()
        consumer = ClientConsumer(
            self, self._next_consumer, queue, selector, browse_only, priority, window
        )
        self._next_consumer += 1
        self.consumers[consumer.id] = consumer
        outcome = Reply()
        self.request(consumer.creation()).on_done = _Creation(consumer, outcome).done
        return consumer, outcome

    def close_consumer(self, consumer: ClientConsumer) -> Reply:
        """What it has not acknowledged goes back to the queue."""
        gone = consumer.failed is not None
        consumer.flush_acknowledge()
        consumer.close()
        self.consumers.pop(consumer.id, None)
        if gone or self.closed:
            return _answered()
        return self._ask(ConsumerClose(consumer.id), FORGET)

    def producer(self, address: str) -> ClientProducer:
        """Sends to `address`; producers of one address share its credits."""
        self.check_usable()
        credits = self.credits.get(address)
        if credits is None:
            credits = AddressCredits(self, address, self.settings.producer_window)
            self.credits[address] = credits
            if self.open:
                credits.begin()
        producer = ClientProducer(self, credits, self._next_producer)
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
        return self.connection.version >= types.SENDER_ID_VERSION

    def transmit(self, correlation: int, sending: Sending) -> None:
        """Write a message whose credits are paid."""
        if correlation >= 0:
            self._pending[correlation] = sending
        self.worked()
        self.connection.write(sending.frame)

    def ask_credits(self, address: str, amount: int) -> None:
        self.send_packet(RequestProducerCredits(amount, address))

    # -- transactions ---------------------------------------------------------------------------
    def commit(self) -> Reply:
        """Errors: TransactionRolledBack, or TransactionOutcomeUnknown when the answer was lost."""
        correlation = self.next_correlation()
        return self.commit_by(Commit(correlation), correlation)

    def commit_by(self, packet: Packet, correlation: int) -> Reply:
        """Commit by another packet than SESS_COMMIT (LOG_COMMIT)."""
        self.check_usable()
        for credits in self.credits.values():
            if credits.waiting:
                raise ClientError("messages of the transaction wait for credits: drain first")
        for consumer in self.consumers.values():
            consumer.flush_acknowledge()
        reply = self.correlated_request(packet, correlation, ROLLED_BACK)
        self._in_transaction = False
        return reply

    def rollback(self, last_delivered: bool = False) -> Reply:
        """Undo everything since the last commit; deliveries go back to their queues."""
        self._in_transaction = False
        if self.rolled_back:
            self.rolled_back = False
            return _answered()
        for credits in self.credits.values():
            credits.waiting.clear()
        for consumer in self.consumers.values():
            consumer.clear()
        return self._ask(Rollback(last_delivered), FORGET)

    # -- life -----------------------------------------------------------------------------------
    def creation(self) -> CreateSessionV2:
        """The request on channel 1 that makes the session."""
        settings = self.settings
        return CreateSessionV2(
            settings.name,
            self.channel,
            types.NEWEST_VERSION,
            settings.user,
            settings.password,
            settings.min_large_message_size,
            False,
            settings.auto_commit_sends,
            settings.auto_commit_acks,
            settings.confirmation_window,
            settings.pre_acknowledge,
            settings.default_address,
            settings.client_id,
        )

    def begin(self) -> None:
        """The broker made the session: bring back what it must know, then go on."""
        self.open = True
        self.confirmations = Confirmations(self.settings.confirmation_window)
        again: list[Request] = []
        for frame in self.temporary.values():
            again.append(Request(frame, Reply(), REPEAT))
        if self.opened.done:
            for consumer in self.consumers.values():
                if not consumer.made:
                    continue  # its first request waits among the others
                request = Request(self._encode(consumer.creation()), Reply(), FORGET)
                request.reply.on_done = consumer.created
                again.append(request)
        if self.started:
            self.send_packet(SessionStart())
        self._requests.extendleft(reversed(again))
        for producer in self.producers.values():
            self._announce_producer(producer)
        self._pump()
        for credits in list(self.credits.values()):
            credits.begin()
        for request in list(self._correlated.values()):
            self._send_request(request)
        self.opened.resolve(None)

    def close(self) -> Reply:
        """The broker forgets the session; what was not acknowledged goes back to its queues."""
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
        """Nothing more will happen here: everything that waits fails with `error`."""
        self.open = False
        self.closed = True
        self.connection.forget(self)
        self.opened.fail(error)
        self._fail_all(error)

    def _fail_all(self, error: ClientError) -> None:
        requests = list(self._requests)
        if self._current is not None:
            requests.insert(0, self._current)
        requests += self._correlated.values()
        self._requests.clear()
        self._current = None
        self._correlated.clear()
        pending = list(self._pending.values())
        self._pending.clear()
        for request in requests:
            if request.at_loss == FORGET:
                request.reply.resolve(None)
            elif request.at_loss == ROLLED_BACK and request.sent:
                request.reply.fail(_outcome_unknown(error))
            else:
                request.reply.fail(error)
        for sending in pending:
            sending.producer.refused(sending, error)
        for credits in list(self.credits.values()):
            credits.fail(error)
        for consumer in list(self.consumers.values()):
            consumer.fail(error)

    def lost(self, error: ConnectionLost) -> None:
        """The connection is gone. With `resume` the session waits for the next one."""
        self.open = False
        if not self.connection.settings.resume or self.closed:
            self.finish(error)
            return
        for consumer in list(self.consumers.values()):
            consumer.connection_lost()
        self._requests_lost(error)
        if self.transacted:
            self._transaction_lost()
            return
        pending = self._pending
        self._pending = {}
        for correlation in reversed(list(pending)):
            sending = pending[correlation]
            sending.repeated = True
            sending.producer.resent += 1
            sending.producer.credits.waiting.appendleft((correlation, sending))

    def _transaction_lost(self) -> None:
        error = TransactionRolledBack("the connection was lost during the transaction", 111)
        pending = list(self._pending.values())
        self._pending.clear()
        for sending in pending:
            sending.producer.refused(sending, error)
        for credits in self.credits.values():
            if credits.waiting:
                self._in_transaction = True
                credits.fail(error)
        if self._in_transaction:
            self.rolled_back = True
            self._in_transaction = False

    def _requests_lost(self, error: ConnectionLost) -> None:
        waiting = list(self._requests)
        if self._current is not None:
            waiting.insert(0, self._current)
            self._current = None
        correlated = list(self._correlated.values())
        self._requests.clear()
        self._correlated.clear()
        for request in waiting + correlated:
            if request.at_loss == REPEAT and not request.reply.done:
                request.repeated = request.repeated or request.sent
                request.sent = False
                request.deadline = 0
                if request.correlation == NO_CORRELATION:
                    self._requests.append(request)
                else:
                    self._correlated[request.correlation] = request
            elif request.at_loss == FORGET:
                request.reply.resolve(None)
            elif request.at_loss == ROLLED_BACK:
                if request.sent:
                    request.reply.fail(_outcome_unknown(error))
                else:
                    text = "the connection was lost before the commit"
                    request.reply.fail(TransactionRolledBack(text, 111))
            elif request.at_loss == FAIL:
                request.reply.fail(error)

    def check_deadlines(self, now: int) -> None:
        """Tell who waits too long. The answer, should it still come, is thrown away."""
        current = self._current
        if current is not None and current.deadline and now >= current.deadline:
            current.reply.fail(self.connection.timed_out())
        for request in list(self._correlated.values()):
            if request.deadline and now >= request.deadline:
                request.reply.fail(self.connection.timed_out())

    # -- frames in ------------------------------------------------------------------------------
    def receive(self, packet_type: int, data: bytes, start: int, end: int) -> None:
        """One frame's body data[start:end]. DecodeError and ProtocolError end the connection."""
        if packet_type == types.SESS_RECEIVE_MSG:
            self._receive_message(data, start, end)
        elif packet_type == types.NULL_RESPONSE:
            self._done(int.from_bytes(data[start:end], "big", signed=True) if end > start else -1)
        elif packet_type == types.SESS_RECEIVE_LARGE_MSG:
            reader = Reader(data, start, end)
            consumer = self.consumers.get(reader.int64("consumer_id"))
            if consumer is not None:
                consumer.deliver_large(reader, end - start + HEADER_BYTES)
        elif packet_type == types.SESS_RECEIVE_CONTINUATION:
            consumer = self.consumers.get(Reader(data, end - 8, end).int64("consumer_id"))
            if consumer is not None:
                cost = end - start + HEADER_BYTES
                consumer.deliver_continuation(Reader(data, start, end - 8), cost)
        elif packet_type == types.PACKETS_CONFIRMED:
            return
        else:
            version = self.connection.version
            self._packet(codec.decode_range(packet_type, data, start, end, version))
        if self.settings.confirmation_window != -1:
            self._confirm(packet_type, end - start + HEADER_BYTES)

    def _confirm(self, packet_type: int, frame_bytes: int) -> None:
        if self.confirmations.received(packet_type, frame_bytes, True):
            self.confirm()

    def confirm(self) -> None:
        """Let the broker drop what it keeps for a reattach."""
        if self.open and self.confirmations.pending():
            self.send_packet(PacketsConfirmed(self.confirmations.take()))

    def _receive_message(self, data: bytes, start: int, end: int) -> None:
        tail = Reader(data, end - 12, end)
        consumer = self.consumers.get(tail.int64("consumer_id"))
        if consumer is None:
            return
        delivery_count = tail.int32("delivery_count")
        message = decode_message(Reader(data, start, end - 12))
        consumer.deliver(message, delivery_count, end - start + HEADER_BYTES)

    def _done(self, correlation: int) -> None:
        sending = self._pending.pop(correlation, None)
        if sending is not None:
            sending.producer.accepted(sending)
            return
        self._answer(correlation, None)

    def _packet(self, packet: Packet) -> None:
        if isinstance(packet, ExceptionResponse):
            self._exception(packet)
        elif isinstance(packet, ProducerCredits):
            credits = self.credits.get(packet.address)
            if credits is not None:
                credits.granted(packet.credits)
        elif isinstance(packet, ProducerFailCredits):
            credits = self.credits.get(packet.address)
            if credits is not None:
                credits.fail(AddressFull(f"address {packet.address} is full", 210))
        elif isinstance(packet, DisconnectConsumer):
            consumer = self.consumers.pop(packet.consumer_id, None)
            if consumer is not None:
                text = f"queue {consumer.queue} was deleted"
                consumer.fail(QueueDoesNotExist(text, 100))
        elif isinstance(packet, NullResponse):
            self._done(packet.correlation)
        else:
            self._answer(getattr(packet, "correlation", NO_CORRELATION), packet)

    def _exception(self, packet: ExceptionResponse) -> None:
        error = error_of(packet.code, packet.message)
        sending = self._pending.pop(packet.correlation, None)
        if sending is not None:
            if sending.repeated and isinstance(error, DuplicateId):
                # It had arrived before the connection was lost.
                sending.producer.accepted(sending)
            else:
                sending.producer.refused(sending, error)
            return
        request = self._take(packet.correlation)
        if request is None:
            self.connection.events.session_error(self, error)
        elif request.repeated and request.tolerated == packet.code:
            request.reply.resolve(None)
        else:
            request.reply.fail(error)
        self._pump()

    def _answer(self, correlation: int, packet: Packet | None) -> None:
        request = self._take(correlation)
        if request is not None:
            request.reply.resolve(packet)
            if self.closed and self._current is None and not self._requests:
                self.finish(Closed("the session is closed"))
        self._pump()

    def _take(self, correlation: int) -> Request | None:
        if correlation != NO_CORRELATION:
            return self._correlated.pop(correlation, None)
        request = self._current
        self._current = None
        return request


class _Creation:
    """Connects the answer to a consumer's creation with who asked for it."""

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


def _answered() -> Reply:
    reply = Reply()
    reply.resolve(None)
    return reply


def _outcome_unknown(error: ClientError) -> TransactionOutcomeUnknown:
    return TransactionOutcomeUnknown(
        f"the connection was lost while the commit was on its way ({error.text}): "
        "the transaction happened wholly or not at all"
    )
