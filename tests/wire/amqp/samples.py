"""AMQP messages made by hand from the specification, the wrapper of a real broker around them, and captured ones."""

from __future__ import annotations

import json
from functools import cache

from atalanta.message.encoding.buffer import Writer
from atalanta.message.message import EMBEDDED, LARGE_EMBEDDED, Message
from atalanta.message.properties import PropertyValue, TypedProperties
from atalanta.wire.amqp.embedded_message import LARGE_PROPERTY
from tests.golden.frames import VECTORS

NULL = b"\x40"
TRUE = b"\x41"
HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES = range(0x70, 0x75)
DATA, SEQUENCE, VALUE, FOOTER = range(0x75, 0x79)


def text(value: str) -> bytes:
    """str8 or str32."""
    encoded = value.encode()
    if len(encoded) < 256:
        return b"\xa1" + bytes([len(encoded)]) + encoded
    return b"\xb1" + len(encoded).to_bytes(4, "big") + encoded


def symbol(value: str) -> bytes:
    """sym8."""
    return b"\xa3" + bytes([len(value)]) + value.encode("ascii")


def binary(value: bytes) -> bytes:
    """vbin8 or vbin32."""
    if len(value) < 256:
        return b"\xa0" + bytes([len(value)]) + value
    return b"\xb0" + len(value).to_bytes(4, "big") + value


def long(value: int) -> bytes:
    """A long of eight bytes."""
    return b"\x81" + value.to_bytes(8, "big", signed=True)


def timestamp(value: int) -> bytes:
    """A timestamp, in ms."""
    return b"\x83" + value.to_bytes(8, "big", signed=True)


def uint(value: int) -> bytes:
    """A uint of four bytes."""
    return b"\x70" + value.to_bytes(4, "big")


def ubyte(value: int) -> bytes:
    """A ubyte."""
    return bytes([0x50, value])


def listed(*values: bytes) -> bytes:
    """list32 of encoded values."""
    return b"\xd0" + _compound(values)


def mapped(**values: bytes) -> bytes:
    """map32 of encoded values by text keys."""
    return mapped_by({text(key): value for key, value in values.items()})


def mapped_by(values: dict[bytes, bytes]) -> bytes:
    """map32 of encoded values by encoded keys."""
    return b"\xd1" + _compound([part for pair in values.items() for part in pair])


def _compound(values: tuple[bytes, ...] | list[bytes]) -> bytes:
    data = b"".join(values)
    return (len(data) + 4).to_bytes(4, "big") + len(values).to_bytes(4, "big") + data


def section(code: int, value: bytes) -> bytes:
    """A section with its descriptor as a smallulong."""
    return bytes([0x00, 0x53, code]) + value


def properties(**extras: PropertyValue) -> TypedProperties:
    """The typed properties of a wrapper."""
    found = TypedProperties()
    for name, value in extras.items():
        found.put(name, value)
    return found


def wrapped(
    amqp: bytes,
    address: str | None = "orders",
    extras: TypedProperties | None = None,
    expiration_ms: int = 0,
    persister: int = 5,
) -> bytes:
    """The body of a message of type 7."""
    writer = Writer()
    writer.raw(b"EMB")
    writer.int8(persister)
    writer.int64(77)
    writer.int64(0)
    writer.nullable_simple_string(address)
    writer.blob(amqp)
    if persister != 2:
        _extras(writer, extras)
    if persister == 5:
        writer.int64(expiration_ms)
    return writer.getvalue()


def _extras(writer: Writer, extras: TypedProperties | None) -> None:
    if extras is None:
        writer.int32(0)
        return
    inner = Writer()
    extras.encode(inner)
    writer.blob(inner.getvalue())


def embedded(
    amqp: bytes,
    address: str = "orders",
    durable: bool = True,
    expiration_ms: int = 0,
    **extras: PropertyValue,
) -> Message:
    """A message of type 7 as a peer forwards it."""
    body = wrapped(amqp, address, properties(**extras) if extras else None, expiration_ms)
    return Message.create(address, body, EMBEDDED, durable)


def large_embedded(
    before: dict[int, bytes], body_offset: int, address: str = "orders", **extras: PropertyValue
) -> Message:
    """The header of a message of type 8; `before` are the sections in front of the body, with their descriptors."""
    writer = Writer()
    writer.int8(4)
    writer.int64(77)
    writer.boolean(True)
    writer.int64(0)
    writer.nullable_simple_string(address)
    _extras(writer, properties(**extras) if extras else None)
    for code, numbers in (
        (HEADER, 2),
        (DELIVERY_ANNOTATIONS, 2),
        (ANNOTATIONS, 1),
        (PROPERTIES, 1),
    ):
        for _ in range(numbers):
            writer.int32(-1)
        if code != DELIVERY_ANNOTATIONS:
            writer.raw(before.get(code, NULL))
    writer.int32(-1)
    writer.int32(body_offset)
    writer.raw(before.get(APPLICATION_PROPERTIES, NULL))
    writer.int64(0)
    writer.boolean(False)
    message = Message.create(address, b"", LARGE_EMBEDDED, True)
    message.put_property(LARGE_PROPERTY, writer.getvalue())
    return message


@cache
def captured() -> dict[str, bytes]:
    """Bodies of type 7 by kind of JMS message, and the wrapper of one of type 8, from a real Artemis."""
    found = json.loads((VECTORS / "amqp-embedded.json").read_text())
    return {name: bytes.fromhex(value) for name, value in found.items() if name != "from"}
