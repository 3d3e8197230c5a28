"""The logins of a client connection, for every protocol: passwords, connection routers, limits and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import (
    CLUSTER_SECURITY,
    REMOTE_DISCONNECT,
    ROUTING,
    SECURITY,
    SESSION_CREATION_REJECTED,
    BrokerError,
)
from atalanta.kernel.security.resource_limits import check_name, limit_of
from atalanta.kernel.security.security import DEFAULT_CLUSTER_USER
from atalanta.kernel.sessions.session import Session
from atalanta.wire.connection import ClientConnection
from atalanta.wire.memory_share import FREE_BYTES
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.security.security import Identity
    from atalanta.kernel.sessions.session_endpoint import SessionEndpoint
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.server import WireServer

LOGIN_FAILURES_MAX: Final = 10
LOGINS_WAITING_MAX: Final = 8  # of one connection; clients wait for the answer to each
USER_NAME_SHOWN_MAX: Final = 100  # characters of a refused name in logs and answers
STOPPING: Final = "the node is stopping"
BRIDGE_REMEDY: Final = "if it is a core bridge, give the bridge a <user> and <password> of this broker"
BRIDGE_HINT: Final = "; a core bridge needs a <user> and <password> of this broker"


@mypyc_attr(allow_interpreted_subclasses=True)
class LoginRequest:
    """The credentials of a client that asks for a session; None for what the client did not send.

    A client that repeats the login gives it the same `name`; "" if its protocol has none.
    """

    name: str = ""

    def __init__(self, user: str | None, password: str | None, client_id: str | None) -> None:
        self.user = user
        self.password = password
        self.client_id = client_id


@mypyc_attr(allow_interpreted_subclasses=True)
class LoginConnection(ClientConnection):
    """A client connection with logins. A protocol implements what raises NotImplementedError.

    `holds` counts what holds the input; `held` is input that came meanwhile.

    `logins` are answered in their order, because some protocols give answers no number. The password of the first is
    being checked, or it waits for a connection router.
    """

    def __init__(
        self, host: WireServer, conn: int, remote: str, now: int, acceptor: AcceptorConfig | None
    ) -> None:
        super().__init__(conn, remote, now, acceptor)
        self.host = host
        self.client.local = host.wire.local_address(conn)
        self.holds: int = 0
        self.held: list[bytes] = []
        self.logins: list[LoginRequest] = []
        self.login_failures: int = 0
        self.routed_identity: Identity | None = None  # of the login that waits for a connection router
        self.unfinished: int = 0  # bytes in memory, as wire/memory_share.py counts them
        self.share_user: str | None = None  # who has logged in

    # -- the protocol's part --------------------------------------------------------------------
    def take_up(self, now: int) -> None:
        """Processes what the decoder has, until the input is held."""
        raise NotImplementedError

    def decode_next(self, data: bytes) -> None:
        """Gives bytes to the decoder, which has taken those before."""
        raise NotImplementedError

    def check_login(self, request: LoginRequest) -> None:
        """Raises BrokerError for a request that is refused before its password is checked."""
        check_name(request.client_id or "")
        check_name(request.user or "")
        if self.host.broker.stopping or self.reconnecting:
            raise BrokerError(SESSION_CREATION_REJECTED, STOPPING)

    def may_open(self, now: int, request: LoginRequest) -> bool:
        """Returns False if the session can be opened later only: `routed` follows."""
        return True

    def open_session(self, now: int, request: LoginRequest, identity: Identity) -> None:
        """Opens the session and answers the request. BrokerError: it is refused."""
        raise NotImplementedError

    def refuse_login(self, error: BrokerError) -> None:
        """Answers a request that is refused."""
        raise NotImplementedError

    # -- unfinished messages --------------------------------------------------------------------
    def unfinished_bytes(self) -> int:
        """Returns the bytes of frames and messages that have come in part, or wait for room."""
        raise NotImplementedError

    def count_unfinished(self) -> None:
        """Counts them for the user, or before the login for the host."""
        size = 0 if self.gone else self.unfinished_bytes()
        if self.share_user is not None and size <= FREE_BYTES:
            size = 0
        if size > 0 or self.unfinished > 0:
            self.host.unfinished.change(self, size)

    def count_for(self, user: str) -> None:
        """Counts unfinished messages for the user who has logged in."""
        if self.unfinished > 0:
            self.host.unfinished.change(self, 0)
        self.share_user = user

    def drop_unfinished(self) -> None:
        """Frees what has come in part."""
        raise NotImplementedError

    def forget_unfinished(self) -> None:
        """Frees what has come in part, and ends its count: the connection is closed."""
        self.drop_unfinished()
        self.held.clear()
        if self.unfinished > 0:
            self.host.unfinished.change(self, 0)

    def wait_for_share(self, waits: bool) -> None:
        """Holds the input until the share of its user has room, or lets it go on."""
        self.share_waits = waits
        if waits:
            self.hold_input()
        else:
            self.release_input()

    def waits_otherwise(self) -> bool:
        """Returns True if the input is held by something else."""
        return self.holds > (1 if self.share_waits else 0)

    # -- held input -----------------------------------------------------------------------------
    def hung_up(self, now: int) -> bool:
        """Waits for the login if more has come behind it: a script sends its login and its messages, and is gone."""
        ends = super().hung_up(now)
        if ends and not self.authenticated and self.logins and (self.held or self.unfinished_bytes() > 0):
            return not self.host.may_finish(self)
        return ends

    def hold_input(self) -> None:
        self.holds += 1
        if self.holds == 1:
            self.host.wire.pause(self.conn)

    def release_input(self) -> None:
        self.holds -= 1
        if self.holds == 0:
            self.host.resumed.append(self.conn)

    def resume_later(self) -> None:
        """Asks the node to call `resume`, behind what it processes now."""
        self.host.resumed.append(self.conn)

    def go_on(self, now: int) -> None:
        """Processes requests that were set aside and have room now."""
        return None

    def resume(self, now: int) -> None:
        self.last_seen = now
        self.go_on(now)
        while self.holds == 0 and not self.gone:
            self.take_up(now)
            if self.holds > 0 or not self.held:
                break
            self.decode_next(self.held.pop(0))
        self.count_unfinished()
        if self.holds == 0:
            self.host.wire.resume(self.conn)
        elif self.peer_gone and (self.share_waits or self.waits_for_room()):  # a hang-up is told once
            self.end("closed by the peer")

    # -- logins ---------------------------------------------------------------------------------
    def log_in(self, now: int, request: LoginRequest) -> None:
        """Processes one login after the other. ProtocolError if too many wait."""
        if len(self.logins) >= LOGINS_WAITING_MAX:
            raise ProtocolError(f"more than {LOGINS_WAITING_MAX} logins at once")
        self.logins.append(request)
        if len(self.logins) == 1:
            self._begin_login(now)

    def _begin_login(self, now: int) -> None:
        request = self.logins[0]
        try:
            self.check_login(request)
            self.host.logins.begin(
                now,
                request.user,
                request.password,
                self,
                self.client.certificate,
                self.security_domain(),
            )
        except BrokerError as error:
            self._tell_refused(now, error)
            self._end_login(now, error)

    def login_done(self, now: int, identity: Identity | None) -> None:
        """Processes the result of `host.logins` for the first login. ProtocolError after too many wrong passwords."""
        if self.gone:
            return
        request = self.logins[0]
        try:
            if identity is None:
                raise self._refused(request)
            self.routed_identity = identity
            for routing in self.host.routings:
                if not routing.route(now, self, request.client_id, identity):
                    return  # `routed` follows, or did already
            if not self.may_open(now, request):
                return
            self.open_session(now, request, identity)
        except BrokerError as error:
            if error.code == SECURITY or error.code == CLUSTER_SECURITY:
                self.count_login_failure()
            if identity is not None:
                self._tell_refused(now, error)
            self._end_login(now, error)
        else:
            self._end_login(now, None)

    def login_name(self) -> str:
        return self.logins[0].name

    def routed(self, now: int, error: BrokerError | None) -> None:
        if self.gone or not self.logins:
            return
        # Timers and other connections call this too: what goes wrong must not reach them.
        command = self.host.broker.command
        before = command.enter()
        try:
            command.begin()
            self._continue_routed(now, error)
        except ProtocolError as broken:
            self.host.closing.append((self.conn, str(broken)))
        except Exception as failure:  # a separate name: mypyc gives each name one type
            if command.changing:
                raise
            self.end_unanswered("login", failure)
        command.leave(before)

    def _continue_routed(self, now: int, error: BrokerError | None) -> None:
        identity = self.routed_identity
        if error is None and identity is not None:
            try:
                if not self.may_open(now, self.logins[0]):
                    return
                self.open_session(now, self.logins[0], identity)
            except BrokerError as refusal:  # separate name: mypyc gives each name one type
                self._tell_refused(now, refusal)
                self._end_login(now, refusal)
                return
        self._end_login(now, error)

    def _tell_refused(self, now: int, error: BrokerError) -> None:
        """Reports why the client gets no session. A router reports its own refusals, a node that stops its stop."""
        if error.code != ROUTING and error.code != REMOTE_DISCONNECT and not self.host.broker.stopping:
            self.host.tell_refused(now, self.client.remote, error.text)

    def _end_login(self, now: int, error: BrokerError | None) -> None:
        """Ends the first login, refused with `error` if there is one, and begins the next."""
        del self.logins[0]
        if error is not None:
            self.refuse_login(error)
        if self.logins:
            self._begin_login(now)

    def new_session(self, endpoint: SessionEndpoint, identity: Identity) -> Session:
        """Returns the session of the client in the kernel, which commits everything at once."""
        broker = self.host.broker
        session = Session(
            broker.session_services, self.client, broker.ids.uuid().hex(), endpoint, identity, True, True, False
        )
        self.client.sessions[session.name] = session
        self.count_for(identity.user)
        return session

    # -- what cannot be encoded -----------------------------------------------------------------
    def end(self, why: str) -> None:
        """Closes the connection after this batch of inputs."""
        self.host.closing.append((self.conn, why))

    def end_unanswered(self, command: str, error: Exception) -> None:
        """Ends the connection: `command`, an answer to a command of its own, cannot be encoded."""
        broker = self.host.broker
        self.end(broker.failures.report(broker.now, self.client.protocol, command, self.client.remote, error))

    def leave_out(self, command: str, error: Exception) -> None:
        """Reports that `command`, caused by somebody else, cannot be encoded for this client: it is not sent."""
        broker = self.host.broker
        broker.failures.left_out(broker.now, self.client.protocol, command, error)

    def set_aside(self, kernel: Session, consumer: QueueConsumer, message_id: int, why: str) -> None:
        """Reports a message that cannot be encoded for this client; it goes to the dead-letter address, but not for a
        browser."""
        broker = self.host.broker
        broker.trace.event(
            "message_not_convertible", {"queue": consumer.queue.name, "message": message_id, "why": why}
        )
        if not consumer.browse_only:
            self.host.set_aside(kernel, consumer.id, message_id)

    # -- limits and refusals --------------------------------------------------------------------
    def is_in_time(self, now: int, ttl_ns: int, before_login: bool) -> bool:
        """Returns False, and reports why, if the connection is overdue."""
        why = self.overdue(now, ttl_ns, before_login)
        if why:
            self.host.timed_out(self, why)
        return not why

    def check_admission(self, identity: Identity) -> None:
        """Raises BrokerError if the user gets no session: the node stops, or its resource limit is reached."""
        if self.host.broker.stopping:
            raise BrokerError(SESSION_CREATION_REJECTED, STOPPING)
        self.check_session_limit(identity)

    def check_session_limit(self, identity: Identity) -> None:
        """Raises BrokerError if the user has as many sessions as its resource limit allows."""
        broker = self.host.broker
        limit = limit_of(broker.config.resource_limits, identity.user)
        if limit is not None:
            sessions = broker.clients.sessions()
            users = [session.identity.user for session in sessions if not session.client.bridge]
            limit.check_sessions(users.count(identity.user))

    def count_login_failure(self) -> None:
        """Counts a refused login. ProtocolError after too many."""
        self.login_failures += 1
        if self.login_failures > LOGIN_FAILURES_MAX:
            raise ProtocolError(f"more than {LOGIN_FAILURES_MAX} refused logins")

    def _refused(self, request: LoginRequest) -> BrokerError:
        """Reports wrong credentials, and returns the error for the client."""
        broker = self.host.broker
        remote = self.client.remote
        broker.clients.logins_refused += 1
        user = (request.user or "(none)")[:USER_NAME_SHOWN_MAX]
        hint = ""
        if request.user == DEFAULT_CLUSTER_USER:  # a core bridge without a user comes in with it
            hint = BRIDGE_HINT
            broker.trace.event("login_refused", {"user": user, "remote": remote, "what_to_do": BRIDGE_REMEDY})
        else:
            broker.trace.event("login_refused", {"user": user, "remote": remote})
        for observer in broker.observers:
            observer.on_login_refused(broker.now, user, remote)
        security = broker.security
        # A real Artemis stops all its bridges and cluster connections at this code: only for a wrong cluster password.
        if request.user == security.cluster_user and security.cluster_password is not None:
            return BrokerError(CLUSTER_SECURITY, f"AMQ229099: Unable to authenticate cluster user: {user}{hint}")
        return BrokerError(
            SECURITY, f"AMQ229031: Unable to validate user from {remote}. Username: {user}{hint}"
        )
