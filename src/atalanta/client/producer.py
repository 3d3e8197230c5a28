"""Producer for one address, and requests with replies."""

from __future__ import annotations

import struct
import time
import uuid
from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Final

from atalanta.client.encoding import append_properties, encode_value, encoded_name
from atalanta.client.large.body_stream import BodyStream
from atalanta.client.message import ANYCAST, MULTICAST, Message, Property, ReceivedMessage, now_ms
from atalanta.client.message_rate import Paced, pace_of
from atalanta.client.shells.awaitables import READY, Acknowledgement
from atalanta.wire.core.client.errors import CallTimedOut, ClientError, Closed, SendFailed
from atalanta.wire.core.client.producer import ClientProducer, OutgoingMessage
from atalanta.wire.core.client.reply import Reply

if TYPE_CHECKING:
    from atalanta.client.consumer import Consumer
    from atalanta.client.options import ClientOptions
    from atalanta.client.shells.shell import ClientShell
    from atalanta.wire.core.client.session import ClientSession

_fixed = struct.Struct(">BbBqqb").pack
_count = struct.Struct(">Bi").pack
_counter = struct.Struct(">q").pack
_ROUTING: Final = {
    MULTICAST: encoded_name("_AMQ_ROUTING_TYPE") + b"\x03\x00",
    ANYCAST: encoded_name("_AMQ_ROUTING_TYPE") + b"\x03\x01",
}
_DUPLICATE_ID: Final = encoded_name("_AMQ_DUPL_ID")
_AUTOMATIC_ID: Final = _DUPLICATE_ID + b"\x04\x00\x00\x00\x18"  # bytes, 24 of them
_GROUP_ID: Final = encoded_name("_AMQ_GROUP_ID")
_CORRELATION_ID: Final = encoded_name("JMSCorrelationID")
_REPLY_TO: Final = encoded_name("JMSReplyTo")
_NO_PROPERTIES: Final[Mapping[str, Property]] = {}


class Encoder:
    """The encoder of headers for one address (HDR after the message id)."""

    def __init__(self, address: str, routing: str | None, automatic_ids: bool, group_id: str | None = None) -> None:
        self._address = b"\x01" + encoded_name(address)
        self._routing = b"" if routing is None else _ROUTING[routing]
        self._prefix = uuid.uuid4().bytes
        self._automatic_ids = automatic_ids
        self._group_id = group_id  # of the URL; it replaces that of a message, as in ClientProducerImpl
        self._serial = 0

    def head(self, message: Message) -> bytes:
        """Encodes a header. Raises TypeError or ValueError, which names an unusable property or header."""
        properties = message.properties or _NO_PROPERTIES
        count = len(properties)
        parts = [self._address, b"", b""]
        if self._routing:
            count += 1
            parts.append(self._routing)
        duplicate_id = message.duplicate_id
        if duplicate_id is not None:
            count += 1
            parts.append(_DUPLICATE_ID)
            parts.append(encode_value("duplicate_id", duplicate_id))
        elif self._automatic_ids:
            count += 1
            self._serial += 1
            parts.append(_AUTOMATIC_ID)
            parts.append(self._prefix)
            parts.append(_counter(self._serial))
        if properties:
            append_properties(parts, properties)
        group_id = self._group_id or message.group_id
        if group_id is not None:
            count += 1
            parts.append(_GROUP_ID)
            parts.append(encode_value("group_id", group_id))
        if message.correlation_id is not None:
            count += 1
            parts.append(_CORRELATION_ID)
            parts.append(encode_value("correlation_id", message.correlation_id))
        if message.reply_to is not None:
            count += 1
            parts.append(_REPLY_TO)
            parts.append(encode_value("reply_to", message.reply_to))
        parts[1] = self._headers(message)
        parts[2] = _count(1, count) if count else b"\x00"
        return b"".join(parts)

    def _headers(self, message: Message) -> bytes:
        timestamp = message.timestamp_ms
        if timestamp is None:
            timestamp = now_ms()
        user_id = message.user_id
        priority = message.priority
        if not 0 <= priority <= 9:
            raise ValueError(f"priority {priority} is not between 0 and 9")
        durable = 1 if message.durable else 0
        try:
            fixed = _fixed(
                0, message.type, durable, message.expires_at_ms, timestamp, priority
            )
        except struct.error as error:
            raise ValueError(f"type, expires_at_ms or timestamp_ms: {error}") from None
        return fixed if user_id is None else b"\x01" + user_id.bytes + fixed[1:]


