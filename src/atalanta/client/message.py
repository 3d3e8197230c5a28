"""Messages as a program sees them: one class to send, one for what was received.

Bodies follow the JMS client's (fact sheet A1.0): text is a nullable SimpleString in a message of
type 3, bytes are raw in one of type 4, a map is a set of typed properties in one of type 5.
"""

from __future__ import annotations

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
from atalanta.message.message import BYTES, DEFAULT, MAP, TEXT
from atalanta.message.message import Message as BrokerMessage
from atalanta.message.properties import PropertyValue
from atalanta.wire.core.client.errors import ClientError, IllegalState, MessageTooLarge

if TYPE_CHECKING:
    from atalanta.client.consumer import Consumer
    from atalanta.client.shells.awaitables import Acknowledgement
    from atalanta.wire.core.client.consumer import Delivery

Property = PropertyValue

ANYCAST: Final = "anycast"
MULTICAST: Final = "multicast"
ROUTING_NAMES: Final = (MULTICAST, ANYCAST)
COMPRESSED: Final = "_AMQ_LARGE_COMPRESSED"
# An inflated body may be this many times as large as largeMessageMaxBytes allows the packed one.
INFLATED_BYTES_MAX: Final = 256 << 20


class Message:
    """A message to send. Give one of `body` (bytes), `text`, `map` or `stream`, or none for an empty body.

    stream: a body that is read while it is sent, and never in memory as a whole: a binary file or anything else with
    `read`, an iterable of bytes, or bytes themselves (a memoryview, a mapped file); with the asyncio client also an
    asynchronous `read` or iterable. It is read from where it stands, by one `send`, and not closed. `size`: so many
    bytes of it; it is an error if there are less.

    properties: str -> bool, int (Java long), float (double), str, bytes or None; Byte, Short, Int,
    Float and Char keep the other Java types. Times are milliseconds since the epoch: `timestamp_ms`
    is now if not given, `expiration_ms` 0 is never. `duplicate_id`: a broker takes only the first
    message with one. `type` is CORE's message type; it follows from the body if not given.
    """

    __slots__ = (
        "body", "correlation_id", "duplicate_id", "durable", "expiration_ms", "group_id",
        "priority", "properties", "reply_to", "size", "stream", "timestamp_ms", "type", "user_id",
    )  # fmt: skip

    def __init__(
        self,
        body: bytes | None = None,
        *,
        text: str | None = None,
        map: Mapping[str, Property] | None = None,
        stream: Any = None,
        size: int | None = None,
        properties: Mapping[str, Property] | None = None,
        durable: bool = True,
        priority: int = 4,
        expiration_ms: int = 0,
        timestamp_ms: int | None = None,
        user_id: uuid.UUID | None = None,
        group_id: str | None = None,
        correlation_id: str | bytes | None = None,
        reply_to: str | None = None,
        duplicate_id: str | bytes | None = None,
        type: int | None = None,
    ) -> None:
        if text is not None:
            if body is not None or map is not None:
                raise ValueError("a message has one of body, text and map")
            self.body = encode_text(text)
            kind = TEXT
        elif map is not None:
            if body is not None:
                raise ValueError("a message has one of body, text and map")
            self.body = encode_map(map)
            kind = MAP
        elif body is not None:
            self.body = body if body.__class__ is bytes else bytes(body)
            kind = BYTES
        else:
            self.body = b""
            kind = DEFAULT if stream is None else BYTES
        if stream is not None and kind != BYTES or body is not None and stream is not None:
            raise ValueError("a message has one of body, text, map and stream")
        if size is not None and (stream is None or size < 0):
            raise ValueError(f"size={size}: it is the number of bytes to take of `stream`")
        self.stream = stream
        self.size = size
        self.type = kind if type is None else type
        self.properties = properties
        self.durable = durable
        self.priority = priority
        self.expiration_ms = expiration_ms
        self.timestamp_ms = timestamp_ms
        self.user_id = user_id
        self.group_id = group_id
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.duplicate_id = duplicate_id

    @property
    def text(self) -> str | None:
        """The body of a text message."""
        if self.type != TEXT or not self.body:
            return None
        return Reader(self.body).nullable_simple_string("text body")

    def with_body(self, body: bytes) -> Message:
        """The same with this body in place of its stream."""
        again = copy(self)
        again.stream = again.size = None
        again.body = body
        return again

    def __repr__(self) -> str:
        if self.stream is not None:
            return f"Message(type={self.type}, stream={self.stream!r})"
        return f"Message(type={self.type}, {len(self.body)} bytes)"


