"""The creation of a session on a connection, and the time to live of a silent connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import (
    CLUSTER_SECURITY,
    ILLEGAL_STATE,
    SECURITY,
    SESSION_CREATION_REJECTED,
    BrokerError,
)
from atalanta.kernel.security.resource_limits import limit_of
from atalanta.kernel.sessions.session import Session
from atalanta.wire.core.packet_types import FIRST_SESSION_CHANNEL
from atalanta.wire.core.packets.session import CreateSession, CreateSessionResponse, CreateSessionV2
from atalanta.wire.core.server.resend_buffer import Replay
from atalanta.wire.core.server.session import CoreSession

if TYPE_CHECKING:
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.core.server.connection import CoreConnection

SERVER_VERSION: Final = 136
USER_NAME_SHOWN_MAX: Final = 100  # characters of a refused name in logs and answers
SESSIONS_MAX: Final = 10_000  # of one connection


def refused(connection: CoreConnection, packet: CreateSession) -> BrokerError:
    broker = connection.host.broker
    broker.clients.logins_refused += 1
    user = (packet.user or "(none)")[:USER_NAME_SHOWN_MAX]
    broker.trace.event("login_refused", {"user": user, "remote": connection.client.remote})
    for observer in broker.observers:
        observer.on_login_refused(broker.now, user, connection.client.remote)
    code = CLUSTER_SECURITY if packet.user == broker.security.cluster_user else SECURITY
    return BrokerError(code, f"unable to validate user {user}")


def open_session(
    connection: CoreConnection, now: int, packet: CreateSession, identity: Identity
) -> None:
    broker = connection.host.broker
    connection.version = min(packet.version, SERVER_VERSION)
    channel = packet.session_channel
    if broker.stopping or channel < FIRST_SESSION_CHANNEL or channel in connection.sessions:
        why = "the node is stopping" if broker.stopping else f"channel {channel} cannot be used"
        # If the creation is rejected, a client that comes from another node repeats it here
        # (ActiveMQSessionContext.recreateSession); after any other error it tries another node.
        comes = broker.stopping and connection.came_from is not None
        raise BrokerError(ILLEGAL_STATE if comes else SESSION_CREATION_REJECTED, why)
    if len(connection.sessions) >= SESSIONS_MAX:
        raise BrokerError(
            SESSION_CREATION_REJECTED, f"more than {SESSIONS_MAX} sessions on one connection"
        )
    limit = limit_of(broker.config.resource_limits, identity.user)
    if limit is not None:
        users = [session.identity.user for session in broker.clients.sessions()]
        limit.check_sessions(users.count(identity.user))
    first = not connection.authenticated
    broker.clients.logins_total += 1
    connection.login_succeeded()
    session = CoreSession(connection, channel, connection.version, packet.confirmation_window)
    kernel = Session(
        broker, connection.client, packet.name, session, identity,
        packet.xa or packet.auto_commit_sends, packet.xa or packet.auto_commit_acks,
        packet.pre_acknowledge,
    )  # fmt: skip
    kernel.xa = packet.xa
    session.kernel = kernel
    redirected = connection.pending_redirect is not None
    kernel.set_blocked(connection.blocked or connection.full or redirected)
    if isinstance(packet, CreateSessionV2) and connection.client.client_id is None:
        connection.client.client_id = packet.client_id
    connection.client.sessions[packet.name] = kernel
    if connection.replaying:
        # Unwritten frames of an earlier session of this channel must not count for this one.
        connection.write_out(now)
    connection.sessions[channel] = session
    if packet.confirmation_window > 0 and not identity.cluster:
        session.replay = Replay(packet.confirmation_window)
        connection.replaying = True
        connection.protocol.resumable.add(now, session)
    connection.send(CreateSessionResponse(SERVER_VERSION), 1)
    if first:
        connection.logged_in(now)


def time_to_live_ms(connection: CoreConnection, wanted_ms: int) -> int:
    """Returns the client's value, unless broker or acceptor replace or limit it; -1 is no limit."""
    override_ms = connection.host.broker.config.connection_ttl_override_ms
    acceptor = connection.acceptor
    if override_ms >= 0:
        return override_ms
    if acceptor is None:
        return wanted_ms
    if acceptor.connection_ttl_ms >= 0:
        return acceptor.connection_ttl_ms
    longest_ms = acceptor.connection_ttl_max_ms
    if longest_ms is not None and not 0 <= wanted_ms <= longest_ms:
        return longest_ms
    return wanted_ms if wanted_ms < 0 else max(wanted_ms, acceptor.connection_ttl_min_ms)
