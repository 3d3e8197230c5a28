"""Redirect of a connected client to another node.

An Artemis client that receives DISCONNECT_V3 with reason 0 (ClientSessionFactoryImpl 2.44, nodeDisconnected and
failoverOrReconnect) dials the target of the packet next. Everything else is an ordinary reconnection. A call that waits
for its answer at that moment fails in the application (AMQ219016). A call that waits for a message
(SESS_FORCE_CONSUMER_DELIVERY) does not fail: the client repeats it at the target (ClientConsumerImpl.receive,
`failedOver`).

The node id in the packet is empty. With the id of this node the client would remove this node from its topology
(notifyNodeDown) and ignore later announcements of it with an older event id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from atalanta.message.codec import decode_message
from atalanta.message.encoding.buffer import Reader
from atalanta.wire.connection import Redirect
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets.connection import REASON_REDIRECT, DisconnectV3
from atalanta.wire.core.server.requests.session_requests import receive

if TYPE_CHECKING:
    from atalanta.wire.core.server.connection import CoreConnection
    from atalanta.wire.core.server.session import CoreSession
    from atalanta.wire.core.transport import TransportConfiguration

PING_CHANNEL = 0
# Packets without an answer: their sender takes them as done.
ONE_WAY: tuple[int, ...] = (
    packet_types.SESS_ACKNOWLEDGE,
    packet_types.SESS_INDIVIDUAL_ACKNOWLEDGE,
    packet_types.SESS_EXPIRED,
    packet_types.SESS_SEND_LARGE,
)
# The last continuation of a large message decides if an answer is wanted.
SENDS: tuple[int, ...] = (packet_types.SESS_SEND, packet_types.SESS_SEND_CONTINUATION)


class CoreRedirect(Redirect):
    """The redirect of a CORE client.

    `journal_mark` is the end of the journal behind the last bytes of the client: its answers are written when that is
    durable. `sessions` are those of a client whose redirect was sent.
    """

    def __init__(self, connection: CoreConnection, now: int, target_node: str) -> None:
        super().__init__(connection, now, target_node)
        self.core = connection
        self.journal_mark: int = connection.host.broker.journal.last
        self.sessions: dict[int, CoreSession] = {}

    def begin(self) -> None:
        self.core.pending_redirect = self
        self.core.show_blocked()

    def mark_received(self) -> None:
        """Records that frames of the client were processed up to now."""
        self.journal_mark = self.core.host.broker.journal.last

    def answered(self, now: int) -> None:
        """Records that an answer is in the output buffer, and that nothing follows it in this batch of inputs."""
        if self.on_answer is not None:
            self.on_answer(self, now)

    def cancel(self, now: int) -> None:
        connection = self.core
        connection.pending_redirect = None
        connection.show_blocked()
        connection.host.broker.wake(now)

    def send(self, now: int, target: TransportConfiguration, others: list[tuple[str, int]]) -> None:
        """Sends the client to `target`. The connection stays open until the client closes it.

        `others` are the (node id, event id) of all members but the target. A client with ha=true and only
        failoverAttempts ignores the target and dials the next member of its topology. So the node first reports all
        other members as left, under the event ids that the client knows. The target announces them again under the
        same ids.
        """
        connection = self.core
        if connection.subscribed:
            for node_id, event_id in others:
                connection.member_down(node_id, event_id)
        self.sent_at = now
        self.on_answer = None
        connection.send(
            DisconnectV3(
                node_id="", reason=REASON_REDIRECT, target_node_id=self.target_node, target=target
            ),
            PING_CHANNEL,
        )
        self.sessions = connection.sessions
        connection.sessions = {}

    def is_sending(self) -> bool:
        for session in self.core.sessions.values():
            if session.large is not None:
                return True
        return False

    def unwritten(self) -> str | None:
        connection = self.core
        if connection.host.broker.journal.durable < self.journal_mark:
            return "waits for the disk"
        if connection.holds > 0 or connection.held or connection.blocked or connection.logins:
            return "has bytes on their way"
        return None

    def receive(
        self, now: int, packet_type: int, channel: int, data: bytes, start: i64, end: i64
    ) -> None:
        """Processes a frame that the client sent before it read the redirect.

        A frame that asks for an answer is dropped: its caller gets an error or repeats it at the target, and it must
        not take effect twice. A frame without answer is processed, since its sender takes it for done.
        """
        session = self.sessions.get(channel)
        if session is None:
            return
        if packet_type in ONE_WAY or (
            packet_type in SENDS and not asks_for_answer(session, packet_type, data, start, end)
        ):
            receive(session, now, packet_type, data, start, end)
        else:
            self.core.host.broker.trace.count("frames_after_redirect_undone")

    def restore_sessions(self) -> None:
        """Gives the sessions back to the connection, which ends and closes them."""
        self.core.pending_redirect = None
        self.core.sessions.update(self.sessions)
        self.sessions = {}


def asks_for_answer(
    session: CoreSession, packet_type: int, data: bytes, start: i64, end: i64
) -> bool:
    """Returns True if the client waits for the answer to a send, or for its confirmation by correlation id."""
    reader = Reader(data, start, end)
    if packet_type == packet_types.SESS_SEND:
        decode_message(reader)
    else:
        reader.take(reader.int32("body_length"), "body")
        if reader.boolean("continues"):
            return False
        reader.int64("total_body_size")
    return reader.boolean("requires_response")
