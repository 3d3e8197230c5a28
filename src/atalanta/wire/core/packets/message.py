"""Packets with messages, and the plain answer: read and written by hand.

The write_ functions write whole frames into a connection's output and return the frame's bytes, which credits and
confirmation windows count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64, u8

from atalanta.message.codec import (
    decode_header,
    decode_message,
    encode_header,
    encode_message,
    write_message,
)
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.message.message import Message
from atalanta.wire.core.frames import FRAME_OVERHEAD_BYTES, write_frame_header
from atalanta.wire.core.packet_types import (
    ASYNC_RESPONSE_VERSION,
    NULL_RESPONSE,
    SENDER_ID_VERSION,
    SESS_RECEIVE_CONTINUATION,
    SESS_RECEIVE_LARGE_MSG,
    SESS_RECEIVE_MSG,
    SESS_SEND,
    SESS_SEND_CONTINUATION,
    SESS_SEND_LARGE,
    send_tail_bytes,
)
from atalanta.wire.core.packets.base import Packet, numbered
from atalanta.wire.core.packets.old_message import (
    END_BYTES,
    decode_old_message,
    is_old,
    write_old_message,
)

# A message without body and head: int32 length of the body, int64 message id.
MESSAGE_FIXED_BYTES: Final = 12
RECEIVE_TAIL_BYTES: Final = 12


@dataclass(eq=False, repr=False, init=False)
class MessagePacket(Packet):
    """A packet with a message; two are compared in their encoded form."""

    message: Message

    def values(self) -> list[object]:
        values = super().values()
        values[0] = encode_message(self.message, self.message.id)
        return values


@dataclass(eq=False, repr=False, init=False)
class SendMessage(MessagePacket):
    """SESS_SEND: answered by NullResponse with the correlation if a response is required."""

    requires_response: bool
    correlation: int
    sender_id: int

    def __init__(
        self,
        message: Message,
        requires_response: bool = False,
        correlation: int = -1,
        sender_id: int = -1,
    ) -> None:
        self.message = message
        self.requires_response = requires_response
        self.correlation = correlation
        self.sender_id = sender_id


@dataclass(eq=False, repr=False, init=False)
class SendLargeMessage(MessagePacket):
    """SESS_SEND_LARGE: a message without its body, which follows in SendContinuations."""

    def __init__(self, message: Message) -> None:
        self.message = message


@dataclass(eq=False, repr=False, init=False)
class SendContinuation(Packet):
    """SESS_SEND_CONTINUATION: `body_size` is in the last one only; bridges leave it -1."""

    body: bytes
    continues: bool
    body_size: int
    requires_response: bool
    correlation: int
    sender_id: int

    def __init__(
        self,
        body: bytes,
        continues: bool,
        body_size: int = -1,
        requires_response: bool = False,
        correlation: int = -1,
        sender_id: int = -1,
    ) -> None:
        self.body = body
        self.continues = continues
        self.body_size = body_size
        self.requires_response = requires_response
        self.correlation = correlation
        self.sender_id = sender_id


@dataclass(eq=False, repr=False, init=False)
class ReceiveMessage(MessagePacket):
    """SESS_RECEIVE_MSG: a delivery."""

    consumer_id: int
    delivery_count: int

    def __init__(self, message: Message, consumer_id: int, delivery_count: int) -> None:
        self.message = message
        self.consumer_id = consumer_id
        self.delivery_count = delivery_count


@dataclass(eq=False, repr=False, init=False)
class ReceiveLargeMessage(MessagePacket):
    """SESS_RECEIVE_LARGE_MSG: a delivery whose body follows in ReceiveContinuations."""

    consumer_id: int
    delivery_count: int
    body_size: int

    def __init__(
        self, message: Message, consumer_id: int, delivery_count: int, body_size: int
    ) -> None:
        self.message = message
        self.consumer_id = consumer_id
        self.delivery_count = delivery_count
        self.body_size = body_size


@dataclass(eq=False, repr=False, init=False)
class ReceiveContinuation(Packet):
    """SESS_RECEIVE_CONTINUATION: the next piece of a large message's body."""

    body: bytes
    continues: bool
    consumer_id: int

    def __init__(self, body: bytes, continues: bool, consumer_id: int) -> None:
        self.body = body
        self.continues = continues
        self.consumer_id = consumer_id


