"""The interface between the client's classes and a shell: a transport that reconnects, and waits for replies.

The classes of this package are written once, as coroutines over a ClientShell. The asyncio shell suspends them. The
blocking shell never does: its `wait` returns when the reply is complete, so that a coroutine ends in one step
(`drive`).
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Final, TypeVar

from atalanta.client.options import ClientOptions, Server
from atalanta.client.shells.awaitables import Acknowledgement
from atalanta.client.shells.priority_watch import PriorityWatch
from atalanta.client.shells.reconnect import MILLISECOND_NS, ReconnectPolicy
from atalanta.client.shells.tls import with_tls_hint
from atalanta.wire.core.client.connection import BrokerConnection
from atalanta.wire.core.client.errors import CallTimedOut, ClientError, ConnectFailed
from atalanta.wire.core.client.events import ClientEvents
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.settings import ConnectionSettings
from atalanta.wire.core.client.topology import Member
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.http_upgrade import NONCE_BYTES, UpgradeRequest

LOG: Final = logging.getLogger("atalanta.client")
LOG.addHandler(logging.NullHandler())  # a program that configures no logging gets no output
FAILOVER_CHECK_S: Final = 0.1
RETURN_S: Final = 5.0  # a connection in constant use leaves for a server of priorityURIs after that
Result = TypeVar("Result")


class ClientShell(ClientEvents, ABC):
    """A logical connection. `lost_count` counts lost transports, `server` is the current one.

    `suspends`: coroutines may wait for other events than replies.
    """

    suspends: ClassVar[bool]

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self.policy = ReconnectPolicy(options)
        settings = connection_settings(options)
        if options.http_upgrade:
            settings.upgrade = self.upgrade
        self.engine = BrokerConnection(self.write, settings, self)
        self.closed = False
        self.lost_count = 0
        # Time of the loss while there is no connection. Before the first login it counts only for Classic's timeout.
        self.lost_at_s: float | None = time.monotonic() if options.limits_first_login else None
        self.listeners: dict[str, list[Callable[[], None]]] = {}
        self.dialled: Server | None = None
        self.settles: bool | None = None  # the broker understands SESS_SETTLE; None: not asked yet
        # Held by code outside of a coroutine that uses the engine.
        self.engine_lock: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        self._redirect: Server | None = None
        self._priority: PriorityWatch | None = None
        self._return_by_s = 0.0

    @property
    def server(self) -> Server | None:
        """Returns the server of the current (or last) connection."""
        return self.dialled

    def upgrade(self) -> UpgradeRequest:
        """Returns the HTTP request that begins a connection to `dialled` if CORE is behind HTTP."""
        host = self.dialled.host if self.dialled is not None else self.options.servers[0].host
        nonce = secrets.token_bytes(NONCE_BYTES)
        options = self.options
        return UpgradeRequest(host, nonce, options.http_upgrade_endpoint, options.server_name)

    # -- for the classes above ------------------------------------------------------------------
    @abstractmethod
    async def wait(self, reply: Reply, timeout_s: float | None = None) -> bool:
        """Waits until the reply is complete. Returns False after the timeout."""

    @abstractmethod
    def waiting(self, ask: Callable[[], Reply]) -> Acknowledgement:
        """Returns an awaitable for an operation that completes even without await."""

    @abstractmethod
    def outcome(self, reply: Reply) -> Acknowledgement:
        """Returns an awaitable for a request that was sent. The blocking shell waits at once and raises its error."""

    @abstractmethod
    def after_call(self) -> None:
        """Schedules a flush after an operation of the program that did not wait."""

    @abstractmethod
    async def beside(self, function: Callable[[], Result]) -> Result:
        """Calls a function that may block for long (a read of a pipe), while the connection is kept alive."""

    @abstractmethod
    def caller(self) -> object:
        """Returns the identity of the caller. Two different callers may wait for each other."""

    @abstractmethod
    async def drained(self) -> None:
        """Waits until the operating system has taken all written data, or the transport has ended."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Writes bytes of the engine; the writes of one event-loop iteration are sent together."""

    @abstractmethod
    async def shut(self) -> None:
        """Closes the transport for good."""

    async def answer(self, reply: Reply) -> object:
        """Waits, then returns the value or raises the error.

        CallTimedOut: the connection was lost for longer than callFailoverTimeout during the call.
        """
        limit_ms = self.options.call_failover_timeout_ms
        if limit_ms < 0:
            if not reply.done:
                await self.wait(reply)
            return reply.result()
        began_s = time.monotonic()
        while not reply.done and not self.closed:
            await self.wait(reply, min(FAILOVER_CHECK_S, limit_ms / 1_000))
            lost_at_s = self.lost_at_s
            if lost_at_s is not None and time.monotonic() - max(began_s, lost_at_s) >= limit_ms / 1_000:
                reply.fail(CallTimedOut(f"no connection within {limit_ms} ms: {self.policy.last_error}", 3))
        return reply.result()

    # -- for the shells -------------------------------------------------------------------------
    def tell(self, what: str) -> None:
        """Calls the listeners of "topology", "lost", "reconnected" or "failed"."""
        for listener in list(self.listeners.get(what, ())):
            listener()

    def attempt_failed(self, now: int, why: str) -> None:
        """Records that the dialled server could not be reached."""
        failed_before = self.policy.passes_failed
        self.policy.failed(now, with_tls_hint(self.options, why))
        self._pass_failed(failed_before)

    def none_found(self, now: int, why: str) -> None:
        """Records that no server was discovered."""
        failed_before = self.policy.passes_failed
        self.policy.found_none(now, why)
        self._pass_failed(failed_before)

    def _pass_failed(self, failed_before: int) -> None:
        """Logs a failed attempt; every so many passes it is a warning (warnAfterReconnectAttempts)."""
        count, every = self.policy.passes_failed, self.options.warn_attempts
        if count > failed_before and every and count % every == 0:
            LOG.warning("no connection after %d attempts: %s", count, self.policy.last_error)
        else:
            LOG.debug("no connection: %s", self.policy.last_error)

    def connected(self, now: int, server: Server) -> None:
        """Records an answered login. After a loss the sessions are restored, and the listeners are called."""
        self.policy.connected(now, server)
        self.lost_at_s = None
        if self.options.priority and server not in self.options.priority:
            self._priority = PriorityWatch(self.options, self)
        if self.lost_count:
            LOG.info("connected to %s again", server)
            self.tell("reconnected")

    def return_to_priority(self) -> None:
        """Leaves for a server of priorityURIs that is there again; called about twice a second while connected.

        An open transaction is not interrupted. Unanswered requests and messages are waited for, but not for long.
        """
        watch = self._priority
        if watch is None or watch.found is None:
            return
        if any(each.in_transaction for each in self.engine.sessions.values()):
            self._return_by_s = 0.0  # its commit is waited for as long as any request
            return
        now_s = time.monotonic()
        self._return_by_s = self._return_by_s or now_s + RETURN_S
        if now_s < self._return_by_s and any(each.waits for each in self.engine.sessions.values()):
            return
        self._redirect = watch.found
        self.stop_priority_watch()
        self.broken(f"{self._redirect}, a server of priorityURIs, is there again")

    def stop_priority_watch(self) -> None:
        """Ends the watch for servers of priorityURIs."""
        watch, self._priority = self._priority, None
        self._return_by_s = 0.0
        if watch is not None:
            watch.stop()

    def session_error(self, channel: int, error: ClientError) -> None:
        """Logs an error for which no call waits: an acknowledgement that nobody awaits was refused."""
        LOG.warning("%s refused something that no call waits for: %s", self.dialled, error.text)

    def topology_changed(self) -> None:
        self.tell("topology")

    def failed(self) -> None:
        self.tell("failed")

    def disconnected(
        self, reason: int, target_node_id: str | None, target: TransportConfiguration | None
    ) -> None:
        """Records a disconnect by a stopping broker. Its redirect target is tried first, unless `stay`."""
        if target is not None:
            self._redirect = Server(target.host, target.port)
        elif target_node_id is not None:
            member = self.engine.topology.get(target_node_id)
            if member is not None and member.host is not None and member.port is not None:
                self._redirect = Server(member.host, member.port)

    def transport_lost(self, now: int, why: str) -> None:
        """Ends the engine's transport and plans the next one."""
        self.stop_priority_watch()
        self.lost_count += 1
        self.lost_at_s = time.monotonic()
        LOG.warning("the connection to %s was lost: %s", self.dialled, why)
        self.engine.lost(now, why)
        target, self._redirect = self._redirect, None
        self.policy.lost(now, why, self.members(), target, self.other_half())
        self.tell("lost")

    def login_lost(self, now: int, why: str) -> None:
        """Records a transport that ended before the login answer. A connection router may have redirected us."""
        why = with_tls_hint(self.options, why)
        self.engine.lost(now, why)
        target, self._redirect = self._redirect, None
        if target is None or not self.policy.redirected(target):
            self.attempt_failed(now, why)

    def members(self) -> list[Server]:
        """Returns the cluster's nodes with a known address, sorted by node id."""
        found: list[Server] = []
        for _, member in sorted(dict(self.engine.topology).items()):  # another thread may add one
            if member.host is not None and member.port is not None:
                found.append(Server(member.host, member.port))
        return found

    def other_half(self) -> Server | None:
        """Returns the other half of the pair whose half the server of this connection is; None if it has no backup."""
        server = self.dialled
        for member in self.engine.topology.values():
            if server in (Server(member.host or "", member.port or 0), backup_of(member)):
                break
        else:
            # The node may announce another address than the one of the URL.
            found = self.engine.topology.get(self.engine.node_id or "")
            if found is None:
                return None
            member = found
        backup = backup_of(member)
        if backup is None or backup != server:
            return backup
        return None if member.host is None or member.port is None else Server(member.host, member.port)

    def give_up(self) -> None:
        """Fails every call, since no attempt is left."""
        finder = self.options.finder
        servers = ", ".join(str(server) for server in self.options.servers)
        if finder is not None and not servers:
            servers = finder.place
        error = ConnectFailed(f"no connection to {servers}: {self.policy.last_error}", 4)
        if self.lost_count:
            LOG.error("%s", error.text)
        self.engine.fail(error)


def backup_of(member: Member) -> Server | None:
    """Returns the address of a member's backup; None if it has none."""
    if member.backup_host is None or member.backup_port is None:
        return None
    return Server(member.backup_host, member.backup_port)


def connection_settings(options: ClientOptions) -> ConnectionSettings:
    """Returns the options that the engine needs."""
    period_ms = options.client_failure_check_period_ms
    ttl_ms = options.connection_ttl_ms
    return ConnectionSettings(
        ttl_ns=ttl_ms * MILLISECOND_NS if ttl_ms >= 0 else -1,
        ping_period_ns=period_ms * MILLISECOND_NS if period_ms >= 0 else -1,
        call_timeout_ns=options.call_timeout_ms * MILLISECOND_NS,
        resume=options.reconnects,
        may_move=options.reconnects and not options.stay,
    )


def drive(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine over a shell that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        value: Result = stop.value
        return value
    coroutine.close()
    raise RuntimeError("a coroutine of a blocking connection was suspended")
