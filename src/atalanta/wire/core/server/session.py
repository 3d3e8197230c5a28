"""The server's side of one CORE session: sends and acknowledgements become kernel calls, deliveries become frames.

Hot packets (send, acknowledge, credits) are read in place. Errors of the broker are answered as EXCEPTION if the client
waits for an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i64_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64, u8

from atalanta.kernel.endpoint import SILENT, Reply
from atalanta.kernel.errors import ADDRESS_FULL, BrokerError
from atalanta.kernel.queue.delivery.bridge_origin import shown
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.sessions.session_endpoint import SessionEndpoint
from atalanta.message.codec import decode_message, write_message
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.message.message import EMBEDDED, Message
from atalanta.message.repetition import disclaim
from atalanta.wire.client_output import DELIVERED_BYTES_MAX
from atalanta.wire.core import packet_types
from atalanta.wire.core.confirmations import Confirmations
from atalanta.wire.core.frames import FRAME_OVERHEAD_BYTES
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.old_message import (
    END_BYTES,
    decode_old_message,
    is_old,
    write_old_message,
)
from atalanta.wire.core.server.large_delivery import LargeDelivery
from atalanta.wire.core.server.large_receiver import LargeReceiver
from atalanta.wire.core.server.requests.old_names import JMS_KEY, addressed
from atalanta.wire.core.server.requests.packet_prefixes import PacketPrefixes
from atalanta.wire.core.server.resend_buffer import Replay
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.memory.large_body import LargeBody
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.reference import Reference
    from atalanta.wire.core.server.frame_connection import FrameConnection

NO_CORRELATION: Final = -1
NO_SENDER: Final = -1
ACKNOWLEDGE_BYTES: Final = 17  # i64 consumer, i64 message, bool requires response
FORCED_DELIVERY: Final = "_hornetq.forced.delivery.seq"


class Confirming(Reply):
    """Writes PACKETS_CONFIRMED; the token is the number of the last processed frame."""

    def __init__(self, session: CoreSession) -> None:
        self.session = session

    def done(self, token: int) -> None:
        session = self.session
        out = session.connection.start_frame(packet_types.PACKETS_CONFIRMED, session.channel, 4)
        write_i32_be(out, token)


class CoreSession(SessionEndpoint):
    """A session. `channel` is the client's number for it; tokens are correlation ids (SILENT: no answer wanted).

    `old`: its client is of Artemis 1.0 to 1.5, with other layouts and names (packets/old_message.py, old_names.py).
    """

    def __init__(
        self, connection: FrameConnection, channel: int, version: int, window_bytes: int
    ) -> None:
        self.connection = connection
        self.channel: i64 = channel
        self.version = version
        self.old: bool = is_old(version)
        # An old client names an address in one message; the next ones without any are for the same address.
        self.default_address: str | None = None
        self.confirmations = Confirmations(window_bytes)
        self.replay: Replay | None = None  # set by the connection, if the client may reattach
        self.large: LargeReceiver | None = None
        prefixes = connection.address_prefixes()
        self.prefixes: PacketPrefixes | None = None if prefixes is None else PacketPrefixes(prefixes)
        # Outcomes of sends that are not answered yet, by token; None unless the client has asked for them.
        self.notices: dict[int, int] | None = None
        self.kernel: Session | None = None  # set by the connection before the first frame

    @property
    def broker(self) -> Broker:
        return self.connection.host.broker

    @property
    def session(self) -> Session:
        assert self.kernel is not None
        return self.kernel

    # -- confirmations --------------------------------------------------------------------------
    def confirm(self) -> None:
        """Confirms the processed frames once they are on disk: the client takes that as an answer."""
        if self.large is not None and self.large.complete:
            return  # confirmed when its file is synced
        if self.session.waits():
            return  # its last frame is not processed yet
        if self.confirmations.pending():
            broker = self.connection.host.broker
            broker.store.reply_when_durable(
                broker.journal.last, Confirming(self), self.confirmations.take()
            )

    # -- sending --------------------------------------------------------------------------------
    def send(self, now: int, data: bytes, start: int, end: int) -> None:
        """Processes SESS_SEND."""
        reader = self.connection.shared.reader
        reader.begin(data, start, end)
        message = decode_old_message(reader) if self.old else decode_message(reader)
        if message.kind == EMBEDDED:
            # Only clusters with a real Artemis need it: a node starts without.
            from atalanta.wire.amqp.embedded_message import unwrap

            message = unwrap(message, now, self.broker.trace, "SESS_SEND")
        self.complete_address(message)
        requires_response = reader.boolean("requires_response")
        correlation = self._correlation(reader)
        self.publish(now, message, requires_response, correlation, self._sender_id(reader))

    def complete_address(self, message: Message) -> None:
        """Gives the message of a client the address that it is for, and removes the acceptor's prefix."""
        if self.old:
            if not self.default_address:
                self.default_address = message.address
            elif not message.address:
                message.address = self.default_address
        if self.prefixes is not None:
            self.prefixes.names.apply(message)

    def _sender_id(self, reader: Reader) -> int:
        """Returns the client's number of the producer of a send, by version."""
        if self.version >= packet_types.SENDER_ID_VERSION and reader.left() >= 4:
            return reader.int32("sender_id")
        return NO_SENDER

    def _correlation(self, reader: Reader) -> int:
        """Returns the correlation id of a send, by version."""
        if self.version >= 130 and reader.left() >= 8:
            return reader.int64("correlation_id")
        return NO_CORRELATION

    def begin_large(self, reader: Reader) -> None:
        """Processes SESS_SEND_LARGE."""
        if self.large is not None:
            self.large.abort()  # its producer has given up
        self.large = LargeReceiver(self, reader)

    def continue_large(self, now: int, reader: Reader) -> None:
        """Processes SESS_SEND_CONTINUATION."""
        large = self.large
        if large is None:
            raise ProtocolError("SESS_SEND_CONTINUATION without SESS_SEND_LARGE before it")
        piece = reader.take(reader.int32("body_length"), "body")
        more = reader.boolean("continues")
        body_size = -1 if more else reader.int64("total_body_size")
        requires_response = reader.boolean("requires_response")
        correlation = self._correlation(reader)
        sender_id = self._sender_id(reader)
        large.add(piece)
        if more:
            if requires_response:
                self.done(correlation)
            return
        large.finish(now, body_size, requires_response, correlation, sender_id)

    def refuse(self, error: BrokerError, token: int) -> None:
        """Refuses a message; its transaction, if any, can only be rolled back."""
        session = self.session
        if not session.auto_commit_sends:
            session.transaction.rollback_only = error
        self.failed(token, error)

    def publish(
        self, now: int, message: Message, requires_response: bool, correlation: int, sender_id: int
    ) -> None:
        """Sends a message; a refusal is answered if the client waits for an answer."""
        token = correlation if requires_response else SILENT
        session = self.session
        if message.special and message.scheduled_ms > 0 and not session.identity.cluster:
            disclaim(message)
        try:
            session.send(now, message, token)
        except BrokerError as error:
            self.failed(token, error)
            return
        if sender_id >= 0:
            session.producers.count(sender_id, message)
        elif self.version < packet_types.SENDER_ID_VERSION:
            session.producers.count_unnamed(now, message)

    # -- consuming ------------------------------------------------------------------------------
    def acknowledge(self, now: int, data: bytes, start: i64, end: i64, individual: bool) -> None:
        """Processes SESS_ACKNOWLEDGE or, with `individual`, SESS_INDIVIDUAL_ACKNOWLEDGE."""
        if end - start < ACKNOWLEDGE_BYTES:
            raise DecodeError("acknowledge", int(start), f"{end - start} bytes")
        consumer_id = int(read_i64_be(data, start))
        message_id = int(read_i64_be(data, start + 8))
        token = NO_CORRELATION if data[start + 16] != 0 else SILENT
        try:
            self.session.acknowledge(now, consumer_id, message_id, individual, token)
        except BrokerError as error:
            self.failed(token, error)

    def add_credits(self, reader: Reader) -> None:
        """Processes SESS_FLOWTOKEN."""
        consumer_id = reader.int64("consumer_id")
        amount = reader.int32("credits")
        if consumer_id in self.session.consumers:
            self.session.add_credits(consumer_id, amount)

    # -- SessionEndpoint: frames out -----------------------------------------------------------------
    def deliver(self, consumer: QueueConsumer, reference: Reference) -> int:
        message = reference.message
        connection = self.connection
        try:
            if consumer.marked is not None:
                message = consumer.marked
            if message.special and connection.host.broker.origins.seen:
                message = shown(message)
            if self.old:
                message = self._as_known(consumer, message)
            head_bytes = len(message.head)  # encoded here, if a header has changed
        except Exception as error:  # nothing was written, whatever it is
            why = f"{error.__class__.__name__}: {error}"
            connection.set_aside(self.session, consumer, int(reference.message.id), why)
            return 0
        if message.large is not None:
            return self._deliver_large(consumer, reference, message, message.large)
        body_bytes = len(message.body) + head_bytes + 24
        if self.old:
            body_bytes += END_BYTES
        out = connection.start_frame(packet_types.SESS_RECEIVE_MSG, self.channel, body_bytes)
        if self.old:
            write_old_message(out, message, message.id)
        else:
            write_message(out, message, message.id)
        write_i64_be(out, consumer.id)
        count: i32 = reference.delivery_count
        write_i32_be(out, count)
        if len(out) > DELIVERED_BYTES_MAX:  # as `delivered` does; here it is no call, for every message
            connection.delivered_enough()
        if consumer.pre_acknowledge:
            self._pre_acknowledge(consumer, reference)
        return body_bytes + FRAME_OVERHEAD_BYTES

    def _as_known(self, consumer: QueueConsumer, message: Message) -> Message:
        """Returns the message of an old client: a JMS client gets the prefix of its destination back."""
        return addressed(message, consumer.queue) if JMS_KEY in self.session.metadata else message

    def _deliver_large(
        self, consumer: QueueConsumer, reference: Reference, message: Message, body: LargeBody
    ) -> int:
        cost = LargeDelivery(self, consumer, reference, message, body).begin()
        if consumer.pre_acknowledge:
            self._pre_acknowledge(consumer, reference)
        return cost

    def _pre_acknowledge(self, consumer: QueueConsumer, reference: Reference) -> None:
        consumer.unacknowledged.pop(reference.message.id)
        broker = self.connection.host.broker
        consumer.counts.acknowledged_at = broker.store.now
        broker.store.acknowledge([reference], None, 0)

    def drained(self, consumer: QueueConsumer, token: int) -> None:
        """Writes the marker message that ends a receive without wait (SESS_FORCE_CONSUMER_DELIVERY)."""
        message = Message.create(consumer.queue.spec.address, b"", 0, False, 0, 0)
        message.properties.put(FORCED_DELIVERY, token)
        writer = BytesWriter()
        if self.old:
            write_old_message(writer, self._as_known(consumer, message), 0)
        else:
            write_message(writer, message, 0)
        write_i64_be(writer, consumer.id)
        write_i32_be(writer, 0)
        self.connection.send_frame(packet_types.SESS_RECEIVE_MSG, self.channel, writer.getvalue())

    def done(self, token: int) -> None:
        if token == SILENT:
            return
        if self.version < 130:
            self.connection.start_frame(packet_types.NULL_RESPONSE, self.channel, 0)
            return
        if self.notices:
            outcome = self.notices.pop(token, 0)
            if outcome != 0:
                self._done_with_notice(token, outcome)
                return
        out = self.connection.start_frame(packet_types.NULL_RESPONSE, self.channel, 8)
        correlation: i64 = token
        write_i64_be(out, correlation)

    def _done_with_notice(self, token: i64, outcome: int) -> None:
        """Writes NULL_RESPONSE with one byte more, which only a client that has asked for it gets."""
        out = self.connection.start_frame(packet_types.NULL_RESPONSE, self.channel, 9)
        write_i64_be(out, token)
        out.append(u8(outcome))

    def takes_notices(self) -> bool:
        return self.notices is not None

    def notice(self, token: int, outcome: int) -> None:
        if self.notices is not None and token != SILENT:
            self.notices[token] = outcome

    def take_notices(self) -> None:
        """Tells the client from now on what became of its messages (NOTICES_KEY)."""
        if self.notices is None:
            self.notices = {}

    def failed(self, token: int, error: BrokerError) -> None:
        """Answers with the error if the client waits; else records it in the trace."""
        if self.notices:
            self.notices.pop(token, 0)
        if token == SILENT:
            self.connection.host.broker.trace.event(
                "request_refused",
                {"session": self.session.name, "code": error.code, "why": error.text},
            )
            return
        self.connection.send_exception(self.channel, error, token, self.version)

    def consumer_gone(self, consumer: QueueConsumer, why: str) -> None:
        if consumer.stream is not None:
            consumer.stream.abort()
        self.session.consumers.pop(consumer.id, None)
        if self.version < packet_types.DISCONNECT_CONSUMER_VERSION:
            return  # it has no such packet
        out = self.connection.start_frame(packet_types.DISCONNECT_CONSUMER, self.channel, 8)
        consumer_id: i64 = consumer.id
        write_i64_be(out, consumer_id)

    def credits(self, address: str, amount: int) -> None:
        self._producer_credits(packet_types.SESS_PRODUCER_CREDITS, address, amount)

    def refuse_credits(self, address: str, amount: int) -> None:
        self._producer_credits(packet_types.SESS_PRODUCER_FAIL_CREDITS, address, amount)

    def _producer_credits(self, kind: int, address: str, amount: int) -> None:
        if self.prefixes is not None:
            address = self.prefixes.credited(address)
        encoded = address.encode("utf-16-le", "surrogatepass")
        out = self.connection.start_frame(kind, self.channel, 8 + len(encoded))
        write_i32_be(out, amount)
        write_i32_be(out, len(encoded))
        out.write(encoded)

    def cut_off(self, why: str) -> None:
        connection = self.connection
        error = BrokerError(ADDRESS_FULL, why)
        connection.send_exception(self.channel, error, NO_CORRELATION, self.version)
        connection.host.closing.append((connection.conn, why))

    def hold_input(self) -> None:
        self.connection.hold_input()

    def release_input(self) -> None:
        self.connection.release_input()
        if self.confirmations.window_bytes != -1 and not self.session.closed:
            self.confirm()

    def reply(self, packet: Packet) -> None:
        self.connection.send(packet, int(self.channel))

    def done_when_durable(self, token: int) -> None:
        """Sends NULL_RESPONSE once all records so far are on disk."""
        broker = self.broker
        broker.store.reply_when_durable(broker.journal.last, self, token)

    # -- the end --------------------------------------------------------------------------------
    def close(self, now: int) -> None:
        """Processes SESS_CLOSE, answered when all operations of the session are on disk."""
        self.closed(now, False)
        self.done_when_durable(NO_CORRELATION)
        self.connection.remove_session(int(self.channel))

    def ended_by_operator(self, now: int) -> None:
        self.closed(now, True)
        self.connection.end_by_operator(int(self.channel))

    def closed(self, now: int, failed: bool) -> None:
        kernel = self.kernel
        if self.large is not None:
            self.large.abort()
            self.large = None
        if kernel is not None:
            if self.replay is not None:
                self.connection.forget_replay(self.replay)
            kernel.close(now, failed)
            owner = (kernel.client.connection, int(self.channel))
            for key, value in kernel.metadata.items():
                self.connection.shared.remove_metadata(owner, key, value)
            kernel.metadata = {}
