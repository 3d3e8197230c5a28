"""The sections of an AMQP message (specification part 3, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeVar

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.amqp.decoder import DESCRIBED, Decoder, kind_of
from atalanta.wire.amqp.values import (
    Map,
    Symbol,
    Timestamp,
    UnsignedByte,
    UnsignedInt,
    UnsignedLong,
    Uuid,
)

HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
FOOTER: Final = 0x78

NAMES: Final = {
    HEADER: "header",
    DELIVERY_ANNOTATIONS: "delivery-annotations",
    MESSAGE_ANNOTATIONS: "message-annotations",
    PROPERTIES: "properties",
    APPLICATION_PROPERTIES: "application-properties",
    DATA: "data",
    SEQUENCE: "amqp-sequence",
    VALUE: "amqp-value",
    FOOTER: "footer",
}
SYMBOLS: Final = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE,
    "amqp:amqp-value:*": VALUE,
    "amqp:footer:map": FOOTER,
}

Field = TypeVar("Field")


@dataclass
class Header:
    """The header; None is a field that the sender left out. `ttl` is in milliseconds."""

    durable: bool | None = None
    priority: int | None = None
    ttl: int | None = None
    first_acquirer: bool | None = None
    delivery_count: int | None = None


@dataclass
class Properties:
    """The properties; None is a field that the sender left out. Times are in milliseconds since the epoch."""

    message_id: object = None  # UnsignedLong, Uuid, bytes or str; so is correlation_id
    user_id: bytes | None = None
    to: str | None = None
    subject: str | None = None
    reply_to: str | None = None
    correlation_id: object = None
    content_type: str | None = None
    content_encoding: str | None = None
    absolute_expiry_time: int | None = None
    creation_time: int | None = None
    group_id: str | None = None
    group_sequence: int | None = None
    reply_to_group_id: str | None = None


@dataclass
class Sections:
    """An AMQP message. `kind` is DATA, SEQUENCE or VALUE, or 0 without a body, which is in the field of its name.

    `body` are the sections of SEQUENCE and VALUE as they came. Delivery annotations end with a hop: they are not kept.
    """

    header: Header | None = None
    annotations: Map | None = None
    properties: Properties | None = None
    application_properties: Map | None = None
    kind: int = 0
    data: list[bytes] = field(default_factory=list)
    sequence: list[object] = field(default_factory=list)
    value: object = None
    body: bytes = b""
    footer: Map | None = None

    def take_body(self, other: Sections) -> None:
        """Takes body and footer of another message."""
        self.kind = other.kind
        self.data = other.data
        self.sequence = other.sequence
        self.value = other.value
        self.body = other.body
        self.footer = other.footer


def decode_sections(data: bytes, position: int = 0) -> Sections:
    """Returns the sections from `position` to the end. DecodeError names section and field."""
    sections = Sections()
    decoder = Decoder(data, position)
    body_begin = -1
    while decoder.left():
        begin = decoder.position
        number = read_section(decoder, sections)
        if number in (DATA, SEQUENCE, VALUE):
            if not sections.kind:
                sections.kind = number
                body_begin = begin
            elif sections.kind != number or number == VALUE:
                raise DecodeError(NAMES[number], begin, f"behind {NAMES[sections.kind]}")
            if number != DATA:
                sections.body = data[body_begin : decoder.position]
    return sections


def read_section(decoder: Decoder, sections: Sections) -> int:
    """Reads one section into `sections`, and returns its code: HEADER … FOOTER."""
    begin = decoder.position
    if decoder.reader.uint8("section") != DESCRIBED:
        raise DecodeError("section", begin, "no descriptor")
    number = _section_code(decoder.value("section"), begin)
    _put_section(sections, number, decoder.value(NAMES[number]), begin)
    return number


def _section_code(descriptor: object, offset: int) -> int:
    if isinstance(descriptor, UnsignedLong) and descriptor in NAMES:
        return int(descriptor)
    if isinstance(descriptor, Symbol) and descriptor in SYMBOLS:
        return SYMBOLS[descriptor]
    raise DecodeError("section", offset, f"unknown descriptor {descriptor!r}"[:100])


def _put_section(sections: Sections, number: int, value: object, offset: int) -> None:
    name = NAMES[number]
    if number == HEADER:
        sections.header = _header(_typed(value, list, name, offset), offset)
    elif number == PROPERTIES:
        sections.properties = _properties(_typed(value, list, name, offset), offset)
    elif number == DATA:
        sections.data.append(_typed(value, bytes, name, offset))
    elif number == SEQUENCE:
        sections.sequence.extend(_typed(value, list, name, offset))
    elif number == VALUE:
        sections.value = value
    elif value is None:
        return
    elif number == MESSAGE_ANNOTATIONS:
        sections.annotations = _typed(value, Map, name, offset)
    elif number == APPLICATION_PROPERTIES:
        sections.application_properties = _typed(value, Map, name, offset)
    elif number == FOOTER:
        sections.footer = _typed(value, Map, name, offset)


def _typed(value: object, kind: type[Field], what: str, offset: int) -> Field:
    """Returns the value. DecodeError unless it has that type: a uint is an error where a timestamp is expected."""
    if isinstance(value, kind):
        return value
    raise DecodeError(what, offset, f"{kind.__name__.lower()} was expected, not {kind_of(value)}")


class _Fields:
    """The fields of a list in order; fields missing at its end are None."""

    def __init__(self, values: list[object], section: str, offset: int) -> None:
        self.values = values
        self.section = section
        self.offset = offset
        self.index = 0

    def any(self) -> object:
        index = self.index
        self.index += 1
        return self.values[index] if index < len(self.values) else None

    def next(self, kind: type[Field], name: str) -> Field | None:
        value = self.any()
        if value is None:
            return None
        return _typed(value, kind, f"{self.section}.{name}", self.offset)

    def id(self, name: str) -> object:
        value = self.any()
        if value is None or isinstance(value, (UnsignedLong, Uuid, str)) or type(value) is bytes:
            return value
        text = f"{kind_of(value)} is not a message id"
        raise DecodeError(f"{self.section}.{name}", self.offset, text)


def _header(values: list[object], offset: int) -> Header:
    fields = _Fields(values, "header", offset)
    return Header(
        durable=fields.next(bool, "durable"),
        priority=fields.next(UnsignedByte, "priority"),
        ttl=fields.next(UnsignedInt, "ttl"),
        first_acquirer=fields.next(bool, "first-acquirer"),
        delivery_count=fields.next(UnsignedInt, "delivery-count"),
    )


def _properties(values: list[object], offset: int) -> Properties:
    fields = _Fields(values, "properties", offset)
    return Properties(
        message_id=fields.id("message-id"),
        user_id=fields.next(bytes, "user-id"),
        to=fields.next(str, "to"),
        subject=fields.next(str, "subject"),
        reply_to=fields.next(str, "reply-to"),
        correlation_id=fields.id("correlation-id"),
        content_type=fields.next(Symbol, "content-type"),
        content_encoding=fields.next(Symbol, "content-encoding"),
        absolute_expiry_time=fields.next(Timestamp, "absolute-expiry-time"),
        creation_time=fields.next(Timestamp, "creation-time"),
        group_id=fields.next(str, "group-id"),
        group_sequence=fields.next(UnsignedInt, "group-sequence"),
        reply_to_group_id=fields.next(str, "reply-to-group-id"),
    )
