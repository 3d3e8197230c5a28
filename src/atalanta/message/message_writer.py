"""Messages of other protocols' clients: their header is written at once, and their properties stay encoded."""

from __future__ import annotations

from typing import Final

from librt.strings import write_i32_be, write_i64_be
from mypy_extensions import i64, u8

from atalanta.message.codec import message_of_head
from atalanta.message.encoding.buffer import Writer
from atalanta.message.message import Message, key_of
from atalanta.message.properties import PropertyValue, encode_value, plain_value, type_of_value

BROKERS_PREFIX: Final = "_AMQ_"


def encoded_address(address: str) -> bytes:
    """Returns an address as it begins a header."""
    writer = Writer()
    writer.nullable_simple_string(address)
    return writer.getvalue()


def encoded_property(name: str, value: PropertyValue) -> bytes:
    """Returns a property that many messages have."""
    writer = Writer()
    _write(writer, name, value)
    return writer.getvalue()


def _write(writer: Writer, name: str, value: PropertyValue) -> None:
    code = type_of_value(value)
    plain = plain_value(name, code, value)
    key = key_of(name)
    writer.blob(key)
    writer.uint8(code)
    encode_value(writer, code, plain)


class MessageWriter:
    """Writes one message after the other: `begin`, its properties, `finish`. No name comes twice."""

    def __init__(self) -> None:
        self._writer = Writer()
        self._properties_offset: i64 = 0
        self._has_user_id: bool = False
        self._count: i64 = 0
        self._special: bool = False

    def begin(
        self,
        address: bytes,
        user_id: bytes | None,
        kind: i64,
        durable: bool,
        expiration_ms: i64,
        timestamp_ms: i64,
        priority: i64,
    ) -> None:
        """Begins a message. `address` is one of `encoded_address`, `user_id` are the 16 bytes of its UUID."""
        out = self._writer.out
        out.truncate(0)
        out.write(address)
        if user_id is None:
            out.append(u8(0))
        else:
            out.append(u8(1))
            out.write(user_id)
        out.append(u8(kind & 0xFF))
        out.append(u8(1) if durable else u8(0))
        write_i64_be(out, expiration_ms)
        write_i64_be(out, timestamp_ms)
        out.append(u8(priority & 0xFF))
        self._properties_offset = len(out)
        out.append(u8(1))
        write_i32_be(out, 0)  # the count, which `finish` knows
        self._has_user_id = user_id is not None
        self._count = 0
        self._special = False

    def add(self, encoded: bytes) -> None:
        """Writes a property of `encoded_property`, none that the broker looks for in every message."""
        self._writer.out.write(encoded)
        self._count += 1

    def put(self, name: str, value: PropertyValue) -> None:
        """Writes a property. ValueError, which names it, if the value does not fit."""
        _write(self._writer, name, value)
        self._count += 1
        if name.startswith(BROKERS_PREFIX):
            self._special = True

    def finish(self, address: str, body: bytes, routing_type: int) -> Message:
        """Returns the message, whose `routing_type` is among the properties."""
        out = self._writer.out
        at = self._properties_offset + 1
        for shift in range(4):
            out[at + shift] = u8((self._count >> (24 - 8 * shift)) & 0xFF)
        return message_of_head(
            address, out.getvalue(), self._properties_offset, self._has_user_id, body, routing_type, self._special
        )
