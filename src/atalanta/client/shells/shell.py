"""What the client's classes need from a shell: a transport that comes back, and a way to wait.

The classes of this package are written once, as coroutines over a Shell. The asyncio shell
suspends them; the blocking shell never does: its `wait` returns when the reply is there, so a
coroutine runs through in one step (`drive`).
"""

from __future__ import annotations

import contextlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeVar

from atalanta.client.options import ClientOptions, Server
from atalanta.client.shells.awaitables import Acknowledgement
from atalanta.client.shells.reconnect import MILLISECOND_NS, ReconnectPolicy
from atalanta.wire.core.client.connection import ClientConnection
from atalanta.wire.core.client.errors import ConnectFailed
from atalanta.wire.core.client.events import ClientEvents
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.settings import ConnectionSettings
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.http_upgrade import NONCE_BYTES, UpgradeRequest

Result = TypeVar("Result")


class Shell(ClientEvents, ABC):
    """One logical connection. `lost_count` counts lost transports, `server` is the current one.

    `suspends`: coroutines may wait for other things than replies.
    """

    suspends: ClassVar[bool]

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self.policy = ReconnectPolicy(options)
        settings = connection_settings(options)
        if options.http_upgrade:
            settings.upgrade = self.upgrade
        self.engine = ClientConnection(self.write, settings, self)
        self.closed = False
        self.lost_count = 0
        self.listeners: dict[str, list[Callable[[], None]]] = {}
        self.dialled: Server | None = None
        # Held around what touches the engine outside of a coroutine.
        self.guard: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        self._redirect: Server | None = None

    @property
    def server(self) -> Server | None:
        """Where the current (or last) connection leads."""
        return self.dialled

    def upgrade(self) -> UpgradeRequest:
        """How a connection to `dialled` begins where CORE is behind HTTP."""
        host = self.dialled.host if self.dialled is not None else self.options.servers[0].host
        nonce = secrets.token_bytes(NONCE_BYTES)
        options = self.options
        return UpgradeRequest(host, nonce, options.http_upgrade_endpoint, options.server_name)

    # -- for the classes above ------------------------------------------------------------------
    @abstractmethod
    async def wait(self, reply: Reply, timeout_s: float | None = None) -> bool:
        """Until the reply is done; False if the time was over first."""

    @abstractmethod
    def waiting(self, ask: Callable[[], Reply]) -> Acknowledgement:
        """For what may be awaited, but need not."""

    @abstractmethod
    def after_call(self) -> None:
        """The program did something without waiting: see to it that it goes out soon."""

    @abstractmethod
    async def beside(self, function: Callable[[], Result]) -> Result:
        """Call what may block for long (a read of a pipe), while the connection is kept alive."""

    @abstractmethod
    def caller(self) -> object:
        """Who calls: two that differ may wait for each other."""

    @abstractmethod
    async def drained(self) -> None:
        """Until what was written is on its way, but for what the operating system keeps; or the transport is gone."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Bytes of the engine; several in one turn go out together."""

    @abstractmethod
    async def shut(self) -> None:
        """Close the transport for good."""

    async def answer(self, reply: Reply) -> object:
        """Waits, then gives the value or raises the error."""
        if not reply.done:
            await self.wait(reply)
        return reply.result()

    # -- for the shells -------------------------------------------------------------------------
    def tell(self, what: str) -> None:
        """Calls the listeners of "topology", "lost" or "reconnected"."""
        for listener in list(self.listeners.get(what, ())):
            listener()

    def topology_changed(self) -> None:
        self.tell("topology")

    def disconnected(
        self, reason: int, target_node_id: str | None, target: TransportConfiguration | None
    ) -> None:
        """A leaving broker may send us somewhere: there first, unless `stay`."""
        if target is not None:
            self._redirect = Server(target.host, target.port)
        elif target_node_id is not None:
            member = self.engine.topology.get(target_node_id)
            if member is not None and member.host is not None and member.port is not None:
                self._redirect = Server(member.host, member.port)

    def transport_lost(self, now: int, why: str) -> None:
        """Ends the engine's transport and plans the next one."""
        self.lost_count += 1
        self.engine.lost(now, why)
        target, self._redirect = self._redirect, None
        self.policy.lost(now, why, self.members(), target)
        self.tell("lost")

    def login_lost(self, now: int, why: str) -> None:
        """The transport ended before the login was answered; a connection router may have sent us elsewhere."""
        self.engine.lost(now, why)
        target, self._redirect = self._redirect, None
        if target is None or not self.policy.redirected(target):
            self.policy.failed(now, why)

    def members(self) -> list[Server]:
        """The cluster's nodes that can be dialled, sorted by node id."""
        found: list[Server] = []
        for _, member in sorted(self.engine.topology.items()):
            if member.host is not None and member.port is not None:
                found.append(Server(member.host, member.port))
        return found

    def give_up(self) -> None:
        """No attempt is left."""
        finder = self.options.finder
        servers = ", ".join(str(server) for server in self.options.servers)
        if finder is not None and not servers:
            servers = finder.place
        last = self.policy.last_error
        self.engine.fail(ConnectFailed(f"no connection to {servers}: {last}", 4))


def connection_settings(options: ClientOptions) -> ConnectionSettings:
    """What the engine must know of the options."""
    period_ms = options.client_failure_check_period_ms
    ttl_ms = options.connection_ttl_ms
    return ConnectionSettings(
        ttl_ns=ttl_ms * MILLISECOND_NS if ttl_ms >= 0 else -1,
        ping_period_ns=period_ms * MILLISECOND_NS if period_ms >= 0 else -1,
        call_timeout_ns=options.call_timeout_ms * MILLISECOND_NS,
        resume=options.reconnect_attempts != 0,
        may_move=options.reconnect_attempts != 0
        and not options.stay
        and (len(options.servers) > 1 or options.use_topology_for_load_balancing),
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
