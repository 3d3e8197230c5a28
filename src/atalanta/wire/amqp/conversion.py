"""Converts an AMQP message to the CORE message that Artemis would make of it, so that Artemis can convert it back.

Bodies, headers and the names of properties are those of Artemis' AmqpCoreConverter. Unlike there, a value without a
type in CORE does not make a message unreadable. Times become longs, UUIDs text, and other values the bytes of their
AMQP encoding.

The AMQP bytes are not kept. Three facts are lost: delivery annotations, that a number was unsigned, and that a text
was a symbol.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.message.codec import text_body
from atalanta.message.encoding.buffer import DecodeError, Writer
from atalanta.message.message import (
    BYTES,
    DEFAULT,
    MAP,
    OBJECT,
    STREAM,
    TEXT,
    USER_ID_BYTES,
    Message,
)
from atalanta.message.properties import (
    STRING,
    Byte,
    Char,
    Int,
    PropertyValue,
    Short,
    TypedProperties,
    encode_value,
    plain_value,
    type_of_value,
)
from atalanta.wire.amqp.content_type import is_utf8_text
from atalanta.wire.amqp.decoder import kind_of
from atalanta.wire.amqp.sections import DATA, SEQUENCE, VALUE, Header, Properties, Sections
from atalanta.wire.amqp.values import (
    Map,
    Timestamp,
    UnsignedByte,
    UnsignedInt,
    UnsignedLong,
    UnsignedShort,
    Uuid,
)

JAVA_OBJECT: Final = "application/x-java-serialized-object"
OCTET_STREAM: Final = "application/octet-stream"

# Names of properties (AMQPMessageSupport).
ORIGINAL_ENCODING: Final = "JMS_AMQP_ORIGINAL_ENCODING"
ANNOTATION: Final = "MA_"
FOOTER: Final = "FT_"
PREFIX: Final = "JMS_AMQP_"
ENCODED_PREFIX: Final = "JMS_AMQP_ENCODED_"
# Values of JMS_AMQP_ORIGINAL_ENCODING.
(
    ENCODED_NULL, ENCODED_DATA, ENCODED_SEQUENCE, ENCODED_VALUE_NULL, ENCODED_VALUE_STRING, ENCODED_VALUE_BINARY,
    ENCODED_VALUE_MAP, ENCODED_VALUE_LIST,
) = range(1, 9)  # fmt: skip

# How JMS writes a destination, by the annotations x-opt-jms-dest and x-opt-jms-reply-to.
DESTINATION_PREFIXES: Final = ("queue://", "topic://", "temp-queue://", "temp-topic://")
PRIORITY_MAX: Final = 9
ID_PREFIXES: Final = (
    "AMQP_BINARY:",
    "AMQP_UUID:",
    "AMQP_ULONG:",
    "AMQP_STRING:",
    "AMQP_NO_PREFIX:",
)
LONG_MAX: Final = (1 << 63) - 1
NS_PER_MS: Final = 1_000_000


def core_message(
    sections: Sections, address: str, durable: bool, expiration_ms: int, now: int
) -> Message:
    """Returns the CORE message. `expiration_ms` is the broker's own expiration, 0 for none; `now` in ns since the
    epoch.
    """
    kind, body, encoding = core_body(sections)
    message = core_headers(sections, kind, encoding, address, durable, expiration_ms, now)
    message.body = body
    return message


def core_headers(
    sections: Sections,
    kind: int,
    encoding: int,
    address: str,
    durable: bool,
    expiration_ms: int,
    now: int,
) -> Message:
    """Returns the CORE message without its body; `encoding` is the value of ORIGINAL_ENCODING, 0 for none."""
    message = Message.create(address, b"", kind, durable)
    properties = message.properties
    if encoding:
        properties.put(ORIGINAL_ENCODING, Short(encoding))
    message.expiration = expiration_ms
    header = sections.header
    if header is not None:
        _header(message, header)
    _annotations(message, sections.annotations)
    _application_properties(properties, sections.application_properties)
    if sections.properties is not None:
        _properties(message, sections.properties, sections.annotations)
    _prefixed(properties, FOOTER, sections.footer)
    if header is not None and header.ttl and not message.expiration:
        message.expiration = min(now // NS_PER_MS + header.ttl, LONG_MAX)
    routing_type = _routing_type(sections.annotations)
    if routing_type is not None:
        properties.put("_AMQ_ROUTING_TYPE", Byte(routing_type))
    return message


# -- bodies -------------------------------------------------------------------------------------------
def core_body(sections: Sections) -> tuple[int, bytes, int]:
    """Returns CORE's message type, the body, and the value of ORIGINAL_ENCODING."""
    content_type = None if sections.properties is None else sections.properties.content_type
    if sections.kind == DATA:
        return _data_body(b"".join(sections.data), content_type)
    if sections.kind == SEQUENCE:
        return _stream(sections, sections.sequence, ENCODED_SEQUENCE)
    if sections.kind == VALUE:
        return _value_body(sections, content_type)
    if content_type == JAVA_OBJECT:
        return OBJECT, object_body(b""), ENCODED_NULL
    if content_type is None or content_type == OCTET_STREAM:
        return BYTES, b"", ENCODED_NULL
    if is_utf8_text(content_type):
        return TEXT, text_body(None), ENCODED_NULL
    return DEFAULT, b"", ENCODED_NULL


