"""The client's producers: messages that wait for credits, and the window of unconfirmed messages."""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from atalanta.message.message import Message
from atalanta.wire.core import packet_types
from atalanta.wire.core.client.credits import AddressCredits
from atalanta.wire.core.client.errors import ClientError
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.large_chunks import cut, write_sent_piece
from atalanta.wire.core.packet_types import send_tail_bytes

if TYPE_CHECKING:
    from atalanta.wire.core.client.session import ClientSession

ERRORS_KEPT: Final = 16

_frame_start = struct.Struct(">ibqi").pack
_frame_header = struct.Struct(">ibq").pack
_message_id = struct.Struct(">q").pack
_tail = struct.Struct(">Bqi").pack

NO_CONFIRMATION: Final = -1


class OutgoingMessage:
    """A message that is sent; kept until it is confirmed, and sent again after a lost connection."""

    __slots__ = ("cost", "frame", "producer", "repeated", "reply")

    def __init__(self, producer: ClientProducer, frame: bytes, cost: int) -> None:
        self.producer = producer
        self.frame = frame
        self.cost = cost
        self.reply: Reply | None = None
        self.repeated: bool = False


class SendQueue:
    """The messages of one session for one address that wait for credits."""

    def __init__(self, session: ClientSession, address: str, window_bytes: int) -> None:
        self.session = session
        self.credits: AddressCredits = AddressCredits(address, window_bytes, session.send_packet)
        # (correlation or NO_CONFIRMATION, message)
        self.waiting: deque[tuple[int, OutgoingMessage]] = deque()
        self._empty: list[Reply] = []

    def send(self, correlation: int, outgoing: OutgoingMessage) -> None:
        """Sends at once if there are credits, else when they come."""
        session = self.session
        if self.waiting or not session.open or not self.credits.take(outgoing.cost):
            self.waiting.append((correlation, outgoing))
            return
        session.transmit(correlation, outgoing)

    def granted(self, amount: int) -> None:
        """Processes SESS_PRODUCER_CREDITS."""
        self.credits.granted(amount)
        self.pump()

    def pump(self) -> None:
        """Sends waiting messages, as far as the credits reach."""
        waiting = self.waiting
        session = self.session
        while waiting and session.open and self.credits.take(waiting[0][1].cost):
            correlation, outgoing = waiting.popleft()
            session.transmit(correlation, outgoing)
        self._notify_empty()

    def empty(self) -> Reply:
        """Returns a reply that is done when no message waits for credits."""
        reply = Reply()
        if self.waiting:
            self._empty.append(reply)
        else:
            reply.resolve(None)
        return reply

    def _notify_empty(self) -> None:
        if self.waiting:
            return
        waiting = self._empty
        self._empty = []
        for reply in waiting:
            reply.resolve(None)
        self.session.send_queue_empty()

    def begin(self) -> None:
        """Starts without credits after the session was created (again)."""
        self.credits.begin()
        self.pump()

    def fail(self, error: ClientError) -> None:
        """Refuses all waiting messages."""
        waiting = self.waiting
        self.waiting = deque()
        for _, outgoing in waiting:
            outgoing.producer.refused(outgoing, error)
        self._notify_empty()


