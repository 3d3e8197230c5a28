"""The delivery of a large message, read from its file piece by piece as credits and connection allow
(LargeMessageDeliverer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.core.large_chunks import CHUNK_BYTES, write_received_piece
from atalanta.wire.core.packets.message import write_receive_large
from atalanta.wire.large_read import LargeRead

if TYPE_CHECKING:
    from atalanta.kernel.memory.large_body import LargeBody
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message
    from atalanta.wire.core.server.session import CoreSession

READ_BYTES: Final = 2 * CHUNK_BYTES  # in memory at a time


class LargeDelivery(LargeRead):
    """A delivery to a consumer, which gets no other message meanwhile. At most 200 KiB are read ahead."""

    def __init__(
        self,
        session: CoreSession,
        consumer: QueueConsumer,
        reference: Reference,
        message: Message,
        body: LargeBody,
    ) -> None:
        super().__init__(session.broker.large, consumer, message, body, READ_BYTES)
        self.session = session
        self.reference = reference
        self.sent: int = 0  # bytes of the body
        self.data: bytes = b""  # read, and the number of bytes sent:
        self.place: int = 0

    def begin(self) -> int:
        """Sends the header; returns its cost. The first piece follows when it is read."""
        session = self.session
        reference = self.reference
        connection = session.connection
        connection.flush_later()
        cost = write_receive_large(
            connection.out,
            session.channel,
            self.message,
            self.consumer.id,
            reference.delivery_count,
            self.body.size,
        )
        self.begin_read()
        session.session.begin_stream(self.consumer, self)
        self._read_if_sent()
        return int(cost)

    def pump(self) -> None:
        size = self.body.size
        consumer = self.consumer
        while self.place < len(self.data) or size == 0:
            if self._must_wait():
                return
            connection = self.session.connection
            piece = self.data[self.place : self.place + CHUNK_BYTES]
            self.place += len(piece)
            self.sent += len(piece)
            connection.flush_later()
            cost = write_received_piece(
                connection.out, self.session.channel, piece, self.sent < size, consumer.id
            )
            consumer.take_credits(cost)
            connection.delivered()
            if self.sent >= size:
                self.abort()
                return
        self.data = b""
        self.place = 0
        self._read_if_sent()

    def _must_wait(self) -> bool:
        consumer = self.consumer
        return self.session.session.blocked or not (consumer.unlimited or consumer.credits > 0)

    def _read_if_sent(self) -> None:
        """Reads more, but only if it can be sent."""
        if not self._must_wait():
            self.read_on()

    def take(self, now: int, piece: bytes, last: bool) -> None:
        self.data = piece
        self.place = 0
        self.pump()

    def set_aside(self, now: int) -> None:
        """Sets the message aside and closes the connection: CORE has no other error for a part of a message.

        The stream ends with the connection: until then the consumer gets no other message.
        """
        self.session.session.body_damaged(now, self.consumer, self.reference)
        connection = self.session.connection
        queue = self.consumer.queue.name
        connection.host.closing.append(
            (connection.conn, f"large message {self.message.id} of queue {queue} cannot be read")
        )

    def abort(self) -> None:
        self.data = b""
        self.end_read()
        self.session.session.end_stream(self.consumer)
