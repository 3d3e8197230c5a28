"""Sending: byte credits of an address, and the window of messages that are not confirmed yet.

Credits follow ClientProducerCreditsImpl: at least half of the window is kept in hand or on its way;
a broker short of memory simply does not answer, and what is to be sent waits here.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from atalanta.message.message import Message
from atalanta.wire.core import packet_types
from atalanta.wire.core.client.errors import ClientError
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.large_chunks import cut, write_sent_piece

if TYPE_CHECKING:
    from atalanta.wire.core.client.session import ClientSession

ERRORS_KEPT: Final = 16
CREDITS_MAX: Final = (1 << 31) - 1

_frame_start = struct.Struct(">ibqi").pack
_frame_header = struct.Struct(">ibq").pack
_message_id = struct.Struct(">q").pack
_tail = struct.Struct(">Bqi").pack

NO_CONFIRMATION: Final = -1


class Sending:
    """A message on its way; kept until it is confirmed, to be sent again after a loss."""

    __slots__ = ("cost", "frame", "producer", "repeated", "reply")

    def __init__(self, producer: ClientProducer, frame: bytes, cost: int) -> None:
        self.producer = producer
        self.frame = frame
        self.cost = cost
        self.reply: Reply | None = None
        self.repeated: bool = False


class AddressCredits:
    """What one session may still send to one address, and the messages that wait for more."""

    def __init__(self, session: ClientSession, address: str, window: int) -> None:
        self.session = session
        self.address = address
        self.half: int = window // 2 if window > 0 else 0
        self.unlimited: bool = window <= 0
        self.balance: int = 0
        self.arriving: int = 0
        # (correlation, or NO_CONFIRMATION; what to send)
        self.waiting: deque[tuple[int, Sending]] = deque()
        self._empty: list[Reply] = []

    def send(self, correlation: int, sending: Sending) -> None:
        """At once if credits are there, else when they come."""
        session = self.session
        if self.waiting or not session.open or not self._pay(sending.cost):
            self.waiting.append((correlation, sending))
            return
        session.transmit(correlation, sending)

    def _pay(self, cost: int) -> bool:
        """Take credits, and ask for more in time."""
        if self.unlimited:
            return True
        self.balance -= cost
        if self.balance + self.arriving < self.half:
            self._ask(self.half * 2 - self.balance - self.arriving)
        if self.balance >= 0:
            return True
        self.balance += cost
        if self.balance + self.arriving < cost:
            self._ask(cost - self.balance - self.arriving)
        return False

    def _ask(self, amount: int) -> None:
        amount = min(amount, CREDITS_MAX)
        self.arriving += amount
        self.session.ask_credits(self.address, amount)

    def granted(self, amount: int) -> None:
        """SESS_PRODUCER_CREDITS."""
        self.balance += amount
        self.arriving = max(0, self.arriving - amount)
        self.pump()

    def pump(self) -> None:
        """Send what waits, as far as the credits reach."""
        waiting = self.waiting
        session = self.session
        while waiting and session.open and self._pay(waiting[0][1].cost):
            correlation, sending = waiting.popleft()
            session.transmit(correlation, sending)
        self._tell_empty()

    def empty(self) -> Reply:
        """Done when nothing waits for credits."""
        reply = Reply()
        if self.waiting:
            self._empty.append(reply)
        else:
            reply.resolve(None)
        return reply

    def _tell_empty(self) -> None:
        if self.waiting:
            return
        told = self._empty
        self._empty = []
        for reply in told:
            reply.resolve(None)
        self.session.credits_empty()

    def begin(self) -> None:
        """A session was made (again): it starts without credits."""
        self.balance = 0
        self.arriving = 0
        if not self.unlimited:
            self._ask(self.half * 2)
        self.pump()

    def fail(self, error: ClientError) -> None:
        """Nothing that waits will be sent."""
        waiting = self.waiting
        self.waiting = deque()
        for _, sending in waiting:
            sending.producer.refused(sending, error)
        self._tell_empty()


class ClientProducer:
    """Sends to one address of one session. `unconfirmed` counts messages, waiting ones included."""

    def __init__(self, session: ClientSession, credits: AddressCredits, producer_id: int) -> None:
        self.session = session
        self.credits = credits
        self.address = credits.address
        self.id = producer_id
        self.unconfirmed: int = 0
        self.sent: int = 0
        self.confirmed: int = 0
        self.resent: int = 0
        self.refused_count: int = 0
        self.errors: list[ClientError] = []
        self.closed: bool = False
        # `room_at`: the largest of the numbers that are waited for, -1 when nobody waits.
        self.room_at: int = -1
        self.waiters: list[tuple[int, Reply]] = []

    def send(self, body: bytes, head: bytes, confirm: bool, message_id: int = 0) -> Sending:
        """`head`: the encoded header after the message id, properties included (kernel Message.head).

        With `confirm` the broker answers, which is counted here and resolves the Sending's reply.
        """
        session = self.session
        session.check_usable()
        large = self.is_large(body, head)
        correlation = session.next_correlation() if confirm else NO_CONFIRMATION
        if large:
            frame = self._large_frames(body, head, correlation, message_id)
        else:
            size = len(body)
            frame = b"".join(
                (
                    _frame_start(size + len(head) + 34, packet_types.SESS_SEND, session.channel, size + 13),
                    body,
                    _message_id(message_id),
                    head,
                    _tail(0xFF if confirm else 0, correlation, self.id),
                )
            )
        sending = Sending(self, frame, len(body) + len(head) + 24)
        self.sent += 1
        if confirm:
            self.unconfirmed += 1
        self.credits.send(correlation, sending)
        return sending

    def is_large(self, body: bytes, head: bytes) -> bool:
        """Whether it travels in pieces."""
        return len(body) + len(head) > self.session.settings.min_large_message_size

    def send_message(self, message: Message, confirm: bool = True) -> Sending:
        """A message that is encoded already, under its own id."""
        return self.send(message.body, message.head, confirm, int(message.id))

    def _large_frames(self, body: bytes, head: bytes, correlation: int, message_id: int) -> bytes:
        """SESS_SEND_LARGE and its continuations; only the last one asks for an answer."""
        channel = self.session.channel
        out = BytesWriter()
        out.write(_frame_header(17 + len(head), packet_types.SESS_SEND_LARGE, channel))
        out.write(_message_id(message_id))
        out.write(head)
        left = len(body)
        for piece in cut(body):
            left -= len(piece)
            total = len(body) if left == 0 else -1
            write_sent_piece(out, channel, piece, total, correlation, self.id)
        return out.getvalue()

    def accepted(self, sending: Sending) -> None:
        """The broker confirmed it."""
        self.unconfirmed -= 1
        self.confirmed += 1
        reply = sending.reply
        if reply is not None:
            reply.resolve(None)
        if self.unconfirmed <= self.room_at:
            self._make_room()

    def refused(self, sending: Sending, error: ClientError) -> None:
        """It will not be confirmed; who waits for just this one is told, else it is kept for all."""
        self.unconfirmed = max(0, self.unconfirmed - 1)
        self.refused_count += 1
        reply = sending.reply
        if reply is not None:
            reply.fail(error)
        elif len(self.errors) < ERRORS_KEPT:
            self.errors.append(error)
        if self.unconfirmed <= self.room_at:
            self._make_room()

    def wait_for_room(self, at_most: int) -> Reply:
        """Done when at most so many messages are unconfirmed (0: all are confirmed or refused)."""
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
