"""The delivery of a large message: its body is read from its file into memory, then sent in one frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.memory.large_body import LargeBody, LargeStream, next_crc

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.sessions.session import Session
    from atalanta.message.message import Message
    from atalanta.wire.openwire.server.sessions.dispatches import Dispatches
    from atalanta.wire.openwire.server.sessions.subscription import Delivery, Subscription

READ_BYTES: Final = 1 << 20


class LargeDelivery(LargeStream):
    """A delivery. The body's file is kept until its end, even if the message is deleted."""

    def __init__(
        self,
        kernel: Session,
        dispatches: Dispatches,
        consumer: Consumer,
        subscription: Subscription,
        delivery: Delivery,
        message: Message,
        body: LargeBody,
    ) -> None:
        self.kernel = kernel
        self.dispatches = dispatches
        self.connection = dispatches.connection
        self.large = kernel.services.large
        self.consumer = consumer
        self.subscription = subscription
        self.delivery = delivery
        self.message = message
        self.body = body
        self.pieces: list[bytes] = []
        self.offset: int = 0  # of the next byte to read
        self.crc: int = 0
        self.token: int = -1  # of the pending read

    def begin(self) -> None:
        """Begins: the frame follows when the body is read."""
        self.large.hold(self.body, 1)
        self.kernel.begin_stream(self.consumer, self)
        self.pump()

    def pump(self) -> None:
        if self.token < 0 and not self.connection.blocked:
            size = min(READ_BYTES, self.body.size - self.offset)
            self.token = self.large.read(self.body, self.offset, size, self)

    def read(self, now: int, data: bytes) -> None:
        self.token = -1
        left = self.body.size - self.offset
        self.crc = next_crc(self.crc, data)
        last = len(data) == left
        if len(data) < min(READ_BYTES, left) or (last and self.crc != self.body.crc):
            self._damaged(now, self.offset + len(data))
            return
        self.offset += len(data)
        self.pieces.append(data)
        if not last:
            self.pump()
            return
        body = b"".join(self.pieces)
        self.end()
        self.dispatches.send(self.kernel, self.consumer, self.subscription, self.delivery, self.message, body)

    def _damaged(self, now: int, found: int) -> None:
        """Sets the message aside."""
        queue = self.consumer.queue.name
        self.large.damaged(self.body.file, self.body.size, int(self.message.id), queue, found)
        self.subscription.release([self.delivery])
        self.kernel.body_damaged(now, self.consumer, self.delivery.reference)
        self.end()

    def abort(self) -> None:
        """Ends the delivery: nothing of it is sent."""
        self.subscription.release([self.delivery])
        self.end()

    def end(self) -> None:
        """Ends the reading of the file."""
        if self.token >= 0:
            self.large.cancel(self.token)
            self.token = -1
        self.pieces.clear()
        self.large.release(self.body)
        self.kernel.end_stream(self.consumer)