class ReceivedMessage:
    """A message from a queue. Everything is decoded when asked for.

    `lost`: the connection ended since it was received; the broker delivers it again, and
    acknowledging this copy does nothing.
    """

    __slots__ = (
        "_body", "_consumer", "_delivery", "_message", "_properties", "delivery_count", "queue",
    )  # fmt: skip

    def __init__(
        self,
        message: BrokerMessage,
        queue: str,
        delivery: Delivery | None = None,
        consumer: Consumer | None = None,
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
        """Raw. MessageTooLarge: it exceeded largeMessageMaxBytes and was thrown away."""
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

    def save_to(self, path: Path) -> int:
        """Write the body to a file, and tell its size. With `largeMessagesFolder` it is never in memory as a whole."""
        file = self._file()
        if file is None:
            return path.write_bytes(self.body)
        return file.save_to(path, self._message.has_property(COMPRESSED))

    def write_to(self, out: BinaryIO) -> int:
        """As `save_to`, to what is open already."""
        file = self._file()
        if file is None:
            return out.write(self.body)
        return file.write_to(out, self._message.has_property(COMPRESSED))

    @property
    def body_bytes(self) -> int:
        """How long the body is, as it travelled; it need not be in memory for that."""
        file = self._file()
        return len(self.body) if file is None else file.size

    def _file(self) -> LargeFile | None:
        delivery = self._delivery
        sink = None if delivery is None else delivery.sink
        return sink if isinstance(sink, LargeFile) else None

    @property
    def text(self) -> str | None:
        """The text of a text message; None for any other."""
        message = self._message
        if message.kind != TEXT:
            return None
        body = self.body
        return Reader(body).nullable_simple_string("text body") if body else None

    @property
    def map(self) -> dict[str, Property] | None:
        """The entries of a map message; None for any other."""
        if self._message.kind != MAP:
            return None
        return decode_map(self.body)

    # -- headers --------------------------------------------------------------------------------
    @property
    def type(self) -> int:
        """CORE's message type: 0 default, 2 object, 3 text, 4 bytes, 5 map, 6 stream, 7 embedded."""
        return self._message.kind

    @property
    def message_id(self) -> int:
        """Unique within its broker."""
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
    def expiration_ms(self) -> int:
        """0: never."""
        return self._message.expiration

    @property
    def timestamp_ms(self) -> int:
        return self._message.timestamp

    @property
    def user_id(self) -> uuid.UUID | None:
        """What JMS shows as JMSMessageID."""
        raw = self._message.user_id
        return None if raw is None else uuid.UUID(bytes=raw)

    @property
    def routing_type(self) -> str | None:
        """ "anycast", "multicast", or None when the sender said neither."""
        number = self._message.routing_type
        return ROUTING_NAMES[number] if 0 <= number < len(ROUTING_NAMES) else None

    @property
    def redelivered(self) -> bool:
        return self.delivery_count > 1

    # -- properties -----------------------------------------------------------------------------
    @property
    def properties(self) -> dict[str, Property]:
        """The application's properties; those with an attribute of their own here are left out."""
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
        """Any property as it travelled, also the reserved ones; None when it is not there."""
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
        """As the JMS client writes it: `queue://name`, `topic://name`, `temp-queue://name` …"""
        value = self._message.property_value("JMSReplyTo")
        return value if isinstance(value, str) else None

    @property
    def duplicate_id(self) -> str | bytes | None:
        value = self._message.property_value("_AMQ_DUPL_ID")
        return value if isinstance(value, (str, bytes)) else None

    # -- acknowledging --------------------------------------------------------------------------
    @property
    def lost(self) -> bool:
        """Its delivery ended with a lost connection."""
        delivery = self._delivery
        return delivery is not None and delivery.lost

    def acknowledge(self) -> Acknowledgement:
        """Acknowledge this message, or with ack="cumulative" it and all before it on its consumer.

        Takes effect at once; await the result to wait for the broker where `blockOnAcknowledge`
        asks for its answer.
        """
        delivery = self._delivery
        consumer = self._consumer
        if delivery is None or consumer is None:
            raise IllegalState("a message of a log view is acknowledged by ack_through")
        return consumer.acknowledge(delivery)

    def copy(self) -> Message:
        """The same content, to be sent again."""
        again = Message(
            self.body,
            properties=dict(self.properties),
            durable=self.durable,
            priority=self.priority,
            expiration_ms=self.expiration_ms,
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


def inflate(body: bytes) -> bytes:
    """A body the sender compressed (compressLargeMessage). MessageTooLarge beyond the limit."""
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(body, INFLATED_BYTES_MAX)
    except zlib.error as error:
        raise ClientError(f"the compressed body cannot be read: {error}") from None
    if inflater.unconsumed_tail:
        raise MessageTooLarge(f"the body inflates to more than {INFLATED_BYTES_MAX} bytes")
    if body and not inflater.eof:
        raise ClientError("the compressed body cannot be read: it ends too early")
    return plain


def now_ms() -> int:
    """Milliseconds since the epoch, for timestamps."""
    return time.time_ns() // 1_000_000
