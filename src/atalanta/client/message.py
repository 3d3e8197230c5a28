"""Messages for programs: one class to send, one for received messages.

Bodies are those of the JMS client: text is a nullable SimpleString in a message of type 3, bytes are raw in one of
type 4, a map is a set of typed properties in one of type 5.
"""

from __future__ import annotations

import math
import time
import uuid
import zlib
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from atalanta.client.encoding import RESERVED, decode_map, encode_map, encode_text, python_values
from atalanta.client.large.body_file import LargeFile
from atalanta.message.encoding.buffer import Reader
from atalanta.message.message import BYTES, COMPRESSED, DEFAULT, MAP, TEXT
from atalanta.message.message import Message as BrokerMessage
from atalanta.message.properties import PropertyValue
from atalanta.wire.core.client.errors import ClientError, IllegalState, MessageTooLarge

if TYPE_CHECKING:
    from atalanta.client.shells.awaitables import Acknowledgement, Settler
    from atalanta.wire.core.client.consumer import Delivery

Property = PropertyValue

ANYCAST: Final = "anycast"
MULTICAST: Final = "multicast"
ROUTING_NAMES: Final = (MULTICAST, ANYCAST)
# The factor by which an inflated body may exceed largeMessageMaxBytes, the limit of the packed one.
INFLATED_BYTES_MAX: Final = 256 << 20
SCHEDULED: Final = "_AMQ_SCHED_DELIVERY"  # the instant from which on a message is delivered
LONG_MAX: Final = (1 << 63) - 1


class Message:
    """A message to send: `Message("hello")`, `Message(b"raw")`; or one of `text`, `map`, `stream`; or an empty body.

    `body` is bytes, or text, which is the same as `text`.

    `stream` is a body that is read while it is sent and is never in memory as a whole. It is a binary file or another
    object with `read`, an iterable of bytes, or bytes themselves (a memoryview, a mapped file). The asyncio client also
    accepts an asynchronous `read` or iterable. One `send` reads it from its current position; it is not closed. `size`
    is the number of bytes to send; a shorter stream is an error.

    properties: str -> bool, int (Java long), float (double), str, bytes or None; Byte, Short, Int, Float and Char keep
    the other Java types. `timestamp_ms` and `expires_at_ms` are instants, in milliseconds since the epoch: the first
    defaults to the current time, the second is 0 for never. A time to live or a delay is an argument of `send`.
    `duplicate_id`: a broker accepts only the first message with the same id. `type` is CORE's message type; by default
    the body decides it.
    """

    __slots__ = (
        "body", "correlation_id", "duplicate_id", "durable", "expires_at_ms", "group_id",
        "priority", "properties", "reply_to", "size", "stream", "timestamp_ms", "type", "user_id",
    )  # fmt: skip

    def __init__(
        self,
        body: bytes | bytearray | memoryview | str | None = None,
        *,
        text: str | None = None,
        map: Mapping[str, Property] | None = None,
        stream: Any = None,
        size: int | None = None,
        properties: Mapping[str, Property] | None = None,
        durable: bool = True,
        priority: int = 4,
        expires_at_ms: int = 0,
        timestamp_ms: int | None = None,
        user_id: uuid.UUID | None = None,
        group_id: str | None = None,
        correlation_id: str | bytes | None = None,
        reply_to: str | None = None,
        duplicate_id: str | bytes | None = None,
        type: int | None = None,
    ) -> None:
        if text is not None or isinstance(body, str):
            if text is None:
                text = str(body)
            elif body is not None:
                raise ValueError("a message has one of body, text and map")
            if map is not None or stream is not None:
                raise ValueError("a message has one of body, text, map and stream")
            self.body = encode_text(text)
            kind = TEXT
        elif map is not None:
            if body is not None:
                raise ValueError("a message has one of body, text and map")
            self.body = encode_map(map)
            kind = MAP
        elif body is not None:
            self.body = body if body.__class__ is bytes else _bytes_of(body)
            kind = BYTES
        else:
            self.body = b""
            kind = DEFAULT if stream is None else BYTES
        if stream is not None and kind != BYTES or body is not None and stream is not None:
            raise ValueError("a message has one of body, text, map and stream")
        if size is not None and (stream is None or size < 0):
            raise ValueError(f"size={size}: it is the number of bytes to read from `stream`")
        self.stream = stream
        self.size = size
        self.type = kind if type is None else type
        self.properties = properties
        self.durable = durable
        self.priority = priority
        self.expires_at_ms = expires_at_ms
        self.timestamp_ms = timestamp_ms
        self.user_id = user_id
        self.group_id = group_id
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.duplicate_id = duplicate_id

    @property
    def text(self) -> str | None:
        """Returns the body of a text message."""
        if self.type != TEXT or not self.body:
            return None
        return Reader(self.body).nullable_simple_string("text body")

    def with_times(self, ttl_s: float | None, delay_s: float | None, priority: int | None) -> Message:
        """Returns a copy that expires and becomes available so many seconds from now, None: as this one does."""
        if delay_s is not None and not 0 <= delay_s < math.inf:
            raise ValueError(f"delay_s={delay_s!r}: it is a number of seconds, at least 0")
        if ttl_s is not None and not 0 < ttl_s < math.inf:
            raise ValueError(f"ttl_s={ttl_s!r}: it is a number of seconds above 0; without it the message stays")
        if ttl_s is not None and delay_s is not None and ttl_s <= delay_s:
            raise ValueError(f"ttl_s={ttl_s!r} ends before delay_s={delay_s!r}: both begin with the send")
        again = copy(self)
        now = now_ms()
        if ttl_s is not None:
            again.expires_at_ms = min(now + math.ceil(ttl_s * 1_000), LONG_MAX)
        if delay_s:
            at = min(now + math.ceil(delay_s * 1_000), LONG_MAX)
            again.properties = {**(self.properties or {}), SCHEDULED: at}
        if priority is not None:
            again.priority = priority
        return again

    def with_body(self, body: bytes) -> Message:
        """Returns a copy with this body in place of its stream."""
        again = copy(self)
        again.stream = again.size = None
        again.body = body
        return again

    def __repr__(self) -> str:
        if self.stream is not None:
            return f"Message(type={self.type}, stream={self.stream!r})"
        return f"Message(type={self.type}, {len(self.body)} bytes)"


