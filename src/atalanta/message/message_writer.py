"""Messages of other protocols' clients: their header is written at once, and their properties stay encoded."""

from __future__ import annotations

from librt.strings import write_i32_be, write_i64_be
from mypy_extensions import i64, u8

from atalanta.message.codec import decode_with_body
from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.message.message import Message, key_of
from atalanta.message.properties import PropertyValue, encode_value, plain_value, type_of_value


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
    writer.blob(key_of(name))
    writer.uint8(code)
    encode_value(writer, code, plain)


class MessageWriter:
    """Writes one message after the other: `begin`, its properties, `finish`. No name comes twice."""

    def __init__(self) -> None:
        self._writer = Writer()
        self._count_offset: i64 = 0
        self._count: i64 = 0

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
        write_i64_be(out, 0)  # the message id, which the broker assigns
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
        out.append(u8(1))
        self._count_offset = len(out)
        write_i32_be(out, 0)
        self._count = 0

    def add(self, encoded: bytes) -> None:
        """Writes a property of `encoded_property`."""
        self._writer.out.write(encoded)
        self._count += 1

    def put(self, name: str, value: PropertyValue) -> None:
        """Writes a property. ValueError, which names it, if the value does not fit."""
        _write(self._writer, name, value)
        self._count += 1

    def finish(self, body: bytes) -> Message:
        """Returns the message."""
        out = self._writer.out
        for index in range(4):
            out[self._count_offset + index] = u8((self._count >> (24 - 8 * index)) & 0xFF)
        return decode_with_body(Reader(out.getvalue()), body)