def _data_body(data: bytes, content_type: str | None) -> tuple[int, bytes, int]:
    if content_type == JAVA_OBJECT:
        return OBJECT, object_body(data), ENCODED_DATA
    if content_type is not None and is_utf8_text(content_type):
        try:
            return TEXT, text_body(data.decode("utf-8")), ENCODED_DATA
        except UnicodeDecodeError:
            pass
    return BYTES, data, ENCODED_DATA


def _value_body(sections: Sections, content_type: str | None) -> tuple[int, bytes, int]:
    value = sections.value
    if value is None:
        return TEXT, text_body(None), ENCODED_VALUE_NULL
    if type(value) is str:
        return TEXT, text_body(value), ENCODED_VALUE_STRING
    if type(value) is bytes:
        if content_type == JAVA_OBJECT:
            return OBJECT, object_body(value), ENCODED_VALUE_BINARY
        return BYTES, value, ENCODED_VALUE_BINARY
    if type(value) is list:
        return _stream(sections, value, ENCODED_VALUE_LIST)
    if isinstance(value, Map) and all(isinstance(entry.key, str) for entry in value.entries):
        return MAP, map_body(value), ENCODED_VALUE_MAP
    return BYTES, sections.body, 0


def _stream(sections: Sections, values: list[object], encoding: int) -> tuple[int, bytes, int]:
    """Returns type, body and encoding of a stream message; a body that no CORE stream can hold stays bytes."""
    if any(core_value(value) is NOT_CORE for value in values):
        return BYTES, sections.body, 0
    return STREAM, stream_body(values), encoding


def object_body(data: bytes) -> bytes:
    """Returns the body of an object message: int32 length, then the serialized object."""
    writer = Writer()
    writer.blob(data)
    return writer.getvalue()


def map_body(values: Map) -> bytes:
    """Returns the body of a map message, typed properties. Its keys must be texts."""
    entries = TypedProperties()
    for entry in values.entries:
        _put(entries, str(entry.key), entry.value, entry.encoded)
    writer = Writer()
    entries.encode(writer)
    return writer.getvalue()


def stream_body(values: list[object]) -> bytes:
    """Returns the body of a stream message: int8 type and value each, a text as str? (CoreStreamMessageWrapper)."""
    writer = Writer()
    for value in values:
        found = core_value(value)
        if isinstance(found, NotCore):
            raise ValueError(f"a stream of CORE cannot hold {kind_of(value)}")
        code = STRING if found is None else type_of_value(found)
        writer.int8(code)
        if code == STRING:
            writer.nullable_string(None if found is None else str(found))
        elif isinstance(found, bool):
            writer.boolean(found)
        else:
            encode_value(writer, code, plain_value("element", code, found))
    return writer.getvalue()


# -- values -------------------------------------------------------------------------------------------
class NotCore:
    """The mark of a value that CORE has no type for."""


