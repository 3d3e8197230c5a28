"""The body of a large message, read from its file piece by piece for a delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.kernel.memory.large_body import LargeBodies, LargeBody, LargeStream, next_crc

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.message.message import Message


@mypyc_attr(allow_interpreted_subclasses=True)
class LargeRead(LargeStream):
    """The body of a delivery. `offset`: bytes read. Its file is kept until `end_read`, also if the message goes."""

    def __init__(
        self, large: LargeBodies, consumer: QueueConsumer, message: Message, body: LargeBody, piece_bytes: int
    ) -> None:
        self.large = large
        self.consumer = consumer
        self.message = message
        self.body = body
        self.piece_bytes = piece_bytes
        self.offset: int = 0
        self.crc: int = 0  # crc32c of all that was read
        self.token: int = -1  # of the pending read

    # -- the protocol's part --------------------------------------------------------------------
    def take(self, now: int, piece: bytes, last: bool) -> None:
        """Handles the next piece."""
        raise NotImplementedError

    def set_aside(self, now: int) -> None:
        """Handles that the file is damaged: what has come before is whole."""
        raise NotImplementedError

    # -- reading --------------------------------------------------------------------------------
    def begin_read(self) -> None:
        """Keeps the file."""
        self.large.hold(self.body, 1)

    def read_on(self) -> None:
        """Asks for the next piece, unless one is on its way."""
        if self.token < 0:
            size = min(self.piece_bytes, self.body.size - self.offset)
            self.token = self.large.read(self.body, self.offset, size, self)

    def read_again(self) -> None:
        """Begins with the first piece again."""
        self.offset = 0
        self.crc = 0

    def read(self, now: int, data: bytes) -> None:
        self.token = -1
        left = self.body.size - self.offset
        last = len(data) == left
        self.crc = next_crc(self.crc, data)
        self.offset += len(data)
        if len(data) < min(self.piece_bytes, left) or (last and self.crc != self.body.crc):
            message_id, queue = int(self.message.id), self.consumer.queue.name
            self.large.damaged(self.body.file, self.body.size, message_id, queue, self.offset)
            self.set_aside(now)
        else:
            self.take(now, data, last)

    def end_read(self) -> None:
        """Lets the file go."""
        if self.token >= 0:
            self.large.cancel(self.token)
            self.token = -1
        self.large.release(self.body)
