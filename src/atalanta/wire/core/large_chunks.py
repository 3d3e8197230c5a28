"""Large messages on the wire: a header, and continuations with pieces of the body.

The server, the cluster's links and Atalanta's client share `cut` and one writer for each direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from atalanta.wire.core.frames import write_frame_header
from atalanta.wire.core.packet_types import (
    ASYNC_RESPONSE_VERSION,
    SENDER_ID_VERSION,
    SESS_RECEIVE_CONTINUATION,
    SESS_SEND_CONTINUATION,
    send_tail_bytes,
)

CHUNK_BYTES: Final = 102_400
NO_ANSWER: Final = -1


def cut(data: bytes, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yields pieces of at most `chunk_bytes`; one empty piece for an empty body."""
    if len(data) <= chunk_bytes:
        yield data
        return
    for start in range(0, len(data), chunk_bytes):
        yield data[start : start + chunk_bytes]


def write_received_piece(
    out: BytesWriter, channel: i64, piece: bytes, more: bool, consumer_id: i64
) -> int:
    """Writes SESS_RECEIVE_CONTINUATION; returns the frame's bytes."""
    size: i32 = len(piece)
    write_frame_header(out, SESS_RECEIVE_CONTINUATION, channel, i64(size) + 13)
    write_i32_be(out, size)
    out.write(piece)
    out.append(0xFF if more else 0)
    write_i64_be(out, consumer_id)
    return int(size) + 26


def write_sent_piece(
    out: BytesWriter,
    channel: i64,
    piece: bytes,
    total: i64,
    correlation: i64,
    sender_id: i32,
    version: i64,
) -> None:
    """Writes SESS_SEND_CONTINUATION of a version.

    `total` < 0: more pieces follow. Else `total` is the size of the whole body, and the piece is the last. Only the
    last piece asks for an answer, unless `correlation` is NO_ANSWER.
    """
    size: i32 = len(piece)
    last = total >= 0
    payload = i64(size) + send_tail_bytes(version) + (13 if last else 5)
    write_frame_header(out, SESS_SEND_CONTINUATION, channel, payload)
    write_i32_be(out, size)
    out.write(piece)
    out.append(0 if last else 0xFF)
    if last:
        write_i64_be(out, total)
    out.append(0xFF if last and correlation != NO_ANSWER else 0)
    if version >= ASYNC_RESPONSE_VERSION:
        write_i64_be(out, correlation if last else NO_ANSWER)
    if version >= SENDER_ID_VERSION:
        write_i32_be(out, sender_id)
