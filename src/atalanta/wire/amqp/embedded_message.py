"""The AMQP message that a real Artemis forwards inside a CORE message of type 7 (EmbedMessageUtil).

The body is `EMB`, then the record of AMQPMessagePersister: int8 persister id · int64 message id · int64 message
format · ss? address · int32 n · n bytes of AMQP · (ids 3 and 5) int32 size, 0 or typed properties of that size · (id
5) int64 expiration. The properties are those between brokers: `_AMQ_ROUTE_TO`, `_AMQ_BRIDGE_DUP` …

Peers do not negotiate this form. Any session may send it, as a core bridge logs in as an ordinary user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.kernel.ports import Trace
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.message.internal_headers import ACK_ROUTE_TO, disclaim
from atalanta.message.message import LARGE_SIZE, ROUTE_TO, Message
from atalanta.message.properties import TypedProperties
from atalanta.wire.amqp.conversion import core_message
from atalanta.wire.amqp.sections import decode_sections

SIGNATURE: Final = b"EMB"
# PersisterIDs: without properties, without expiration, as of 2.29.
STANDARD, STANDARD_2, STANDARD_3 = 2, 3, 5
# The address is repeated among the properties.
ADDRESS_PROPERTY: Final = "_AMQ_AD"
# Prefixes of the names of the sender's own queues: `_AMQ_ROUTE_TO$.artemis.internal.sf.…`.
ROUTES: Final = (ROUTE_TO, ACK_ROUTE_TO)
LARGE_PROPERTY: Final = "_AMQP_EMBED_LARGE"


@dataclass
class Wrapper:
    """The broker's own part of an embedded message. `address` is empty if the record has none; expiration 0 is never.
    """

    address: str
    properties: TypedProperties
    expiration_ms: int


def unwrap(message: Message, now: int, trace: Trace, packet: str) -> Message:
    """Returns the converted message if the message has type 7; any other message is returned unchanged.

    An unreadable message is reported (`embedded_message_unreadable`) and stays as it came. It keeps the properties of
    its wrapper if those can be read, so it is routed and confirmed. A refusal would make the peer's bridge send it
    again for ever.
    """
    if not message.body.startswith(SIGNATURE):
        return message
    wrapper: Wrapper | None = None
    try:
        wrapper, amqp = decode_wrapper(message.body)
        sections = decode_sections(amqp)
        address = wrapper.address or message.address
        found = core_message(sections, address, message.durable, wrapper.expiration_ms, now)
    except DecodeError as error:
        report_unreadable(trace, message, packet, error)
        if wrapper is not None:
            put_wrapper(message, message, wrapper)
        return message
    put_wrapper(found, message, wrapper)
    return found


def decode_wrapper(body: bytes) -> tuple[Wrapper, bytes]:
    """Returns the wrapper of the AMQP message, and the bytes of the message. DecodeError names the field."""
    reader = Reader(body, len(SIGNATURE))
    persister = reader.int8("persister id")
    if persister not in (STANDARD, STANDARD_2, STANDARD_3):
        raise DecodeError("persister id", len(SIGNATURE), f"unknown id {persister}")
    reader.int64("message id")
    reader.int64("message format")
    address = reader.nullable_simple_string("address") or ""
    amqp = reader.blob("AMQP message")
    properties = TypedProperties()
    expiration = 0
    if persister != STANDARD:
        properties = wrapper_properties(reader)
    if persister == STANDARD_3:
        expiration = max(0, reader.int64("expiration"))
    if reader.left():
        raise DecodeError("wrapper", int(reader.position), f"{reader.left()} bytes too many")
    return Wrapper(address, properties, expiration), amqp


def wrapper_properties(reader: Reader) -> TypedProperties:
    """Returns the properties that follow their int32 size in bytes; size 0 is none."""
    size = reader.int32("properties size")
    if size == 0:
        return TypedProperties()
    begin = int(reader.position)
    properties = TypedProperties.decode(reader)
    if reader.position - begin != size:
        found = reader.position - begin
        raise DecodeError("properties size", begin - 4, f"{size} bytes announced, {found} found")
    return properties


def put_wrapper(message: Message, outer: Message, wrapper: Wrapper) -> None:
    """Puts the wrapper's properties into the message, and over them those of the CORE message around it.

    Properties of links between brokers that the AMQP client itself wrote do not count.
    """
    properties = message.properties
    around = list(outer.properties.entries.items())
    if message is not outer:
        disclaim(message)
        properties.remove(BRIDGE_DUPLICATE)
    for name, (code, value) in wrapper.properties.entries.items():
        if name != ADDRESS_PROPERTY and (name in ROUTES or not name.startswith(ROUTES)):
            properties.put_typed(name, code, value)
    for name, (code, value) in around:
        if name not in (LARGE_PROPERTY, LARGE_SIZE):
            properties.put_typed(name, code, value)
    message.properties_changed()


def report_unreadable(trace: Trace, message: Message, packet: str, error: DecodeError) -> None:
    """Logs that an embedded message stays as it came."""
    trace.event(
        "embedded_message_unreadable",
        {"address": message.address, "packet": packet, "field": error.field, "why": str(error)},
    )