class ReceivedMessage:
    """A message from a queue. Every part is decoded on demand.

    `lost`: the connection was lost after the message was received. The broker delivers it again, and acknowledging this
    copy has no effect.
    """

    __slots__ = (
        "_body", "_consumer", "_delivery", "_message", "_properties", "delivery_count", "queue",
    )  # fmt: skip

    def __init__(
        self,
        message: BrokerMessage,
        queue: str,
        delivery: Delivery | None = None,
        consumer: Settler | None = None,
        delivery_count: int = 1,
    ) -> None:
        self._message = message
        self._delivery = delivery
        self._consumer = consumer
        self._body: bytes | None = None
        self._properties: dict[str, Property] | None = None
        self.queue = queue
        # 1 for the first delivery.
        self.delivery_count = delivery_count if delivery is None else delivery.delivery_count

    # -- body -----------------------------------------------------------------------------------
    @property
    def body(self) -> bytes:
        """Returns the raw body. Raises MessageTooLarge if it exceeded largeMessageMaxBytes and was discarded."""
        body = self._body
        if body is None:
            delivery = self._delivery
            if delivery is not None and delivery.error is not None:
                raise MessageTooLarge(delivery.error)
            body = self._message.body
            file = self._file()
            if file is not None:
                body = file.read()
            if self._message.has_property(COMPRESSED):
                body = inflate(body)
            self._body = body
        return body

    @property
    def stored_body(self) -> bytes:
        """Returns the body as its sender gave it to the broker: of a compressed one these are the compressed bytes."""
        file = self._file()
        return self._message.body if file is None else file.read()

    @property
    def head(self) -> bytes:
        """Returns the encoded headers and properties; they do not say that `body` was compressed."""
        message = self._message
        if message.has_property(COMPRESSED):
            message = message.copy(message.id)
            message.remove_property(COMPRESSED)
        return message.head

    def save_to(self, path: Path) -> int:
        """Writes the body to a file and returns its size. With `largeMessagesFolder` it is never all in memory."""
        file = self._file()
        if file is None:
            return path.write_bytes(self.body)
        return file.save_to(path, self._message.has_property(COMPRESSED))

    def write_to(self, out: BinaryIO) -> int:
        """Writes the body like `save_to`, to an open file."""
        file = self._file()
        if file is None:
            return out.write(self.body)
        return file.write_to(out, self._message.has_property(COMPRESSED))

    @property
    def body_bytes(self) -> int:
        """Returns the size of the body as sent; the body need not be in memory."""
        file = self._file()
        if file is not None:
            return file.size
        try:
            return len(self.body)
        except MessageTooLarge:
            raise
        except ClientError:
            return len(self.stored_body)  # said to be compressed, and is not

    def _file(self) -> LargeFile | None:
        delivery = self._delivery
        sink = None if delivery is None else delivery.sink
        return sink if isinstance(sink, LargeFile) else None

    @property
    def text(self) -> str | None:
        """Returns the text of a text message, None for another type."""
        message = self._message
        if message.kind != TEXT:
            return None
        body = self.body
        return Reader(body).nullable_simple_string("text body") if body else None

    @property
    def map(self) -> dict[str, Property] | None:
        """Returns the entries of a map message, None for another type."""
        if self._message.kind != MAP:
            return None
        return decode_map(self.body)

    # -- headers --------------------------------------------------------------------------------
    @property
    def type(self) -> int:
        """Returns CORE's message type: 0 default, 2 object, 3 text, 4 bytes, 5 map, 6 stream, 7 embedded."""
        return self._message.kind

    @property
    def message_id(self) -> int:
        """Returns the message id, unique within its broker."""
        return int(self._message.id)

    @property
    def address(self) -> str:
        return self._message.address

    @property
    def durable(self) -> bool:
        return self._message.durable

    @property
    def priority(self) -> int:
        return self._message.priority

    @property
    def expires_at_ms(self) -> int:
        """Returns the instant of expiry, in milliseconds since the epoch; 0 means never."""
        return self._message.expiration

    @property
    def timestamp_ms(self) -> int:
        return self._message.timestamp

    @property
    def user_id(self) -> uuid.UUID | None:
        """Returns the id that JMS shows as JMSMessageID."""
        raw = self._message.user_id
        return None if raw is None else uuid.UUID(bytes=raw)

    @property
    def routing_type(self) -> str | None:
        """Returns "anycast", "multicast", or None if the sender set neither."""
        number = self._message.routing_type
        return ROUTING_NAMES[number] if 0 <= number < len(ROUTING_NAMES) else None

    @property
    def redelivered(self) -> bool:
        return self.delivery_count > 1

    # -- properties -----------------------------------------------------------------------------
    @property
    def properties(self) -> dict[str, Property]:
        """Returns the application's properties. Properties with an attribute of their own here are left out."""
        properties = self._properties
        if properties is None:
            message = self._message
            properties = python_values(message.properties)
            for name in RESERVED:
                if name in properties:
                    del properties[name]
            self._properties = properties
        return properties

    def header(self, name: str) -> Property:
        """Returns any property as sent, reserved ones included; None if it is missing."""
        return self._message.property_value(name)

    @property
    def group_id(self) -> str | None:
        return self._message.group_id

    @property
    def correlation_id(self) -> str | bytes | None:
        value = self._message.property_value("JMSCorrelationID")
        return value if isinstance(value, (str, bytes)) else None

    @property
    def reply_to(self) -> str | None:
        """Returns the reply address in the JMS client's form: `queue://name`, `topic://name`, `temp-queue://name` …"""
        value = self._message.property_value("JMSReplyTo")
        return value if isinstance(value, str) else None

    @property
    def duplicate_id(self) -> str | bytes | None:
        value = self._message.property_value("_AMQ_DUPL_ID")
        return value if isinstance(value, (str, bytes)) else None

    # -- acknowledgement ------------------------------------------------------------------------
    @property
    def lost(self) -> bool:
        """Returns True if its delivery ended with a lost connection."""
        delivery = self._delivery
        return delivery is not None and delivery.lost

    def acknowledge(self) -> Acknowledgement:
        """Acknowledges this message, or with ack="cumulative" it and all earlier ones of its consumer.

        The acknowledgement takes effect at once. Await the result to wait for the broker's answer, if
        `blockOnAcknowledge` requests one.
        """
        delivery, consumer = self._received()
        return consumer.acknowledge(delivery)

    def reject(self) -> Acknowledgement:
        """Rejects this message, which can never be processed: the broker moves it to the dead-letter address.

        It takes effect at once, also in a transaction. Await the result to wait for the broker's answer. An Artemis
        broker cannot do that: SettleUnsupported.
        """
        delivery, consumer = self._received()
        return consumer.settle(delivery, True, 0)

    def release(self, delay: float | None = None) -> Acknowledgement:
        """Returns this message to its queue after a failed attempt, to be delivered again, to any consumer.

        `delay` is the number of seconds until then; None is the address' redelivery-delay. After max-delivery-attempts
        the broker moves the message to the dead-letter address. Otherwise like `reject`.
        """
        if delay is not None and not 0 <= delay < math.inf:
            raise ValueError(f"delay={delay!r}: it is a number of seconds, at least 0")
        delivery, consumer = self._received()
        delay_ms = -1 if delay is None else math.ceil(delay * 1_000)
        return consumer.settle(delivery, False, min(delay_ms, (1 << 63) - 1))

    def _received(self) -> tuple[Delivery, Settler]:
        delivery = self._delivery
        consumer = self._consumer
        if delivery is None or consumer is None:
            raise IllegalState("a message of a log view is acknowledged by ack_through")
        return delivery, consumer

    def copy(self) -> Message:
        """Returns a message with the same content, to be sent again."""
        again = Message(
            self.body,
            properties=dict(self.properties),
            durable=self.durable,
            priority=self.priority,
            expires_at_ms=self.expires_at_ms,
            timestamp_ms=self.timestamp_ms,
            user_id=self.user_id,
            group_id=self.group_id,
            correlation_id=self.correlation_id,
            reply_to=self.reply_to,
            duplicate_id=self.duplicate_id,
        )
        again.type = self.type
        return again

    def __repr__(self) -> str:
        message = self._message
        return (
            f"ReceivedMessage(id={message.id}, address={message.address!r}, queue={self.queue!r})"
        )


def _bytes_of(body: Any) -> bytes:
    try:
        return bytes(memoryview(body))
    except TypeError:
        kind = type(body).__name__
        raise TypeError(
            f"a message's body is bytes or str, not {kind}; a dict is given as map=, a file as stream="
        ) from None


def inflate(body: bytes, bytes_max: int = INFLATED_BYTES_MAX) -> bytes:
    """Decompresses a body (compressLargeMessage). Raises MessageTooLarge beyond the limit."""
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(body, bytes_max + 1)
    except zlib.error as error:
        raise ClientError(f"the compressed body cannot be read: {error}") from None
    if len(plain) > bytes_max:
        raise MessageTooLarge(f"the body inflates to more than {bytes_max} bytes")
    if body and not inflater.eof:
        raise ClientError("the compressed body cannot be read: it is truncated")
    return plain


def now_ms() -> int:
    """Returns the current time in milliseconds since the epoch, for timestamps."""
    return time.time_ns() // 1_000_000