numbered(
    {
        SESS_SEND: SendMessage,
        SESS_SEND_LARGE: SendLargeMessage,
        SESS_SEND_CONTINUATION: SendContinuation,
        SESS_RECEIVE_MSG: ReceiveMessage,
        SESS_RECEIVE_LARGE_MSG: ReceiveLargeMessage,
        SESS_RECEIVE_CONTINUATION: ReceiveContinuation,
    }
)


def decode_send(data: bytes, start: i64, end: i64, version: i64) -> SendMessage:
    """Decodes SESS_SEND. The tail is found from the end of the frame; all bytes before it must be the message."""
    tail = send_tail_bytes(version)
    position = end - tail
    if position < start:
        raise DecodeError("message", start, f"needs more than {tail} bytes, {end - start} are left")
    message = whole_message(data, start, position, version)
    requires_response = data[position] != 0
    correlation = int(read_i64_be(data, position + 1)) if tail >= 9 else -1
    sender_id = int(read_i32_be(data, position + 9)) if tail == 13 else -1
    return SendMessage(
        message, requires_response=requires_response, correlation=correlation, sender_id=sender_id
    )


def decode_receive(data: bytes, start: i64, end: i64, version: i64) -> ReceiveMessage:
    position = end - RECEIVE_TAIL_BYTES
    if position < start:
        raise DecodeError("message", start, f"needs more than 12 bytes, {end - start} are left")
    message = whole_message(data, start, position, version)
    consumer_id = int(read_i64_be(data, position))
    return ReceiveMessage(message, consumer_id, int(read_i32_be(data, position + 8)))


def whole_message(data: bytes, start: i64, end: i64, version: i64) -> Message:
    reader = Reader(data, int(start), int(end))
    message = decode_old_message(reader) if is_old(version) else decode_message(reader)
    if reader.position != end:
        raise DecodeError("message", reader.position, f"{reader.left()} bytes after the properties")
    return message


def decode_send_large(reader: Reader) -> SendLargeMessage:
    return SendLargeMessage(decode_header(reader))


def decode_receive_large(reader: Reader) -> ReceiveLargeMessage:
    consumer_id = reader.int64("consumer_id")
    delivery_count = reader.int32("delivery_count")
    body_size = reader.int64("body_size")
    return ReceiveLargeMessage(
        decode_header(reader),
        consumer_id=consumer_id,
        delivery_count=delivery_count,
        body_size=body_size,
    )


def decode_send_continuation(reader: Reader, version: i64) -> SendContinuation:
    body = reader.blob("body")
    continues = reader.boolean("continues")
    packet = SendContinuation(body, continues=continues)
    if not continues:
        packet.body_size = reader.int64("body_size")
    packet.requires_response = reader.boolean("requires_response")
    if version == 0 or version >= ASYNC_RESPONSE_VERSION:
        packet.correlation = reader.int64("correlation")
    if version == 0 or version >= SENDER_ID_VERSION:
        packet.sender_id = reader.int32("sender_id")
    return packet


def decode_receive_continuation(reader: Reader) -> ReceiveContinuation:
    body = reader.blob("body")
    continues = reader.boolean("continues")
    return ReceiveContinuation(body, continues, reader.int64("consumer_id"))


def write_boolean(out: BytesWriter, value: bool) -> None:
    out.append(u8(0xFF) if value else u8(0))


def _begin_frame(out: BytesWriter, code: i64, channel: i64, message: Message, tail: i64, version: i64) -> i64:
    """Writes the header of a frame and the message under its own id; a `tail` of so many bytes follows.

    Returns the size of the payload.
    """
    old = is_old(version)
    size: i64 = len(message.body)
    payload = size + len(message.head) + MESSAGE_FIXED_BYTES + tail
    if old:
        payload += END_BYTES
    write_frame_header(out, code, channel, payload)
    if old:
        write_old_message(out, message, message.id)
    else:
        write_message(out, message, message.id)
    return payload