NOT_CORE: Final = NotCore()


def core_value(value: object) -> PropertyValue | NotCore:
    """Returns the value in a type of CORE, or NOT_CORE. An unsigned one gets the smallest signed type that holds it.
    """
    if value is None or isinstance(value, (bool, float, Byte, Short, Int, Char)):
        return value
    if isinstance(value, int):
        return _core_number(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Uuid):
        return value.text()
    if type(value) is bytes:
        return value
    return NOT_CORE


def _core_number(value: int) -> int:
    if isinstance(value, UnsignedByte):
        return Byte(value) if value < 1 << 7 else Short(value)
    if isinstance(value, UnsignedShort):
        return Short(value) if value < 1 << 15 else Int(value)
    if isinstance(value, UnsignedInt):
        return Int(value) if value < 1 << 31 else int(value)
    if isinstance(value, UnsignedLong) and value > LONG_MAX:
        return int(value) - (1 << 64)  # as Java's longValue
    return int(value)


def _put(properties: TypedProperties, name: str, value: object, encoded: bytes) -> None:
    """Puts the value into the properties, or the bytes of its encoding if CORE has no type for it."""
    found = core_value(value)
    properties.put(name, encoded if isinstance(found, NotCore) else found)


# -- headers and properties ---------------------------------------------------------------------------
def _header(message: Message, header: Header) -> None:
    properties = message.properties
    properties.put("JMS_AMQP_HEADER", True)
    if header.durable is not None:
        properties.put("JMS_AMQP_HEADERDURABLE", True)
    if header.priority is not None:
        properties.put("JMS_AMQP_HEADERPRIORITY", True)
        message.priority = min(header.priority, PRIORITY_MAX)
    if header.first_acquirer is not None:
        properties.put("JMS_AMQP_FirstAcquirer", header.first_acquirer)
    if header.delivery_count is not None:
        # JMS counts the delivery itself, AMQP only failed ones before it.
        properties.put("JMSXDeliveryCount", int(header.delivery_count) + 1)


def _annotations(message: Message, annotations: Map | None) -> None:
    """Adds the message annotations. A delay is ignored: the queue that forwards the message has held it so long."""
    if annotations is None:
        return
    delivery_time = annotations.get("x-opt-delivery-time")
    if isinstance(delivery_time, int):
        message.properties.put("_AMQ_SCHED_DELIVERY", _core_long(delivery_time))
    ingress_time = annotations.get("x-opt-ingress-time")
    if isinstance(ingress_time, int):
        message.properties.put("_AMQ_INGRESS_TIMESTAMP", _core_long(ingress_time))
    _prefixed(message.properties, ANNOTATION, annotations)


def _core_long(value: int) -> int:
    return int(_core_number(value))


def _prefixed(properties: TypedProperties, prefix: str, values: Map | None) -> None:
    """Adds annotations or footers. A value without a type in CORE gets another name, from which Artemis decodes it.
    """
    if values is None:
        return
    for entry in values.entries:
        if not isinstance(entry.key, (str, UnsignedLong)):
            raise DecodeError("annotation key", 0, f"{kind_of(entry.key)} is not a symbol")
        value = entry.value
        if isinstance(value, (Timestamp, Uuid)) or core_value(value) is NOT_CORE:
            properties.put(f"{ENCODED_PREFIX}{prefix}{entry.key}", entry.encoded)
        else:
            _put(properties, f"{PREFIX}{prefix}{entry.key}", value, entry.encoded)


def _application_properties(properties: TypedProperties, values: Map | None) -> None:
    if values is None:
        return
    for entry in values.entries:
        if not isinstance(entry.key, str):
            raise DecodeError("application-properties key", 0, f"{kind_of(entry.key)} is not a string")
        name = str(entry.key)
        if name == "JMSXGroupID":
            properties.put("_AMQ_GROUP_ID", str(entry.value))
        elif name == "JMSXGroupSeq" and isinstance(entry.value, int):
            properties.put("_AMQ_GROUP_SEQUENCE", _core_int(entry.value))
        elif name == "JMSXUserID":
            properties.put("_AMQ_VALIDATED_USER", str(entry.value))
        else:
            _put(properties, name, entry.value, entry.encoded)


