"""The frame of a forwarded message: the message as stored, plus where it must go and an id against repeats.

`_AMQ_ROUTE_TO` holds the binding ids on the peer, `_AMQ_BRIDGE_DUP` 16 bytes of this node's id and the message's id
(fact sheet, "Message forwarding headers").
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i64

from atalanta.kernel.message import Message, encode_header, write_message
from atalanta.kernel.reference import Reference
from atalanta.wire.core.types import SESS_SEND, SESS_SEND_CONTINUATION, SESS_SEND_LARGE

ROUTE_TO: Final = "_AMQ_ROUTE_TO"
BRIDGE_DUPLICATE: Final = "_AMQ_BRIDGE_DUP"
LARGE_SIZE: Final = "_AMQ_LARGE_SIZE"
CHUNK_BYTES: Final = 102_400
PRODUCER_ID: Final = 1
NO_ANSWER: Final = -1


def node_id_bytes(node_id: str) -> bytes:
    """16 bytes of a node id written as a UUID; any other id is cut or padded to 16."""
    digits = node_id.replace("-", "")
    try:
        return bytes.fromhex(digits)[:16].ljust(16, b"\0")
    except ValueError:
        return node_id.encode()[:16].ljust(16, b"\0")


def forwarded(reference: Reference, node_bytes: bytes, duplicate_detection: bool) -> Message:
    """A copy with the headers of the link; the id stays the source's."""
    message = reference.message.copy(reference.message.id)
    properties = message.properties
    properties.put(ROUTE_TO, reference.route_to)
    if duplicate_detection:
        properties.put(
            BRIDGE_DUPLICATE, node_bytes + int(reference.message.id).to_bytes(8, "big", signed=True)
        )
    return message


def send_frames(message: Message, channel: int, correlation: int) -> bytes:
    """SESS_SEND (or SESS_SEND_LARGE and its continuations) that asks for an answer under `correlation`."""
    out = BytesWriter()
    if message.has_property(LARGE_SIZE):
        _large(out, message, channel, correlation)
        return out.getvalue()
    body_bytes = len(message.body) + len(message.head) + 12 + 13
    _header(out, SESS_SEND, channel, body_bytes)
    write_message(out, message, message.id)
    _tail(out, True, correlation)
    return out.getvalue()


def _header(out: BytesWriter, packet_type: int, channel: i64, body_bytes: int) -> None:
    write_i32_be(out, body_bytes + 9)
    out.append(packet_type)
    write_i64_be(out, channel)


def _tail(out: BytesWriter, requires_response: bool, correlation: i64) -> None:
    out.append(0xFF if requires_response else 0)
    write_i64_be(out, correlation)
    write_i32_be(out, PRODUCER_ID)


def _large(out: BytesWriter, message: Message, channel: int, correlation: int) -> None:
    header = encode_header(message)
    _header(out, SESS_SEND_LARGE, channel, len(header))
    out.write(header)
    body = message.body
    start = 0
    while True:
        chunk = body[start : start + CHUNK_BYTES]
        start += len(chunk)
        more = start < len(body)
        _header(out, SESS_SEND_CONTINUATION, channel, 4 + len(chunk) + 1 + (0 if more else 8) + 13)
        write_i32_be(out, len(chunk))
        out.write(chunk)
        out.append(0xFF if more else 0)
        if not more:
            write_i64_be(out, len(body))
        _tail(out, not more, NO_ANSWER if more else correlation)
        if not more:
            return
