"""QueueSender connections: one attempt per call, with a time limit; the node retries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from atalanta.cluster.inputs import NodeInputs
from atalanta.runtime.net.tcp import Connections, TcpConnection
from atalanta.runtime.net.tls_connection import SecureConnection
from atalanta.tls.context import ClientTls

# Peers are dialled even when clients use all connections: with descriptors from `files_reserved`.
DIALS_BEYOND = 64

# Attempts to one host: so many at once, then so many each second. Any host can announce the addresses of others.
BURST = 100
RATE = 20
HOSTS_MAX = 1_000  # so many hosts are known before those with a full burst are removed
ANSWERED_MAX = 1_000


class DialRate:
    """The times of attempts to each host, in seconds of a monotonic clock.

    A port that has answered before has times of its own: a member does not wait behind forged ports of its host.
    """

    def __init__(self) -> None:
        self._next: dict[str, float] = {}
        self._answered: dict[str, None] = {}

    def wait_s(self, host: str, port: int, now_s: float) -> float:
        """Takes the next time for an attempt. Returns how long that is from now, 0.0 for at once."""
        place = f"{host}:{port}"
        if place in self._answered:
            host = place
        full = now_s - BURST / RATE
        if len(self._next) >= HOSTS_MAX:
            self._next = {name: at for name, at in self._next.items() if at > full}
        at = max(self._next.get(host, full), full) + 1 / RATE
        self._next[host] = at
        return max(0.0, at - now_s)

    def answered(self, host: str, port: int) -> None:
        """Records that a connection was opened."""
        place = f"{host}:{port}"
        self._answered.pop(place, None)
        self._answered[place] = None
        if len(self._answered) > ANSWERED_MAX:
            del self._answered[next(iter(self._answered))]


class Dialer:
    """Makes at most one attempt per key at a time."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._timeout_s = connections.limits.dial_timeout_s
        self._attempts: dict[str, asyncio.Task[None]] = {}
        self._rate = DialRate()
        self.connectors: dict[str, ClientTls] = {}

    def dial(
        self, key: str, host: str, port: int, connector: str = "", timeout_ms: int = -1
    ) -> None:
        """Connects; the answer is on_dialed or on_dial_failed of that key. A newer call replaces an older one.

        `connector` names one of `connectors`: then the connection uses its TLS settings.
        """
        before = self._attempts.get(key)
        if before is not None:
            before.cancel()
        timeout_s = timeout_ms / 1_000 if timeout_ms > 0 else self._timeout_s
        task = self._connections.loop.create_task(self._attempt(key, host, port, connector, timeout_s))
        self._attempts[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))

    def cancel_all(self) -> None:
        """Cancels every attempt without an answer to the node."""
        for task in list(self._attempts.values()):
            task.cancel()

    def _forget(self, key: str, done: asyncio.Task[None]) -> None:
        if self._attempts.get(key) is done:
            del self._attempts[key]

    async def _attempt(
        self, key: str, host: str, port: int, connector: str, timeout_s: float
    ) -> None:
        driver = self._connections.driver
        opened = False

        def on_open(number: int) -> None:
            nonlocal opened
            opened = True
            self._rate.answered(host, port)
            driver.post(NodeInputs.on_dialed, number, key)

        connections = self._connections
        wait_s = self._rate.wait_s(host, port, connections.loop.time())
        if wait_s:
            await asyncio.sleep(wait_s)
        if connections.descriptors() >= connections.limits.connections_max + DIALS_BEYOND:
            driver.post(NodeInputs.on_dial_failed, key, f"not tried: {host}:{port} is above the limit of connections")
            return
        if connector:
            connecting = self._secure(on_open, host, port, connector, timeout_s)
        else:
            connecting = self._plain(on_open, host, port)
        connections.dialing += 1
        try:
            await asyncio.wait_for(connecting, timeout_s)
        except TimeoutError:
            why = f"no answer from {host}:{port} within {timeout_s:g} s"
        except OSError as error:
            why = f"cannot connect to {host}:{port}: {error.strerror or error}"
        except ValueError as error:  # an impossible host name: too long, or with a null character
            why = f"cannot connect to {host!r}: {error}"
        else:
            return
        finally:
            connections.dialing -= 1
        # The connection opened and was lost at once: on_closed reports this, not on_dial_failed.
        if not opened:
            driver.post(NodeInputs.on_dial_failed, key, why)

    async def _plain(self, on_open: Callable[[int], None], host: str, port: int) -> None:
        loop = self._connections.loop
        await loop.create_connection(lambda: TcpConnection(self._connections, on_open), host, port)

    async def _secure(
        self,
        on_open: Callable[[int], None],
        host: str,
        port: int,
        connector: str,
        timeout_s: float,
    ) -> None:
        """Connects with TLS. OSError also for a failed handshake."""
        loop = self._connections.loop
        tls = self.connectors.get(connector)
        if tls is None:
            raise OSError(f"TLS is requested, but connector {connector} has no TLS settings")
        context, name = tls.context, tls.server_name(host)
        done: asyncio.Future[None] = loop.create_future()

        def opened(number: int) -> None:
            if done.done():
                self._connections.close(number, "the attempt was cancelled")
            else:
                on_open(number)
                done.set_result(None)

        def failed(why: str) -> None:
            if not done.done():
                done.set_exception(OSError(f"TLS: {why}"))

        _, connection = await loop.create_connection(
            lambda: SecureConnection(
                self._connections, opened, failed, context, timeout_s, name
            ),
            host,
            port,
        )
        try:
            await done
        except asyncio.CancelledError:
            connection.abort()
            raise
