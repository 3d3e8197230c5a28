"""The delivery of a large message, read from its file piece by piece as credits and connection allow
(LargeMessageDeliverer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.memory.large_body import LargeBody, LargeStream, next_crc
from atalanta.wire.core.large_chunks import CHUNK_BYTES, write_received_piece
from atalanta.wire.core.packets.message import write_receive_large

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message
    from atalanta.wire.core.server.session import CoreSession

READ_BYTES: Final = 2 * CHUNK_BYTES  # in memory at a time


class LargeDelivery(LargeStream):
    """A delivery to a consumer. The body's file is kept until its end, even if the message is deleted.

    At most 200 KiB are read ahead. The consumer gets no other message meanwhile.
    """

    def __init__(
        self,
        session: CoreSession,
        consumer: Consumer,
        reference: Reference,
        message: Message,
        body: LargeBody,
    ) -> None:
        self.session = session
        self.consumer = consumer
        self.reference = reference
        self.message = message
        self.body = body
        self.offset: int = 0  # of the first unsent byte
        self.data: bytes = b""  # read, and the number of bytes sent:
        self.place: int = 0
        self.crc: int = 0  # crc32c of all that was read
        self.token: int = -1  # of the pending read

    def begin(self) -> int:
        """Sends the header; returns its cost. The first piece follows when it is read."""
        session = self.session
        reference = self.reference
        connection = session.connection
        connection.start_writing()
        cost = write_receive_large(
            connection.out,
            session.channel,
            self.message,
            self.consumer.id,
            reference.delivery_count,
            self.body.size,
        )
        session.broker.large.hold(self.body, 1)
        session.session.begin_stream(self.consumer, self)
        self._read_on()
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
            self.offset += len(piece)
            connection.start_writing()
            cost = write_received_piece(
                connection.out, self.session.channel, piece, self.offset < size, consumer.id
            )
            consumer.take_credits(cost)
            connection.sent_large()
            if self.offset >= size:
                self.abort()
                return
        self.data = b""
        self.place = 0
        self._read_on()

    def _must_wait(self) -> bool:
        consumer = self.consumer
        return self.session.session.blocked or not (consumer.unlimited or consumer.credits > 0)

    def _read_on(self) -> None:
        """Reads more, but only if it can be sent."""
        if self.token < 0 and not self._must_wait():
            size = min(READ_BYTES, self.body.size - self.offset)
            self.token = self.session.broker.large.read(self.body, self.offset, size, self)

    def read(self, now: int, data: bytes) -> None:
        self.token = -1
        left = self.body.size - self.offset
        self.crc = next_crc(self.crc, data)
        if len(data) < min(READ_BYTES, left) or (len(data) == left and self.crc != self.body.crc):
            self._damaged(now, self.offset + len(data))
            return
        self.data = data
        self.place = 0
        self.pump()

    def _damaged(self, now: int, found: int) -> None:
        """Sets the message aside and closes the connection: CORE has no other error for a part of a message.

        The stream ends with the connection: until then the consumer gets no other message.
        """
        session = self.session
        queue = self.consumer.queue.name
        session.broker.large.damaged(self.body.file, self.body.size, int(self.message.id), queue, found)
        session.session.body_damaged(now, self.consumer, self.reference)
        connection = session.connection
        connection.host.closing.append(
            (connection.conn, f"large message {self.message.id} of queue {queue} cannot be read")
        )

    def abort(self) -> None:
        broker = self.session.broker
        if self.token >= 0:
            broker.large.cancel(self.token)
            self.token = -1
        self.data = b""
        broker.large.release(self.body)
        self.session.session.end_stream(self.consumer)