def group_of(options: ClientOptions) -> str | None:
    """Returns the group of all messages of a new producer: one of its own with autoGroup, or the URL's groupID."""
    return uuid.uuid4().hex if options.auto_group else options.group_id or None


class Producer:
    """Sends to `address`. At most `window` messages are unconfirmed at a time.

    A message is confirmed when the broker has stored it. While the connection is lost (with reconnectAttempts) messages
    wait. After a reconnect unconfirmed messages are sent again, in order, under the same duplicate ids, so that none is
    duplicated.
    """

    def __init__(
        self, shell: ClientShell, producer: ClientProducer, encoder: Encoder, window: int
    ) -> None:
        options = shell.options
        self.address = producer.address
        self.window = window
        self._shell = shell
        self._producer = producer
        self._encoder = encoder
        self._confirm_durable = options.block_on_durable_send
        self._confirm_others = options.block_on_non_durable_send
        self._room: Acknowledgement = shell.waiting(self._wait_for_room)
        self._credits: Acknowledgement = shell.waiting(producer.queue.empty)
        self._pace = pace_of(options.producer_max_rate)

    @property
    def unconfirmed(self) -> int:
        """Returns the number of messages the broker has not confirmed yet."""
        return self._producer.unconfirmed

    @property
    def confirmed(self) -> int:
        """Returns the number of messages confirmed since this producer was created."""
        return self._producer.confirmed

    @property
    def resent(self) -> int:
        """Returns the number of messages sent again after a lost connection."""
        return self._producer.resent

    @property
    def repeats(self) -> int:
        """Returns the number of messages whose duplicate id the node had before; 0 with a broker that does not say."""
        return self._producer.repeats

    @property
    def blocked(self) -> bool:
        """Returns True if messages wait for credits: the broker grants none while the address or the disk is full."""
        return len(self._producer.queue.waiting) > 0

    async def send(
        self,
        message: Message | ReceivedMessage,
        *,
        ttl_s: float | None = None,
        delay_s: float | None = None,
        priority: int | None = None,
    ) -> None:
        """Sends a message and returns when the broker has confirmed it. Raises the broker's error.

        MessageDropped: an Atalanta node has confirmed it and dropped it, as it says.

        `ttl_s`: it expires so many seconds from now; `delay_s`: it is delivered no sooner than that; `priority` 0 to 9.
        They replace those of the message. A message with a `stream` is always confirmed, and is sent after all earlier
        messages of this producer.
        """
        if ttl_s is not None or delay_s is not None or priority is not None:
            message = outgoing(message).with_times(ttl_s, delay_s, priority)
        if isinstance(message, Message) and message.stream is not None:
            whole = await self._streamed(message)
            if whole is None:
                return
            message = whole
        if self._pace is not None:
            await self._pace.wait(self._shell)
        sent, confirm = self._send(message)
        if confirm:
            reply = Reply()
            sent.reply = reply
            await self._shell.answer(reply)
        else:
            await self._credits

    def send_soon(
        self,
        message: Message | ReceivedMessage,
        *,
        ttl_s: float | None = None,
        delay_s: float | None = None,
        priority: int | None = None,
    ) -> Acknowledgement:
        """Sends a message without waiting for the confirmation. Await the result: it waits while the window is full.

        The next call or `drain` raises SendFailed for a refused message. The arguments are those of `send`.
        """
        if ttl_s is not None or delay_s is not None or priority is not None:
            message = outgoing(message).with_times(ttl_s, delay_s, priority)
        if self._producer.errors:
            self._raise_errors()
        _, confirm = self._send(message)
        if not confirm:
            room = READY if not self._producer.queue.waiting else self._credits
        else:
            room = READY if self._producer.unconfirmed < self.window else self._room
        return room if self._pace is None else Paced(self._shell, self._pace, room)

    async def drain(self) -> None:
        """Returns when every sent message is confirmed. Raises SendFailed if one was refused."""
        await self._shell.answer(self._producer.wait_for_room(0))
        await self._shell.answer(self._producer.queue.empty())
        if self._producer.errors:
            self._raise_errors()

    async def close(self) -> None:
        """Drains, then closes the producer."""
        if not self._producer.closed:
            try:
                await self.drain()
            finally:
                self._producer.session.close_producer(self._producer)
                self._shell.after_call()

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            await self.close()
        elif not self._producer.closed:
            self._producer.session.close_producer(self._producer)

    def _send(self, message: Message | ReceivedMessage) -> tuple[OutgoingMessage, bool]:
        if self._producer.closed:
            raise Closed(f"the producer of {self.address} is closed")
        if message.__class__ is not Message:
            message = outgoing(message)
        if message.stream is not None:
            raise ValueError("send_soon cannot send a message with a stream: use `send`")
        if self._pace is not None:
            self._pace.spend()
        confirm = self._confirm_durable if message.durable else self._confirm_others
        return self._producer.send(message.body, self._encoder.head(message), confirm), confirm

    async def _streamed(self, message: Message) -> Message | None:
        """Sends a streamed body and returns None; for a short stream returns the ordinary message to send."""
        producer = self._producer
        if producer.closed:
            raise Closed(f"the producer of {self.address} is closed")
        producer.session.check_usable()
        body = BodyStream(self._shell, message)
        await body.begin()
        whole = body.whole
        if whole is not None:
            return message.with_body(whole)
        await self._shell.answer(producer.wait_for_room(0))
        await self._shell.answer(producer.queue.empty())
        if self._pace is not None:
            await self._pace.wait(self._shell)
            self._pace.spend()
        await body.send(producer, self._encoder.head(message))
        return None

    def _wait_for_room(self) -> Reply:
        return self._producer.wait_for_room(self.window - 1)

    def _raise_errors(self) -> None:
        producer = self._producer
        errors: list[ClientError] = producer.errors
        count = producer.refused_count
        producer.errors = []
        producer.refused_count = 0
        raise SendFailed(errors, count)


