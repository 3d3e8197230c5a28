"""The encodings of a whole message: CORE's HDR and MSG (fact sheet A1.0), and the body of a text message."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer, decode_utf16
from atalanta.message.encoding.interning import shared_name
from atalanta.message.message import FORMAT_CORE, HEAD_FIXED_BYTES, USER_ID_BYTES, Message
from atalanta.message.properties import SCAN_END, SCAN_ROUTING_SHIFT, SCAN_SPECIAL, scan_properties

# MSG begins with the length of the body plus that of a packet header (fact sheet A1.0).
PACKET_HEADER_BYTES: Final = 13
# Addresses are few and messages many: equal ones share one str (and its hash).
ADDRESSES_MAX: Final = 4096
ADDRESS_BYTES_MAX: Final = 1024  # of one that is kept: a peer may send as long ones as a frame holds

_addresses: dict[bytes, str] = {}


def decode_header(reader: Reader) -> Message:
    """HDR, at the reader's position; what follows it stays unread. The body is empty.

    DecodeError names the field; the structure of the properties is checked, though not decoded.
    Written out by hand, as scan_properties is.
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
    """MSG: int32 13 + length of body, body, HDR. DecodeError names the field."""
    body = reader.take(reader.int32("body length") - PACKET_HEADER_BYTES, "body")
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
    """HDR."""
    out = BytesWriter()
    write_i64_be(out, message.id)
    out.write(message.head)
    return out.getvalue()


def encode_message(message: Message, message_id: i64) -> bytes:
    """MSG, under the given id."""
    out = BytesWriter()
    write_message(out, message, message_id)
    return out.getvalue()


def write_message(out: BytesWriter, message: Message, message_id: i64) -> None:
    """MSG into `out`."""
    body = message.body
    size: i32 = len(body)
    write_i32_be(out, size + PACKET_HEADER_BYTES)
    out.write(body)
    write_i64_be(out, message_id)
    out.write(message.head)


def text_body(text: str | None) -> bytes:
    """The body of a text message: ss?."""
    writer = Writer()
    writer.nullable_simple_string(text)
    return writer.getvalue()
