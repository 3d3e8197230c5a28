"""Encodings of a whole message: the CORE forms HDR and MSG, and the body of a text message.

docs/internals/protocols/core.md has the layouts.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer, decode_utf16
from atalanta.message.encoding.shared_names import shared_name
from atalanta.message.message import FORMAT_CORE, HEAD_FIXED_BYTES, USER_ID_BYTES, Message
from atalanta.message.properties import SCAN_END, SCAN_ROUTING_SHIFT, SCAN_SPECIAL, scan_properties

# The length field of MSG counts the body plus a packet header.
PACKET_HEADER_BYTES: Final = 13
# Many messages share few addresses: equal addresses share one str and its hash.
ADDRESSES_MAX: Final = 4096
ADDRESS_BYTES_MAX: Final = 1024  # a longer address is not kept; a peer may send any length that fits a frame

_addresses: dict[bytes, str] = {}


def decode_header(reader: Reader) -> Message:
    """Decodes the HDR at the reader's position. The body stays empty; bytes after the HDR stay unread.

    Raises DecodeError, which names the field. The structure of the properties is checked, values are not decoded.
    The loop is written out by hand for speed, like scan_properties.
    """
    data = reader.data
    begin = reader.advance(9, "message id") + 8
    message = Message(read_i64_be(data, begin - 8), b"")
    if data[begin] != 0:
        message._address = _address(reader.blob("address"), int(reader.position))
    if reader.boolean("user id"):
        reader.advance(USER_ID_BYTES, "user id")
        message._user_id_in_head = True
    fixed = reader.advance(HEAD_FIXED_BYTES, "message headers")
    kind = data[fixed]
    message._kind = kind - 256 if kind > 127 else kind
    message._durable = data[fixed + 1] != 0
    message._expiration = read_i64_be(data, fixed + 2)
    message._timestamp = read_i64_be(data, fixed + 10)
    priority = data[fixed + 18]
    message._priority = priority - 256 if priority > 127 else priority
    scanned = scan_properties(data, reader.position, reader.end)
    end = scanned & SCAN_END
    message.special = (scanned & SCAN_SPECIAL) != 0
    routing_type = (scanned >> SCAN_ROUTING_SHIFT) - 1
    if routing_type >= 0 or not message.special:
        message._routing_type = int(routing_type)
    message._properties_offset = i32(reader.position - begin)
    message._head = data[begin:end]
    reader.position = end
    return message


def _address(encoded: bytes, end: int) -> str:
    address = _addresses.get(encoded)
    if address is None:
        if len(encoded) & 1:
            raise DecodeError("address", end, f"odd length {len(encoded)} of UTF-16")
        address = decode_utf16(encoded)
        if len(_addresses) < ADDRESSES_MAX and len(encoded) <= ADDRESS_BYTES_MAX:
            address = shared_name(address)
            _addresses[encoded] = address
    return address


def decode_message(reader: Reader) -> Message:
    """Decodes a MSG: int32 13 + length of body, body, HDR. Raises DecodeError, which names the field."""
    return decode_with_body(reader, reader.take(reader.int32("body length") - PACKET_HEADER_BYTES, "body"))


def decode_with_body(reader: Reader, body: bytes) -> Message:
    """Decodes the HDR of a message whose body is elsewhere."""
    message = decode_header(reader)
    message.body = body
    return message


def decode_stored(reader: Reader, field: str) -> Message:
    """Returns the message behind its format byte, which is `field`. DecodeError for an unknown format."""
    found = reader.uint8(field)
    if found != FORMAT_CORE:
        raise DecodeError(
            field,
            int(reader.position),
            f"message format {found} is unknown: this version reads {FORMAT_CORE} (CORE),"
            " start the version that wrote it",
        )
    return decode_message(reader)


def encode_header(message: Message) -> bytes:
    """Encodes the HDR: the message id, then the head."""
    out = BytesWriter()
    write_i64_be(out, message.id)
    out.write(message.head)
    return out.getvalue()


def encode_message(message: Message, message_id: i64) -> bytes:
    """Encodes a MSG under the given message id."""
    out = BytesWriter()
    write_message(out, message, message_id)
    return out.getvalue()


def write_message(out: BytesWriter, message: Message, message_id: i64) -> None:
    """Writes a MSG under the given message id to `out`."""
    body = message.body
    size: i32 = len(body)
    write_i32_be(out, size + PACKET_HEADER_BYTES)
    out.write(body)
    write_i64_be(out, message_id)
    out.write(message.head)


def write_bodiless(out: BytesWriter, message: Message, message_id: i64) -> None:
    """Writes a MSG under the given message id to `out`, with an empty body."""
    write_i32_be(out, PACKET_HEADER_BYTES)
    write_i64_be(out, message_id)
    out.write(message.head)


def text_body(text: str | None) -> bytes:
    """Encodes the body of a text message as a nullable SimpleString."""
    writer = Writer()
    writer.nullable_simple_string(text)
    return writer.getvalue()