class ReplyQueue:
    """The temporary queue of a connection for replies, which are told apart by correlation ids.

    Whichever request waits takes the replies of all.
    """

    def __init__(self, session: ClientSession, name: str, consumer: Consumer) -> None:
        self.name = name
        self._session = session
        self._consumer = consumer
        self._replies: dict[str | bytes, ReceivedMessage | None] = {}  # None: it is awaited

    async def request(
        self, producer: Producer, message: Message | ReceivedMessage, timeout_s: float
    ) -> ReceivedMessage:
        """Sends a request and returns its reply. Raises CallTimedOut, or ValueError for an id that is in use."""
        message = copy(outgoing(message))
        if message.user_id is None:
            message.user_id = uuid.uuid4()
        if message.correlation_id is None:
            # A JMS service answers with the correlation id of the request, or with its message id: the same here.
            message.correlation_id = f"ID:{message.user_id}"
        message.reply_to = f"temp-queue://{self.name}"
        key = message.correlation_id
        if key in self._replies:
            raise ValueError(f"a request with the correlation id {key!r} waits already")
        until = time.monotonic() + timeout_s
        self._replies[key] = None
        try:
            await producer.send(message)
            while (reply := self._replies[key]) is None:
                self._session.check_usable()
                left_s = until - time.monotonic()
                if left_s <= 0:
                    raise CallTimedOut(f"{producer.address}: no reply within {timeout_s:g} s", 3)
                found = await self._consumer.receive(left_s)
                if found is not None and found.correlation_id in self._replies:
                    self._replies[found.correlation_id] = found
            return reply
        finally:
            del self._replies[key]


def outgoing(message: object) -> Message:
    """Returns a Message; a received message is copied into one. TypeError for other types."""
    if isinstance(message, Message):
        return message
    if isinstance(message, ReceivedMessage):
        return message.copy()
    raise TypeError(
        f"a message to send must be an atalanta.client.Message, not {type(message)}: make one with"
        " atalanta.client.Message(body)"
    )
