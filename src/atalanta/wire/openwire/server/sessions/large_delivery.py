"""The delivery of a large message: its body is read from its file into memory, then sent in one frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.large_read import LargeRead

if TYPE_CHECKING:
    from atalanta.kernel.memory.large_body import LargeBody
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.sessions.session import Session
    from atalanta.message.message import Message
    from atalanta.wire.openwire.server.sessions.dispatches import Dispatches
    from atalanta.wire.openwire.server.sessions.subscription import Delivery, Subscription

READ_BYTES: Final = 1 << 20


class LargeDelivery(LargeRead):
    """A delivery to a consumer, which gets no other message meanwhile."""

    def __init__(
        self,
        kernel: Session,
        dispatches: Dispatches,
        consumer: QueueConsumer,
        subscription: Subscription,
        delivery: Delivery,
        message: Message,
        body: LargeBody,
    ) -> None:
        super().__init__(kernel.services.large, consumer, message, body, READ_BYTES)
        self.kernel = kernel
        self.dispatches = dispatches
        self.subscription = subscription
        self.delivery = delivery
        self.pieces: list[bytes] = []

    def begin(self) -> None:
        """Begins: the frame follows when the body is read."""
        self.begin_read()
        self.kernel.begin_stream(self.consumer, self)
        self.pump()

    def pump(self) -> None:
        if not self.dispatches.connection.blocked:
            self.read_on()

    def take(self, now: int, piece: bytes, last: bool) -> None:
        self.pieces.append(piece)
        if not last:
            self.pump()
            return
        body = b"".join(self.pieces)
        self.end()
        self.dispatches.send(self.kernel, self.consumer, self.subscription, self.delivery, self.message, body)

    def set_aside(self, now: int) -> None:
        self.subscription.release([self.delivery])
        self.kernel.body_damaged(now, self.consumer, self.delivery.reference)
        self.end()

    def abort(self) -> None:
        """Ends the delivery: nothing of it is sent."""
        self.subscription.release([self.delivery])
        self.end()

    def end(self) -> None:
        """Ends the reading of the file."""
        self.pieces.clear()
        self.end_read()
        self.kernel.end_stream(self.consumer)
