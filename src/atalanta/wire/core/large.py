"""Large messages: put together on arrival, cut into chunks for delivery.

They are kept whole in memory here (streaming them through files is not there yet), so their size is limited.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be

from atalanta.kernel.buffer import Reader
from atalanta.kernel.message import Message, decode_header, encode_header
from atalanta.wire.base import ProtocolError
from atalanta.wire.core import types

LARGE_BYTES_MAX: Final = 64 << 20
CHUNK_BYTES: Final = 102_400
LARGE_SIZE: Final = "_AMQ_LARGE_SIZE"


class LargeReceiver:
    """SESS_SEND_LARGE brings the header, continuations the body."""

    def __init__(self, reader: Reader) -> None:
        self.header = decode_header(reader)
        self.chunks: list[bytes] = []
        self.size: int = 0

    def add(self, reader: Reader) -> bool:
        """One continuation up to its `continues` flag (and the total size of the last); True if more follow."""
        chunk = reader.take(reader.int32("body_length"), "body")
        self.size += len(chunk)
        if self.size > LARGE_BYTES_MAX:
            raise ProtocolError(
                f"large message is longer than {LARGE_BYTES_MAX} bytes: not supported yet"
            )
        self.chunks.append(chunk)
        continues = reader.boolean("continues")
        if not continues:
            reader.int64("total_body_size")
        return continues

    def message(self) -> Message:
        message = self.header
        message.body = b"".join(self.chunks)
        message.properties.put(LARGE_SIZE, len(message.body))
        return message


def large_frames(
    message: Message, consumer_id: int, delivery_count: int
) -> list[tuple[int, bytes]]:
    """SESS_RECEIVE_LARGE_MSG and its continuations, as (packet type, body)."""
    out = BytesWriter()
    write_i64_be(out, consumer_id)
    write_i32_be(out, delivery_count)
    write_i64_be(out, len(message.body))
    out.write(encode_header(message))
    frames = [(types.SESS_RECEIVE_LARGE_MSG, out.getvalue())]
    body = message.body
    start = 0
    while True:
        chunk = body[start : start + CHUNK_BYTES]
        start += len(chunk)
        more = start < len(body)
        piece = BytesWriter()
        write_i32_be(piece, len(chunk))
        piece.write(chunk)
        piece.append(0xFF if more else 0)
        write_i64_be(piece, consumer_id)
        frames.append((types.SESS_RECEIVE_CONTINUATION, piece.getvalue()))
        if not more:
            return frames
