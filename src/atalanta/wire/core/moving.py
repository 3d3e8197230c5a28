"""A client on its way to another node: first held back until it is quiet, then told where to go.

What a real Artemis client does with DISCONNECT_V3 of reason 0 (ClientSessionFactoryImpl, 2.44, nodeDisconnected and
failoverOrReconnect): the target becomes the connector that is dialled next, everything else is an ordinary
reconnection. A call that waits for an answer at that moment fails in the application's face (AMQ219016), so a client is
told in a pause between two calls, and until then it gets nothing new and no new credit to send. A call that waits for
a message (SESS_FORCE_CONSUMER_DELIVERY) is none of those: the client asks again by itself (ClientConsumerImpl.receive,
`failedOver`).

The node id of the packet is empty: with ours the client would strike this node from its topology (notifyNodeDown) and
believe no older announcement of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mypy_extensions import i64

from atalanta.kernel.buffer import Reader
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.message_codec import decode_message
from atalanta.wire.core import types
from atalanta.wire.core.packets_connection import REASON_REDIRECT, DisconnectV3
from atalanta.wire.core.topology_entries import send_member_gone

if TYPE_CHECKING:
    from atalanta.wire.core.connection import CoreConnection
    from atalanta.wire.core.session import CoreSession
    from atalanta.wire.core.transport import TransportConfiguration

PING_CHANNEL = 0
SAME_CALL_NS = 2_000_000
NO_CORRELATION = -1
CREDITS_MAX = 0x7FFFFFFF
DRIP_BYTES = 256
# Acknowledgements tell what happened; sends without an answer are taken for sent.
ONE_WAY: tuple[int, ...] = (
    types.SESS_ACKNOWLEDGE,
    types.SESS_INDIVIDUAL_ACKNOWLEDGE,
    types.SESS_EXPIRED,
    types.SESS_SEND_LARGE,
)
# Large messages end with a continuation; without that nothing happens.
SENDS: tuple[int, ...] = (types.SESS_SEND, types.SESS_SEND_CONTINUATION)


class Moving:
    """`since` is when it was chosen, `told_at` when it was told to go (0: not yet).

    `holding`: it gets no deliveries just now. A `patient` one goes on working until its credit to send is used up,
    which then is not renewed: who waits for credit is in no call. `on_answer` is called when something was
    written to the client: the best moment is right behind the answer to a call.
    """

    def __init__(
        self, connection: CoreConnection, now: int, target_node: str, patient: bool
    ) -> None:
        self.connection = connection
        self.target_node = target_node
        self.patient = patient
        self.since: int = now
        self.told_at: int = 0
        self.holding: bool = False
        self.changed_at: int = now  # `holding`
        self.stage_since: int = now  # of this attempt: the first, the patient or the `last` one
        self.last: bool = False
        self.on_answer: Callable[[int], None] | None = None
        self.looked_at: int = 0
        self.looks: int = 0  # in a row that found it silent
        self.heard_at: int = 0  # 0: not since it is held back
        self.answered_at: int = 0  # when something was written to it
        self.gaps: int = 0  # how often it was silent in between, and
        self.shortest_ns: int = 0  # for how long at least
        self.rests: int = 0  # likewise between what was written to it and its next call
        self.shortest_rest_ns: int = 0
        self.in_hand: int = 0  # messages it had not acknowledged at the last look
        self.worked_at: int = now  # when they last became fewer
        self.dripped: int = 0  # bytes of credit it got since it was last heard
        # The journal's end behind the last bytes it sent: answers it waits for are durable by then.
        self.mark: int = connection.host.broker.journal.last
        self.why: str = ""  # it could not be told at the last look
        self.credits: dict[tuple[CoreSession, str], int] = {}
        self.sessions: dict[int, CoreSession] = {}  # of a client that was told

    def begin(self, now: int) -> None:
        """Credit that is asked for waits, and unless it is patient deliveries stop."""
        self.connection.moving = self
        if not self.patient:
            self.hold(now)

    def hold(self, now: int) -> None:
        """No deliveries, until it has done what it has."""
        self.holding = True
        self.changed_at = now
        self.heard_at = self.answered_at = 0
        self.looks = self.gaps = self.rests = 0
        self.connection.hold_deliveries()

    def release(self, now: int) -> None:
        """Deliveries again."""
        self.holding = False
        self.changed_at = now
        self.connection.release_deliveries()
        self.connection.host.broker.wake(now)

    def fed(self, now: int) -> None:
        """What it sent was taken up; what comes within SAME_CALL_NS is one call."""
        self.mark = self.connection.host.broker.journal.last
        self.looks = 0
        self.dripped = 0
        gap = now - self.heard_at
        if self.heard_at and gap >= SAME_CALL_NS:
            self.shortest_ns = min(gap, self.shortest_ns) if self.gaps else gap
            self.gaps += 1
            if self.answered_at >= self.heard_at:
                rest = now - self.answered_at
                self.shortest_rest_ns = min(rest, self.shortest_rest_ns) if self.rests else rest
                self.rests += 1
        self.heard_at = now

    def written(self, now: int) -> None:
        """Something went to the client, an answer most likely."""
        self.answered_at = now
        if self.on_answer is not None:
            self.on_answer(now)

    def withhold(self, session: CoreSession, address: str, amount: int) -> None:
        """The client asks for credit to send: it gets it if it stays, all of an address at once (as memory.py)."""
        before = self.credits.get((session, address), 0)
        self.credits[session, address] = min(before + amount, CREDITS_MAX)

    def hand_out(self, most: int = CREDITS_MAX) -> None:
        """Credit that was held back, `most` of each address."""
        given = list(self.credits.items())
        self.credits = {}
        for (session, address), amount in given:
            if self.connection.sessions.get(session.channel) is not session:
                continue  # closed since; its channel may be another one's by now
            part = min(amount, most)
            if part < amount:
                self.credits[session, address] = amount - part
            try:
                session.session.request_credits(address, part)
            except BrokerError as error:
                session.failed(NO_CORRELATION, error)

    def drip(self) -> None:
        """A little more credit, for one who waits for it in the middle of something: more and more until it is heard.

        With so little it stops again at one of its next messages, hopefully at the first of what it begins then.
        """
        step = max(DRIP_BYTES, self.dripped // 2)
        self.dripped += step
        self.hand_out(step)

    def give_up(self, now: int) -> None:
        """It stays: it gets what was held back."""
        connection = self.connection
        connection.moving = None
        connection.release_deliveries()
        self.hand_out()
        connection.host.broker.wake(now)

    def tell(self, now: int, target: TransportConfiguration, others: list[tuple[str, int]]) -> None:
        """Go there. The connection stays open until the client closes it: what it sent meanwhile is still looked at.

        `others` are all members but the target, with the event ids they are known under. A client with ha=true and
        only failoverAttempts takes the next of the members it knows, whatever the target: it is told that they are
        gone, by the very events it knows them by, so that it believes the target when that names them again.
        """
        connection = self.connection
        if connection.subscribed:
            for node_id, event_id in others:
                send_member_gone(connection, node_id, event_id)
        self.told_at = now
        self.on_answer = None
        self.credits = {}
        connection.send(
            DisconnectV3(
                node_id="", reason=REASON_REDIRECT, target_node_id=self.target_node, target=target
            ),
            PING_CHANNEL,
        )
        self.sessions = connection.sessions
        connection.sessions = {}

    def late(
        self, now: int, packet_type: int, channel: int, data: bytes, start: i64, end: i64
    ) -> None:
        """A frame that crossed the good-bye.

        One that asks for an answer is not carried out: its caller gets an error, or repeats it at the target, and it
        must not happen twice. One that asks for none is taken for done by its sender, so it is.
        """
        session = self.sessions.get(channel)
        if session is None:
            return
        if packet_type in ONE_WAY or (
            packet_type in SENDS and not asks_for_answer(session, packet_type, data, start, end)
        ):
            session.receive(now, packet_type, data, start, end)
        else:
            self.connection.host.broker.trace.count("frames_after_redirect_undone")

    def put_back(self) -> None:
        """The connection ends: its sessions end with it."""
        self.connection.moving = None
        self.connection.sessions.update(self.sessions)
        self.sessions = {}


def asks_for_answer(
    session: CoreSession, packet_type: int, data: bytes, start: i64, end: i64
) -> bool:
    """Whether a send is a blocking one, or confirmed later (a correlation the client waits for)."""
    reader = Reader(data, start, end)
    if packet_type == types.SESS_SEND:
        decode_message(reader)
    else:
        reader.take(reader.int32("body_length"), "body")
        if reader.boolean("continues"):
            return False  # the last one decides
        reader.int64("total_body_size")
    return reader.boolean("requires_response")