def _core_int(value: int) -> Int:
    low = int(value) & 0xFFFFFFFF
    return Int(low - (1 << 32) if low >> 31 else low)  # as Java's intValue


def _properties(message: Message, source: Properties, annotations: Map | None) -> None:
    properties = message.properties
    if source.message_id is not None:
        native_id = message_id_text(source.message_id)
        properties.put("NATIVE_MESSAGE_ID", native_id)
        if isinstance(source.message_id, Uuid):
            message.user_id = bytes(source.message_id)
        else:
            # CORE clients have only UUIDs; a repeat or copy gets the same one.
            encoded = native_id.encode("utf-8", "replace")
            message.user_id = blake2b(encoded, digest_size=USER_ID_BYTES).digest()
    if source.user_id is not None:
        properties.put("_AMQ_VALIDATED_USER", bytes(source.user_id).decode("utf-8", "replace"))
    if source.subject is not None:
        properties.put("JMSType", str(source.subject))
    if source.reply_to is not None:
        kind = None if annotations is None else annotations.get("x-opt-jms-reply-to")
        known = isinstance(kind, int) and 0 <= kind < len(DESTINATION_PREFIXES)
        prefix = DESTINATION_PREFIXES[int(kind) if known and isinstance(kind, int) else 0]
        properties.put("JMSReplyTo", prefix + source.reply_to)
    if source.correlation_id is not None:
        properties.put("JMSCorrelationID", correlation_id(source.correlation_id))
    if source.content_type is not None:
        properties.put("JMS_AMQP_ContentType", str(source.content_type))
    if source.content_encoding is not None:
        properties.put("JMS_AMQP_ContentEncoding", str(source.content_encoding))
    if source.creation_time is not None:
        message.timestamp = int(source.creation_time)
    if source.group_id is not None:
        properties.put("_AMQ_GROUP_ID", str(source.group_id))
    if source.group_sequence is not None:
        properties.put("_AMQ_GROUP_SEQUENCE", _core_int(source.group_sequence))
    if source.reply_to_group_id is not None:
        properties.put("JMS_AMQP_ReplyToGroupID", str(source.reply_to_group_id))
    if source.absolute_expiry_time is not None and source.absolute_expiry_time > 0:
        message.expiration = int(source.absolute_expiry_time)


def _routing_type(annotations: Map | None) -> int | None:
    """Returns the routing type that the sender asked for: by its own annotation, or by JMS' kind of destination."""
    if annotations is None:
        return None
    routing_type = annotations.get("x-opt-routing-type")
    if isinstance(routing_type, int):
        return int(routing_type) if routing_type in (MULTICAST, ANYCAST) else None
    destination = annotations.get("x-opt-jms-dest")
    if isinstance(destination, int) and 0 <= destination < len(DESTINATION_PREFIXES):
        return MULTICAST if destination % 2 else ANYCAST
    return None


# -- identifiers (AMQPMessageIdHelper) ------------------------------------------------------------------
def message_id_text(found: object) -> str:
    """Returns a message id as JMS writes it: `ID:` and, unless the id was such a text, its type."""
    if isinstance(found, str):
        if not found.startswith("ID:"):
            return f"ID:AMQP_NO_PREFIX:{found}"
        return _escaped(found)
    return _typed_id(found)


def correlation_id(found: object) -> str | bytes:
    """Returns a correlation id as JMS writes it; a binary one stays bytes."""
    if isinstance(found, str):
        return _escaped(found)
    if type(found) is bytes:
        return found
    return _typed_id(found)


def _escaped(text: str) -> str:
    return (
        f"ID:AMQP_STRING:{text}"
        if text[3:].startswith(ID_PREFIXES) and text[:3] == "ID:"
        else str(text)
    )


def _typed_id(found: object) -> str:
    if isinstance(found, Uuid):
        return f"ID:AMQP_UUID:{found.text()}"
    if isinstance(found, bytes):
        return f"ID:AMQP_BINARY:{found.hex().upper()}"
    return f"ID:AMQP_ULONG:{found}"
