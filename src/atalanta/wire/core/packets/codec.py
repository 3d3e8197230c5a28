"""Encodes and decodes packets: every type of wire/core/packet_types.py, in all protocol versions (121 to 136).

Version 0 is a connection whose version is not known yet. It reads and writes the newest layouts, as
CoreRemotingConnection does.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be
from mypy_extensions import i64

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.wire.core.frames import FRAME_OVERHEAD_BYTES, Frame, Framer, write_frame_header
from atalanta.wire.core.packet_types import (
    ASYNC_RESPONSE_VERSION,
    LOG_READ_COLUMNS_RESP,
    LOG_READ_RESP,
    LOG_VIEW,
    NEWEST_VERSION,
    NULL_RESPONSE,
    SESS_ACKNOWLEDGE,
    SESS_FLOWTOKEN,
    SESS_INDIVIDUAL_ACKNOWLEDGE,
    SESS_RECEIVE_CONTINUATION,
    SESS_RECEIVE_LARGE_MSG,
    SESS_RECEIVE_MSG,
    SESS_SEND,
    SESS_SEND_CONTINUATION,
    SESS_SEND_LARGE,
    SESSION_CHANNEL,
    packet_name,
)
from atalanta.wire.core.packets import (
    cluster,
    connection,
    consumer,
    producer,
    query,
    queue,
    session,
    topology,
    transaction,
)
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets.consumer import Acknowledge, FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets.layout import Layout
from atalanta.wire.core.packets.log_chunk import (
    LogReadColumnsResponse,
    LogReadResponse,
    decode_chunk,
    decode_column_chunk,
    write_chunk,
    write_column_chunk,
)
from atalanta.wire.core.packets.message import (
    ReceiveContinuation,
    ReceiveLargeMessage,
    ReceiveMessage,
    SendContinuation,
    SendLargeMessage,
    SendMessage,
    decode_receive,
    decode_receive_continuation,
    decode_receive_large,
    decode_send,
    decode_send_continuation,
    decode_send_large,
    write_null_response,
    write_receive,
    write_receive_continuation,
    write_receive_large,
    write_send,
    write_send_continuation,
    write_send_large,
)
from atalanta.wire.core.packets.topology import (
    ClusterTopology,
    decode_topology,
    encode_topology,
    generation,
)
from atalanta.wire.protocol_error import ProtocolError

ACKNOWLEDGE_BYTES: Final = 17
FLOW_TOKEN_BYTES: Final = 12


def _table() -> dict[int, type[Packet]]:
    found: dict[int, type[Packet]] = {}
    for packets in (
        connection.PACKETS,
        session.PACKETS,
        query.PACKETS,
        queue.PACKETS,
        consumer.PACKETS,
        producer.PACKETS,
        transaction.PACKETS,
        topology.PACKETS,
        cluster.PACKETS,
    ):
        found.update(packets)
    return found


# Those of the log view are added by `layout_of`.
PACKETS: Final = _table()
# Made at the first packet of a type: a program uses few, and starts faster.
LAYOUTS: Final[dict[int, Layout]] = {}


def layout_of(code: int) -> Layout | None:
    """Returns the layout of a packet type; None for packets that are written by hand, and for unknown types."""
    layout = LAYOUTS.get(code)
    if layout is not None:
        return layout
    packet = PACKETS.get(code)
    if packet is None and code in LOG_VIEW:
        from atalanta.wire.core.packets import logview  # see there

        PACKETS.update(logview.PACKETS)
        packet = PACKETS.get(code)
    if packet is not None:
        layout = LAYOUTS[code] = Layout(packet)
    return layout


def decode(code: int, payload: bytes, version: int = NEWEST_VERSION) -> Packet:
    """Returns the packet of type `code`. ProtocolError names packet and field, also if bytes are left over."""
    return decode_range(code, payload, 0, len(payload), version)


def decode_frame(frame: Frame, version: int = NEWEST_VERSION) -> Packet:
    """Decodes as `decode`, without a copy of the payload."""
    return decode_range(frame.type, frame.data, frame.start, frame.end, version)


def decode_range(code: int, data: bytes, start: i64, end: i64, version: int) -> Packet:
    """Decodes data[start:end] as `decode`; offsets in errors count from the begin of the payload."""
    try:
        return _decode(code, data, start, end, version)
    except DecodeError as error:
        place = f"{error.field} at byte {error.offset - start}"
        raise ProtocolError(f"{packet_name(code)}: {place}: {error.text}") from error


def _decode(code: int, data: bytes, start: i64, end: i64, version: int) -> Packet:
    # Hot packets first, without a table.
    if code == SESS_SEND:
        return decode_send(data, start, end, version)
    if code == SESS_RECEIVE_MSG:
        return decode_receive(data, start, end, version)
    if (code == SESS_ACKNOWLEDGE or code == SESS_INDIVIDUAL_ACKNOWLEDGE) and (
        end - start == ACKNOWLEDGE_BYTES
    ):
        consumer_id = int(read_i64_be(data, start))
        message_id = int(read_i64_be(data, start + 8))
        requires_response = data[start + 16] != 0
        if code == SESS_ACKNOWLEDGE:
            return Acknowledge(consumer_id, message_id, requires_response)
        return IndividualAcknowledge(consumer_id, message_id, requires_response)
    if code == NULL_RESPONSE and end - start == 8:
        return NullResponse(int(read_i64_be(data, start)))
    if code == SESS_FLOWTOKEN and end - start == FLOW_TOKEN_BYTES:
        return FlowToken(int(read_i64_be(data, start)), int(read_i32_be(data, start + 8)))
    reader = Reader(data, int(start), int(end))
    packet = _decode_other(code, reader, version)
    if reader.position != end:
        raise DecodeError("end", int(reader.position), f"{reader.left()} bytes too many")
    return packet


def _decode_other(code: int, reader: Reader, version: int) -> Packet:
    if code == LOG_READ_RESP:
        return decode_chunk(reader)
    if code == LOG_READ_COLUMNS_RESP:
        return decode_column_chunk(reader)
    layout = layout_of(code)
    if layout is not None:
        return layout.decode(reader, version)
    if code == SESS_RECEIVE_CONTINUATION:
        return decode_receive_continuation(reader)
    if code == SESS_SEND_CONTINUATION:
        return decode_send_continuation(reader, version)
    if code == SESS_RECEIVE_LARGE_MSG:
        return decode_receive_large(reader)
    if code == SESS_SEND_LARGE:
        return decode_send_large(reader)
    number = generation(code)
    if number:
        return decode_topology(reader, number)
    raise ProtocolError(f"{packet_name(code)} is not known")


def encode(packet: Packet, channel: int, version: int = NEWEST_VERSION) -> bytes:
    """Returns the whole frame. A field out of range raises the Writer's errors: a mistake of the caller."""
    out = BytesWriter()
    write_packet(out, packet, channel, version)
    return out.getvalue()


