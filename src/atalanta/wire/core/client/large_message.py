"""A large message that is sent or received piece by piece, so that its body need not be in memory as a whole.

It is sent as in ClientProducerImpl.largeMessageSendStreamed: the header, then continuations as the credits reach. Only
the last one asks for an answer. A server drops an incomplete message when the session ends. So a message is given up by
ending its session.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter
from mypy_extensions import mypyc_attr

from atalanta.message.message import Message
from atalanta.wire.core import packet_types
from atalanta.wire.core.client.producer import NO_CONFIRMATION, OutgoingMessage
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.large_chunks import CHUNK_BYTES, write_sent_piece

if TYPE_CHECKING:
    from atalanta.wire.core.client.producer import ClientProducer

_large_start = struct.Struct(">ibqq").pack
MORE: Final = -1


class LargeMessageStream:
    """A large message; `head` as in ClientProducer.send. A session sends one at a time (a limit of CORE)."""

    def __init__(self, producer: ClientProducer, head: bytes, message_id: int = 0) -> None:
        self.producer = producer
        self.bytes_sent: int = 0
        start = _large_start(
            17 + len(head), packet_types.SESS_SEND_LARGE, producer.session.channel, message_id
        )
        self._send(NO_CONFIRMATION, start + head, len(head))

    def add(self, piece: bytes) -> None:
        """Sends a piece of the body, at most CHUNK_BYTES; wait for `room` before the next one."""
        self._piece(piece, MORE, NO_CONFIRMATION)

    def finish(self, piece: bytes) -> Reply:
        """Sends the last piece, which may be empty. The broker's answer resolves the reply."""
        producer = self.producer
        correlation = producer.session.next_correlation()
        producer.sent += 1
        producer.unconfirmed += 1
        reply = Reply()
        total = self.bytes_sent + len(piece)
        self._piece(piece, total, correlation, reply)
        return reply

    def room(self) -> Reply:
        """Returns a reply that is done when no piece waits for credits. Call `check` then."""
        return self.producer.queue.empty()

    def check(self) -> None:
        """Raises the error of the broker or of a lost connection."""
        errors = self.producer.errors
        if errors:
            error = errors.pop(0)
            errors.clear()
            raise error
        self.producer.session.check_usable()

    def _piece(
        self, piece: bytes, total: int, correlation: int, reply: Reply | None = None
    ) -> None:
        if len(piece) > CHUNK_BYTES:
            raise ValueError(f"a piece of {len(piece)} bytes, more than {CHUNK_BYTES}")
        producer = self.producer
        out = BytesWriter()
        session = producer.session
        write_sent_piece(
            out, session.channel, piece, total, correlation, producer.id, session.version
        )
        self.bytes_sent += len(piece)
        self._send(correlation, out.getvalue(), len(piece), reply)

    def _send(
        self, correlation: int, frame: bytes, cost: int, reply: Reply | None = None
    ) -> None:
        producer = self.producer
        producer.session.check_usable()
        outgoing = OutgoingMessage(producer, frame, cost + 24)
        outgoing.reply = reply
        producer.queue.send(correlation, outgoing)


@mypyc_attr(allow_interpreted_subclasses=True)
class BodySink:
    """The receiver of a large body, piece by piece, so that the body is not kept in memory.

    `write` raises no error: its reader gets the error later.
    """

    def write(self, piece: bytes) -> None:
        """Takes the next piece, in order."""
        raise NotImplementedError


class LargeIncoming:
    """A large message that has arrived in part: header first, then continuations.

    Its body goes to `sink`, or is kept, unless it has more than `bytes_max` bytes.
    """

    def __init__(
        self, message: Message, delivery_count: int, bytes_max: int, sink: BodySink | None
    ) -> None:
        self.message = message
        self.delivery_count = delivery_count
        self.bytes_max = bytes_max
        self.received: int = 0
        self.sink = sink
        self._pieces: list[bytes] = []

    def add(self, piece: bytes) -> None:
        """Takes the next piece of the body."""
        self.received += len(piece)
        if self.sink is not None:
            self.sink.write(piece)
        elif self.received <= self.bytes_max:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def too_large(self) -> bool:
        """Returns whether the body was dropped."""
        return self.sink is None and self.received > self.bytes_max

    def complete(self) -> Message:
        """Returns the message, with the body that was kept."""
        if self.sink is None and not self.too_large():
            self.message.body = b"".join(self._pieces)
        return self.message
