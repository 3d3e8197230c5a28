"""Sending of a large message to a peer: its file is read in chunks, as fast as the connection takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from librt.strings import BytesWriter

from atalanta.cluster.links.forward_frame import PRODUCER_ID
from atalanta.kernel.memory.large_body import LargeBodies, LargeBody, LargeStream, next_crc
from atalanta.message.message import LARGE_SIZE
from atalanta.wire.core.large_chunks import CHUNK_BYTES, NO_ANSWER, cut, write_sent_piece
from atalanta.wire.core.packets.message import write_send_large

if TYPE_CHECKING:
    from atalanta.cluster.links.limits import SendLimits
    from atalanta.cluster.links.outbound_link import DialedLink
    from atalanta.message.message import Message

READ_BYTES: Final = 2 * CHUNK_BYTES  # in memory at a time


class LargeMessageOwner(Protocol):
    """The owner of the session that sends a large message."""

    link: DialedLink
    large_bodies: LargeBodies
    channel: int
    limits: SendLimits

    def large_sent(self) -> None:
        """Handles the end of the large message: the next message may follow."""

    def cannot_read(self, now: int, stream: OutboundLargeMessage) -> None:
        """Handles a damaged file. The connection must be closed, since the peer has a part of the message."""


class OutboundLargeMessage(LargeStream):
    """Sends SESS_SEND_LARGE and its continuations. The last one asks for an answer under `correlation`.

    The body is held until its end, also if the message is removed. The peer gets all of it or loses the connection.
    """

    def __init__(
        self, outgoing: LargeMessageOwner, message: Message, body: LargeBody, correlation: int
    ) -> None:
        self.outgoing = outgoing
        self.link = outgoing.link
        self.body = body
        self.total = announced_size(message, body.size)
        self.chunk_bytes = outgoing.limits.chunk_bytes
        self.correlation = correlation
        self.offset: int = 0
        self.crc: int = 0  # crc32c of all that was read
        self.found: int = -1  # bytes of a damaged body that could be read
        self.token: int = -1
        out = BytesWriter()
        write_send_large(out, outgoing.channel, message)
        self.link.write(out.getvalue())
        self.large = outgoing.large_bodies
        self.large.borrow(body)

    def pump(self) -> None:
        if self.token >= 0 or self.link.blocked:
            return
        if self.body.size == 0:
            self._write(b"")
            return
        size = min(READ_BYTES, self.body.size - self.offset)
        self.token = self.large.read(self.body, self.offset, size, self)

    def read(self, now: int, data: bytes) -> None:
        self.token = -1
        left = self.body.size - self.offset
        self.crc = next_crc(self.crc, data)
        if len(data) < min(READ_BYTES, left) or (len(data) == left and self.crc != self.body.crc):
            self.found = self.offset + len(data)
            self.outgoing.cannot_read(now, self)
            return
        self._write(data)

    def _write(self, data: bytes) -> None:
        out = BytesWriter()
        for piece in cut(data, self.chunk_bytes):
            self.offset += len(piece)
            last = self.offset >= self.body.size
            total = self.total if last else -1
            correlation = self.correlation if last else NO_ANSWER
            write_sent_piece(
                out, self.outgoing.channel, piece, total, correlation, PRODUCER_ID, self.link.version
            )
        self.link.write(out.getvalue())
        if self.offset >= self.body.size:
            self.abort()
            self.outgoing.large_sent()
        else:
            self.pump()

    def abort(self) -> None:
        if self.token >= 0:
            self.large.cancel(self.token)
            self.token = -1
        self.large.release(self.body)


def announced_size(message: Message, size: int) -> int:
    """Returns the size to name for a body of `size` bytes: that before its compression, if the sender named one."""
    named = message.property_value(LARGE_SIZE)
    return named if isinstance(named, int) and named >= 0 else size


def large_frames(
    message: Message, channel: int, correlation: int, chunk_bytes: int, version: int
) -> bytes:
    """Encodes a message in memory as chunks, since its body is longer than min-large-message-size."""
    out = BytesWriter()
    write_send_large(out, channel, message)
    body = message.body
    offset = 0
    for piece in cut(body, chunk_bytes):
        offset += len(piece)
        if offset < len(body):
            write_sent_piece(out, channel, piece, -1, NO_ANSWER, PRODUCER_ID, version)
        else:
            total = announced_size(message, len(body))
            write_sent_piece(out, channel, piece, total, correlation, PRODUCER_ID, version)
    return out.getvalue()
