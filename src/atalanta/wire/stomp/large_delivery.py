"""The delivery of a large message: one MESSAGE frame, whose body is read from its file piece by piece.

STOMP cannot interrupt a frame: until its end the connection writes nothing else. The frame names its length, so a text
(UTF-16 in the file) is read twice, first to measure it.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final

from atalanta.message.message import COMPRESSED, TEXT, TEXT_LENGTHS_BYTES, Message
from atalanta.wire.large_read import LargeRead
from atalanta.wire.stomp.frame import encoded_head

if TYPE_CHECKING:
    from atalanta.kernel.memory.large_body import LargeBody
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.sessions.session import Session
    from atalanta.wire.stomp.output import StompOutput

READ_BYTES: Final = 200 << 10
END_OF_FRAME: Final = b"\x00\n"


class Utf8:
    """The UTF-8 form of a text body that comes in pieces, without its length in front."""

    def __init__(self) -> None:
        self.left_out: int = TEXT_LENGTHS_BYTES
        self.decoder = codecs.getincrementaldecoder("utf-16-le")("replace")

    def convert(self, piece: bytes, last: bool) -> bytes:
        """Returns the next piece. A character that ends in the next one waits for it."""
        if self.left_out:
            left_out = min(self.left_out, len(piece))
            self.left_out -= left_out
            piece = piece[left_out:]
        return self.decoder.decode(piece, last).encode("utf-8", "replace")


class LargeDelivery(LargeRead):
    """A delivery to a consumer.

    `detached`: the subscription has ended, but the frame must be completed. `length`: the bytes of the frame's body.
    """

    def __init__(
        self,
        kernel: Session,
        connection: StompOutput,
        consumer: QueueConsumer,
        reference: Reference,
        message: Message,
        body: LargeBody,
        headers: list[tuple[str, str]],
        automatic: bool,
    ) -> None:
        super().__init__(kernel.services.large, consumer, message, body, READ_BYTES)
        self.kernel = kernel
        self.connection = connection
        self.automatic = automatic
        self.reference = reference
        self.headers = headers
        compressed = message.property_value(COMPRESSED) is True
        if compressed:
            headers.append(("content-encoding", "deflate"))
        self.text: Utf8 | None = Utf8() if message.kind == TEXT and not compressed else None
        self.measuring: bool = self.text is not None
        self.length: int = 0 if self.measuring else body.size
        self.started: bool = False  # the head is written
        self.detached: bool = False

    def begin(self) -> None:
        """Begins: the pieces follow as they are read."""
        self.begin_read()
        self.kernel.begin_stream(self.consumer, self)
        self.connection.begin_stream(self)
        self.pump()

    def pump(self) -> None:
        if not self.connection.stream_waits():
            self.read_on()

    def take(self, now: int, piece: bytes, last: bool) -> None:
        text = self.text
        if text is not None:
            piece = text.convert(piece, last)
        if self.measuring:
            self.length += len(piece)
            if last:
                self.measuring = False
                self.text = Utf8()
                self.read_again()
        else:
            self._write(piece, last)
            if last:
                self._complete()
                return
        self.pump()

    def _write(self, piece: bytes, last: bool) -> None:
        connection = self.connection
        out = connection.writer()
        if not self.started:
            self.started = True
            connection.begin_frame()
            self.headers.append(("content-length", str(self.length)))
            out.write(encoded_head("MESSAGE", self.headers, connection.version))
        out.write(piece)
        if last:
            out.write(END_OF_FRAME)

    def _complete(self) -> None:
        if self.automatic and not self.detached:
            acknowledge_delivered(self.kernel, self.consumer, self.reference)
        self.end()

    def set_aside(self, now: int) -> None:
        """Sets the message aside. If a part of it is sent, the connection closes: STOMP has no other error for that."""
        if not self.detached:
            self.kernel.body_damaged(now, self.consumer, self.reference)
        if self.started:
            queue = self.consumer.queue.name
            self.connection.break_off(f"large message {self.message.id} of queue {queue} cannot be read")
        self.end()

    def abort(self) -> None:
        """Ends the delivery for the kernel; a frame that has begun is completed all the same."""
        if self.started and not self.connection.gone:
            if not self.detached:
                self.detached = True
                self.kernel.end_stream(self.consumer)
        else:
            self.end()

    def end(self) -> None:
        """Ends the delivery."""
        self.end_read()
        if not self.detached:
            self.kernel.end_stream(self.consumer)
        self.connection.end_stream()


def acknowledge_delivered(kernel: Session, consumer: QueueConsumer, reference: Reference) -> None:
    """Acknowledges a message of a subscription with the mode auto, which is written."""
    consumer.unacknowledged.pop(reference.message.id)
    store = kernel.services.store
    consumer.counts.acknowledged_at = store.now
    store.acknowledge([reference], None, 0)
