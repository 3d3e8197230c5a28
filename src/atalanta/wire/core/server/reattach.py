"""REATTACH_SESSION: a client whose socket was lost continues its sessions on a new connection.

A session can be reattached if it has a confirmation window. Its connection is lost, and kept for its time to live, or
still seems alive. Packets that the client has not confirmed are sent again, before the answer. The answer has the
number of the last processed packet. The answer waits until that packet is on disk, because the client takes it as
confirmed.

The request has no credentials: the client's own name for the session is the secret. Management, notifications and the
log have another name, `Session.name`, which opens nothing. The request must come from the same host and acceptor as the
session, with the same certificate, and never moves a session to a connection of another user. A wrong name counts as a
refused login. See docs/internals/protocols/core.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from atalanta.kernel.endpoint import Reply
from atalanta.wire.core.packet_types import COUNTED
from atalanta.wire.core.packets.session import ReattachSession, ReattachSessionResponse

if TYPE_CHECKING:
    from atalanta.wire.core.server.connection import CoreConnection
    from atalanta.wire.core.server.resend_buffer import Replay
    from atalanta.wire.core.server.session import CoreSession

LOST_MAX: Final = 1_000  # connections kept for their clients; the oldest goes first
LOST_TTL_NS: Final = 60_000_000_000  # for a client without a time to live
SESSION_RESPONSE_CHANNEL: Final = 1
# Wrong names before login, of one host in a period. Java makes its names from the time, so they could be searched.
WRONG_NAMES_MAX: Final = 20
WRONG_NAMES_PERIOD_NS: Final = 600_000_000_000
HOSTS_MAX: Final = 10_000


class Reattached(Reply):
    """Answers once all that the session had processed is on disk."""

    def __init__(self, connection: CoreConnection) -> None:
        self.connection = connection

    def done(self, token: int) -> None:
        self.connection.send(ReattachSessionResponse(token, True), SESSION_RESPONSE_CHANNEL)


class ResumableSession:
    """A session that can be reattached, with its present connection."""

    def __init__(self, session: CoreSession, connection: CoreConnection) -> None:
        self.session = session
        self.connection = connection


class WrongNames:
    """The wrong names of sessions that each host has sent before login, in this period."""

    def __init__(self) -> None:
        self.by_host: dict[str, int] = {}
        self.since: int = 0

    def add(self, host: str) -> None:
        if len(self.by_host) >= HOSTS_MAX:
            self.by_host.pop(next(iter(self.by_host)))
        self.by_host[host] = self.by_host.get(host, 0) + 1

    def exceeded(self, now: int, host: str) -> bool:
        """Returns True if the host has had its tries: its clients must log in and create their sessions again."""
        if now - self.since > WRONG_NAMES_PERIOD_NS:
            self.by_host.clear()
            self.since = now
        return self.by_host.get(host, 0) >= WRONG_NAMES_MAX


class Resumable:
    """The sessions of a node that can be reattached, by name, and connections that are lost but kept."""

    def __init__(self) -> None:
        self.sessions: dict[str, ResumableSession] = {}
        self.lost: dict[int, CoreConnection] = {}
        self.wrong_names = WrongNames()

    def add(self, now: int, session: CoreSession, connection: CoreConnection) -> None:
        """Adds a session of the connection.

        A lost one of the same name is ended: its client could not reattach and created it again.
        """
        assert session.replay is not None
        name = session.replay.name
        before = self.sessions.get(name)
        if (
            before is not None
            and before.connection.conn in self.lost
            and before.session.session.identity.user == session.session.identity.user
            and before.connection.security_domain() == connection.security_domain()
        ):
            end_session(before.session, now)
        self.sessions[name] = ResumableSession(session, connection)

    def forget(self, replay: Replay) -> None:
        """Removes the session with that replay, unless another one has its name."""
        found = self.sessions.get(replay.name)
        if found is not None and found.session.replay is replay:
            del self.sessions[replay.name]

    def keep(self, now: int, connection: CoreConnection) -> None:
        """Keeps a lost connection: its sessions wait for their client."""
        self.lost[connection.conn] = connection
        if len(self.lost) > LOST_MAX:
            for oldest in list(self.lost.values())[: len(self.lost) - LOST_MAX]:
                self._end(oldest, now)

    def check(self, now: int) -> None:
        """Ends the connections whose client did not reconnect within their time to live."""
        for connection in list(self.lost.values()):
            ttl_ns = connection.ttl_ns if connection.ttl_ns >= 0 else LOST_TTL_NS
            if now - connection.last_seen > ttl_ns:
                self._end(connection, now)

    def end_all(self, now: int) -> None:
        for connection in list(self.lost.values()):
            self._end(connection, now)

    def end(self, now: int, conn: int) -> None:
        """Ends a lost connection for an operator; does nothing if it is not lost."""
        connection = self.lost.get(conn)
        if connection is not None:
            self._end(connection, now)

    def _end(self, connection: CoreConnection, now: int) -> None:
        del self.lost[connection.conn]
        connection.end_sessions(now)


def end_session(session: CoreSession, now: int) -> None:
    """Ends a session as if its connection had been lost without a reattach."""
    connection = session.connection
    session.closed(now, True)
    connection.remove_session(int(session.channel))


def remember(sessions: dict[int, CoreSession], data: bytes) -> None:
    """Keeps the whole frames that are written now, for resumable sessions, until they are confirmed."""
    size: i64 = len(data)
    position: i64 = 0
    begin: i64 = 0  # of a run of counted frames on `channel`
    count: i64 = 0
    channel: i64 = -1
    replay: Replay | None = None
    while position < size:
        own: i64 = read_i64_be(data, position + 5)
        counted = COUNTED[data[position + 4]] != 0
        if own != channel or not counted:
            if replay is not None and count > 0:
                replay.sent(data, begin, position, count)
            if own != channel:
                channel = own
                session = sessions.get(int(own))
                replay = session.replay if session is not None else None
            begin = position
            count = 0
        position += i64(read_i32_be(data, position)) + 4
        if counted:
            count += 1
        else:
            begin = position
    if replay is not None and count > 0:
        replay.sent(data, begin, size, count)


def reattach(connection: CoreConnection, now: int, packet: ReattachSession) -> None:
    """Moves the session to this connection, or answers that the client must create it again."""
    host = connection.host
    resumable = connection.resumable
    found = resumable.sessions.get(packet.name)
    host_name = _host_of(connection.client.remote)
    if not connection.authenticated and resumable.wrong_names.exceeded(now, host_name):
        found = None
    if found is not None:
        found.connection.settle(now)
    if found is None or not _may(connection, found, packet.last_confirmed_command_id):
        host.broker.trace.count("reattachments_refused")
        connection.send(ReattachSessionResponse(-1, False), SESSION_RESPONSE_CHANNEL)
        if not connection.authenticated:
            resumable.wrong_names.add(host_name)
            connection.count_login_failure()
        return
    session = found.session
    old = found.connection
    if old.pending_redirect is not None:
        old.pending_redirect.cancel(now)
    _move(session, old, connection)
    found.connection = connection
    replay = session.replay
    assert replay is not None
    replay.confirmed(packet.last_confirmed_command_id)
    connection.write_out(now)
    if replay.count > 0:
        host.wire.write(connection.conn, replay.unconfirmed())
    connection.logged_in_by_session(now, session.session.identity.user)
    session.session.set_blocked(connection.blocked or connection.full)
    broker = host.broker
    broker.wake(now)
    broker.store.reply_when_durable(
        broker.journal.last, Reattached(connection), session.confirmations.last_command
    )
    broker.trace.event(
        "session_reattached", {"session": session.session.name, "remote": connection.client.remote}
    )
    if not old.sessions:
        if old.conn in resumable.lost:
            del resumable.lost[old.conn]
            old.end_sessions(now)
        else:
            host.closing.append((old.conn, "its sessions were reattached elsewhere"))


def _may(connection: CoreConnection, found: ResumableSession, last: int) -> bool:
    session = found.session
    old = found.connection
    replay = session.replay
    if replay is None or not replay.covers(last) or old is connection:
        return False
    if connection.host.broker.stopping:
        return False
    if old.pending_redirect is not None and old.pending_redirect.sent_at:
        return False  # frames behind the redirect may have been dropped (wire/core/server/redirect.py)
    if connection.acceptor is not old.acceptor or int(session.channel) in connection.sessions:
        return False
    if _host_of(connection.client.remote) != _host_of(old.client.remote):
        return False
    if not connection.authenticated:
        return connection.client.certificate == old.client.certificate
    user = session.session.identity.user
    for other in connection.sessions.values():
        if other.session.identity.user == user:
            return True
    return False


def _host_of(remote: str) -> str:
    return remote.rpartition(":")[0]


def _move(session: CoreSession, old: CoreConnection, new: CoreConnection) -> None:
    shared = new.shared
    kernel = session.session
    channel = int(session.channel)
    for key, value in kernel.metadata.items():
        shared.remove_metadata((old.conn, channel), key, value)
        shared.add_metadata((new.conn, channel), key, value)
    old.sessions.pop(channel, None)
    old.client.hand_over(new.client, kernel)
    session.broker.clients.moved(old.client, new.client)
    if session.large is not None and session.large.holding:
        old.release_input()
    if kernel.waits():
        old.release_input()
    kernel.services.fan_out.let_go(session)
    session.connection = new
    if session.large is not None:
        session.large.moved()
    if kernel.waits():
        new.hold_input()
    new.sessions[channel] = session
    new.replaying = True
    if new.version == 0:
        new.version = session.version