def reencode(frames: bytes, before: int, after: int, correlation: int, sender_id: int) -> bytes:
    """Returns whole frames that a client encoded for version `before` as frames for version `after`.

    Both ids are those of the packet that is answered. Frames of old versions do not have them.
    """
    out = BytesWriter()
    for frame in Framer(False).feed(frames):
        packet = decode_frame(frame, before)
        if isinstance(packet, SendMessage | SendContinuation):
            packet.sender_id = sender_id
            if packet.requires_response:
                packet.correlation = correlation
        elif isinstance(packet, transaction.Commit):
            packet.correlation = correlation
        write_packet(out, packet, frame.channel, after)
    return out.getvalue()


def write_packet(out: BytesWriter, packet: Packet, channel: i64, version: int) -> i64:
    """Writes the whole frame into `out`; returns its bytes."""
    if isinstance(packet, ReceiveMessage):
        return write_receive(
            out, channel, packet.message, packet.consumer_id, packet.delivery_count, version
        )
    if isinstance(packet, NullResponse):
        return write_null_response(out, channel, packet.correlation, version)
    if isinstance(packet, SendMessage):
        return write_send(
            out,
            channel,
            packet.message,
            packet.requires_response,
            packet.correlation,
            packet.sender_id,
            version,
        )
    if isinstance(packet, LogReadResponse):
        return write_chunk(out, channel, packet)
    if isinstance(packet, LogReadColumnsResponse):
        return write_column_chunk(out, channel, packet)
    layout = layout_of(packet.type)
    if layout is None:
        return _write_other(out, packet, channel, version)
    if channel == SESSION_CHANNEL and isinstance(packet, ExceptionResponse):
        # ActiveMQPacketHandler answers on channel 1 with the form that has no correlation.
        version = ASYNC_RESPONSE_VERSION - 1
    writer = Writer()
    layout.encode(writer, packet, version)
    return _write_frame(out, packet, channel, writer)


def _write_frame(out: BytesWriter, packet: Packet, channel: i64, writer: Writer) -> i64:
    payload = writer.getvalue()
    size: i64 = len(payload)
    write_frame_header(out, packet.type, channel, size)
    out.write(payload)
    return size + FRAME_OVERHEAD_BYTES


def _write_other(out: BytesWriter, packet: Packet, channel: i64, version: int) -> i64:
    if isinstance(packet, ReceiveContinuation):
        return write_receive_continuation(
            out, channel, packet.body, packet.continues, packet.consumer_id
        )
    if isinstance(packet, SendContinuation):
        return write_send_continuation(out, channel, packet, version)
    if isinstance(packet, ReceiveLargeMessage):
        return write_receive_large(
            out,
            channel,
            packet.message,
            packet.consumer_id,
            packet.delivery_count,
            packet.body_size,
        )
    if isinstance(packet, SendLargeMessage):
        return write_send_large(out, channel, packet.message)
    if isinstance(packet, ClusterTopology):
        writer = Writer()
        encode_topology(writer, packet, generation(packet.type))
        return _write_frame(out, packet, channel, writer)
    raise TypeError(f"{packet!r} has no encoding")