def write_receive(
    out: BytesWriter, channel: i64, message: Message, consumer_id: i64, delivery_count: i32, version: i64
) -> i64:
    """Writes SESS_RECEIVE_MSG: the message as it was sent, under its own id."""
    payload = _begin_frame(out, SESS_RECEIVE_MSG, channel, message, RECEIVE_TAIL_BYTES, version)
    write_i64_be(out, consumer_id)
    write_i32_be(out, delivery_count)
    return payload + FRAME_OVERHEAD_BYTES


def write_send(
    out: BytesWriter,
    channel: i64,
    message: Message,
    requires_response: bool,
    correlation: i64,
    sender_id: i32,
    version: i64,
) -> i64:
    """Writes SESS_SEND, under the message's own id."""
    tail = send_tail_bytes(version)
    payload = _begin_frame(out, SESS_SEND, channel, message, tail, version)
    write_boolean(out, requires_response)
    if tail >= 9:
        write_i64_be(out, correlation)
    if tail == 13:
        write_i32_be(out, sender_id)
    return payload + FRAME_OVERHEAD_BYTES


def write_null_response(out: BytesWriter, channel: i64, correlation: i64, version: i64) -> i64:
    """Writes NULL_RESPONSE; the correlation is -1 if the request had none."""
    if version != 0 and version < ASYNC_RESPONSE_VERSION:
        write_frame_header(out, NULL_RESPONSE, channel, 0)
        return FRAME_OVERHEAD_BYTES
    write_frame_header(out, NULL_RESPONSE, channel, 8)
    write_i64_be(out, correlation)
    return FRAME_OVERHEAD_BYTES + 8


def write_send_large(out: BytesWriter, channel: i64, message: Message) -> i64:
    """Writes SESS_SEND_LARGE: the header alone."""
    header = encode_header(message)
    size: i64 = len(header)
    write_frame_header(out, SESS_SEND_LARGE, channel, size)
    out.write(header)
    return size + FRAME_OVERHEAD_BYTES


def write_receive_large(
    out: BytesWriter,
    channel: i64,
    message: Message,
    consumer_id: i64,
    delivery_count: i32,
    body_size: i64,
) -> i64:
    """Writes SESS_RECEIVE_LARGE_MSG: the header alone; `body_size` is that of the whole body."""
    header = encode_header(message)
    size: i64 = len(header)
    write_frame_header(out, SESS_RECEIVE_LARGE_MSG, channel, size + 20)
    write_i64_be(out, consumer_id)
    write_i32_be(out, delivery_count)
    write_i64_be(out, body_size)
    out.write(header)
    return size + 20 + FRAME_OVERHEAD_BYTES


def write_receive_continuation(
    out: BytesWriter, channel: i64, body: bytes, continues: bool, consumer_id: i64
) -> i64:
    """Writes SESS_RECEIVE_CONTINUATION."""
    size: i32 = len(body)
    payload = i64(size) + 13
    write_frame_header(out, SESS_RECEIVE_CONTINUATION, channel, payload)
    write_i32_be(out, size)
    out.write(body)
    write_boolean(out, continues)
    write_i64_be(out, consumer_id)
    return payload + FRAME_OVERHEAD_BYTES


def write_send_continuation(
    out: BytesWriter, channel: i64, packet: SendContinuation, version: i64
) -> i64:
    """Writes SESS_SEND_CONTINUATION."""
    size: i32 = len(packet.body)
    tail = send_tail_bytes(version)
    payload = i64(size) + 5 + tail
    if not packet.continues:
        payload += 8
    write_frame_header(out, SESS_SEND_CONTINUATION, channel, payload)
    write_i32_be(out, size)
    out.write(packet.body)
    write_boolean(out, packet.continues)
    if not packet.continues:
        write_i64_be(out, packet.body_size)
    write_boolean(out, packet.requires_response)
    if tail >= 9:
        write_i64_be(out, packet.correlation)
    if tail == 13:
        write_i32_be(out, packet.sender_id)
    return payload + FRAME_OVERHEAD_BYTES
