"""The logins of one connection: passwords, connection routers, and the limit of wrong ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import CLUSTER_SECURITY, INCOMPATIBLE, SECURITY, BrokerError
from atalanta.kernel.security.security import Identity
from atalanta.wire.connection import ProtocolError
from atalanta.wire.core.packets.cluster import ClusterConnect, ClusterConnectReply
from atalanta.wire.core.packets.session import CreateSession, CreateSessionV2
from atalanta.wire.core.server.session_creation import open_session, refused

if TYPE_CHECKING:
    from atalanta.wire.core.server.connection import CoreConnection

OLDEST_VERSION: Final = 129
LOGIN_FAILURES_MAX: Final = 10
LOGINS_WAITING_MAX: Final = 8  # of one connection; clients wait for the answer to each
CLUSTER_CHANNEL: Final = 3


class Login:
    """The state of a connection's logins. `waiting` are answered in their order.

    There is no reference to the connection: a cycle would keep a closed connection in memory until a garbage
    collection.
    """

    def __init__(self) -> None:
        self.waiting: list[CreateSession] = []  # the password of the first is being checked
        self.failures: int = 0
        self.routed_as: Identity | None = None  # the login waits for a connection router
        self.repeated: bool = False  # a login was refused for its missing client id


def log_in(connection: CoreConnection, now: int, packet: CreateSession) -> None:
    """Processes one login after the other. Answers have no number, so they are sent in the order of the requests."""
    waiting = connection.login.waiting
    if len(waiting) >= LOGINS_WAITING_MAX:
        raise ProtocolError(f"more than {LOGINS_WAITING_MAX} logins at once")
    waiting.append(packet)
    if len(waiting) == 1:
        _begin(connection, now)


def _begin(connection: CoreConnection, now: int) -> None:
    packet = connection.login.waiting[0]
    try:
        if packet.version < OLDEST_VERSION:
            raise BrokerError(
                INCOMPATIBLE,
                f"client version {packet.version} is older than {OLDEST_VERSION}, the oldest served",
            )
        certificate = connection.client.certificate
        connection.host.logins.begin(
            now,
            packet.user,
            packet.password,
            connection,
            certificate,
            connection.security_domain(),
        )
    except BrokerError as error:
        _next(connection, now, error)


def answered(connection: CoreConnection, now: int, identity: Identity | None) -> None:
    """Processes the answer for the first waiting login. ProtocolError after too many wrong ones."""
    packet = connection.login.waiting[0]
    try:
        if identity is None:
            raise refused(connection, packet)
        routing = connection.host.routing
        if routing is not None:
            connection.login.routed_as = identity
            client_id = packet.client_id if isinstance(packet, CreateSessionV2) else None
            if not routing.route(now, connection, client_id, identity):
                return  # `routed` follows, or did already
        open_session(connection, now, packet, identity)
    except BrokerError as error:
        if error.code == SECURITY or error.code == CLUSTER_SECURITY:
            count_failure(connection)
        _next(connection, now, error)
    else:
        _next(connection, now, None)


def routed(connection: CoreConnection, now: int, error: BrokerError | None) -> None:
    """Processes the decision of a connection router: the first waiting login may go on (None), or is refused."""
    if connection.gone or not connection.login.waiting:
        return
    try:
        _answer_routed(connection, now, error)
    except ProtocolError as broken:
        # Timers and other connections call this too: the error must not reach them.
        connection.host.closing.append((connection.conn, str(broken)))


def _answer_routed(connection: CoreConnection, now: int, error: BrokerError | None) -> None:
    login = connection.login
    identity = login.routed_as
    if error is None and identity is not None:
        try:
            open_session(connection, now, login.waiting[0], identity)
        except BrokerError as refusal:  # separate name: mypyc gives each name one type
            _next(connection, now, refusal)
            return
    _next(connection, now, error)


def _next(connection: CoreConnection, now: int, error: BrokerError | None) -> None:
    waiting = connection.login.waiting
    del waiting[0]
    if error is not None:
        connection.send_exception(1, error, -1, connection.version)
    if waiting:
        _begin(connection, now)


def log_in_peer(connection: CoreConnection, now: int, packet: ClusterConnect) -> None:
    """Processes CLUSTER_CONNECT: another node sends the cluster's credentials."""
    if connection.untold:
        connection.host.closing.append((connection.conn, "the node leaves"))
        return
    broker = connection.host.broker
    known = broker.security.authenticate_cluster(packet.user, packet.password)
    connection.cluster_peer = known
    connection.send(ClusterConnectReply(known), CLUSTER_CHANNEL)
    if not known:
        count_failure(connection)
        broker.trace.event("cluster_login_refused", {"remote": connection.client.remote})
    elif not connection.authenticated:
        connection.login_succeeded()
        connection.logged_in(now)


def count_failure(connection: CoreConnection) -> None:
    """Counts a refused login. ProtocolError after too many."""
    login = connection.login
    login.failures += 1
    if login.failures > LOGIN_FAILURES_MAX:
        raise ProtocolError(f"more than {LOGIN_FAILURES_MAX} refused logins")


def not_reattached(connection: CoreConnection) -> None:
    """Counts a refused reattach as a refused login, so that names of sessions cannot be guessed."""
    if not connection.authenticated:
        count_failure(connection)