class ClientProducer:
    """A producer of one session for one address. `unconfirmed` counts messages, waiting ones included; `repeats` those
    that the node had already, by their duplicate ids, though they were sent once here.
    """

    def __init__(self, session: ClientSession, queue: SendQueue, producer_id: int) -> None:
        self.session = session
        self.queue = queue
        self.address = queue.credits.address
        self.id = producer_id
        self.unconfirmed: int = 0
        self.sent: int = 0
        self.confirmed: int = 0
        self.resent: int = 0
        self.refused_count: int = 0
        self.repeats: int = 0
        self.errors: list[ClientError] = []
        self.closed: bool = False
        # The largest number that a waiter waits for, -1 without waiters.
        self.room_at: int = -1
        self.waiters: list[tuple[int, Reply]] = []

    def send(self, body: bytes, head: bytes, confirm: bool, message_id: int = 0) -> OutgoingMessage:
        """Sends a message. `head` is the encoded header after the message id, with properties (kernel Message.head).

        With `confirm` the broker answers; the answer is counted and resolves the Sending's reply.
        """
        session = self.session
        session.check_usable()
        large = self.is_large(body, head)
        correlation = session.next_correlation() if confirm else NO_CONFIRMATION
        if large:
            frame = self._large_frames(body, head, correlation, message_id)
        else:
            size = len(body)
            tail = _tail(0xFF if confirm else 0, correlation, self.id)
            if session.version < packet_types.SENDER_ID_VERSION:
                tail = tail[: send_tail_bytes(session.version)]
            frame = b"".join(
                (
                    _frame_start(size + len(head) + len(tail) + 21, packet_types.SESS_SEND, session.channel, size + 13),
                    body,
                    _message_id(message_id),
                    head,
                    tail,
                )
            )
        outgoing = OutgoingMessage(self, frame, len(body) + len(head) + 24)
        self.sent += 1
        if confirm:
            self.unconfirmed += 1
        self.queue.send(correlation, outgoing)
        return outgoing

    def is_large(self, body: bytes, head: bytes) -> bool:
        """Returns True if the message is sent in pieces."""
        return len(body) + len(head) > self.session.settings.min_large_message_size

    def send_message(self, message: Message, confirm: bool = True) -> OutgoingMessage:
        """Sends an encoded message under its own id."""
        return self.send(message.body, message.head, confirm, int(message.id))

    def _large_frames(self, body: bytes, head: bytes, correlation: int, message_id: int) -> bytes:
        """Returns SESS_SEND_LARGE and its continuations; only the last one asks for an answer."""
        channel = self.session.channel
        version = self.session.version
        out = BytesWriter()
        out.write(_frame_header(17 + len(head), packet_types.SESS_SEND_LARGE, channel))
        out.write(_message_id(message_id))
        out.write(head)
        left = len(body)
        for piece in cut(body):
            left -= len(piece)
            total = len(body) if left == 0 else -1
            write_sent_piece(out, channel, piece, total, correlation, self.id, version)
        return out.getvalue()

    def accepted(self, outgoing: OutgoingMessage) -> None:
        """Records that the broker confirmed a message."""
        self.unconfirmed -= 1
        self.confirmed += 1
        reply = outgoing.reply
        if reply is not None:
            reply.resolve(None)
        if self.unconfirmed <= self.room_at:
            self._make_room()

    def refused(self, outgoing: OutgoingMessage, error: ClientError) -> None:
        """Records that a message was refused: in the reply of the message if there is one, else in `errors`."""
        self.unconfirmed = max(0, self.unconfirmed - 1)
        reply = outgoing.reply
        if reply is not None:
            reply.fail(error)
        else:
            self.refused_count += 1
            if len(self.errors) < ERRORS_KEPT:
                self.errors.append(error)
        if self.unconfirmed <= self.room_at:
            self._make_room()

    def wait_for_room(self, at_most: int) -> Reply:
        """Returns a reply that is done when at most `at_most` messages are unconfirmed (0: all have an answer)."""
        reply = Reply()
        if self.unconfirmed <= at_most:
            reply.resolve(None)
            return reply
        self.waiters.append((at_most, reply))
        if at_most > self.room_at:
            self.room_at = at_most
        return reply

    def _make_room(self) -> None:
        waiters = self.waiters
        self.waiters = []
        self.room_at = -1
        free: list[Reply] = []
        for at_most, reply in waiters:
            if self.unconfirmed <= at_most:
                free.append(reply)
            else:
                self.waiters.append((at_most, reply))
                if at_most > self.room_at:
                    self.room_at = at_most
        for reply in free:
            reply.resolve(None)
