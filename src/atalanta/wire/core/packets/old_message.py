"""The layout of messages for clients 1.0 to 1.5 (versions before 129).

The body has four bytes more behind it, which are counted with it: the end of the message, seen from the begin of the
frame (CoreMessage.sendBuffer_1X and receiveBuffer_1X). Large messages are not concerned.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from atalanta.message.codec import PACKET_HEADER_BYTES, decode_with_body
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.message.message import Message
from atalanta.wire.core.packet_types import ADDRESSING_VERSION

END_BYTES: Final = 4
BODY_OVERHEAD_BYTES: Final = PACKET_HEADER_BYTES + END_BYTES


def is_old(version: i64) -> bool:
    """Returns True for a peer that has this layout; version 0 is one that is not known yet."""
    return 0 < version < ADDRESSING_VERSION


def decode_old_message(reader: Reader) -> Message:
    """Decodes a message, and leaves what is behind it. DecodeError names the field."""
    length = reader.int32("body length")
    if length < BODY_OVERHEAD_BYTES:
        raise DecodeError("body length", int(reader.position), f"{length} is less than {BODY_OVERHEAD_BYTES}")
    body = reader.take(length - BODY_OVERHEAD_BYTES, "body")
    reader.int32("end of message")  # the header has its own end
    return decode_with_body(reader, body)


def write_old_message(out: BytesWriter, message: Message, message_id: i64) -> None:
    """Writes a message under the given id."""
    body = message.body
    head = message.head
    size: i32 = len(body)
    head_size: i32 = len(head)
    write_i32_be(out, size + BODY_OVERHEAD_BYTES)
    out.write(body)
    # Length, body, this number and the id are before the head.
    write_i32_be(out, size + head_size + (PACKET_HEADER_BYTES + 2 * END_BYTES + 8))
    write_i64_be(out, message_id)
    out.write(head)
