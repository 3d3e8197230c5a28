"""Outgoing connections: one attempt a call, in limited time; the node tries again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from atalanta.runtime.net.tcp import Connection, Connections
from atalanta.runtime.net.tls_connection import SecureConnection
from atalanta.tls.context import ClientTls

# When clients have taken all connections there are, peers are still dialled: with some of `files_reserved`.
DIALS_BEYOND = 64


class Dialer:
    """At most one attempt a key is under way."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._timeout_s = connections.limits.dial_timeout_s
        self._attempts: dict[str, asyncio.Task[None]] = {}
        self.connectors: dict[str, ClientTls] = {}

    def dial(
        self, key: str, host: str, port: int, connector: str = "", timeout_ms: int = -1
    ) -> None:
        """Answered by on_dialed or on_dial_failed of that key; a newer call replaces an older.

        `connector` names one of `connectors`: the connection is made over TLS, as it says.
        """
        before = self._attempts.get(key)
        if before is not None:
            before.cancel()
        timeout_s = timeout_ms / 1_000 if timeout_ms > 0 else self._timeout_s
        task = self._connections.loop.create_task(self._attempt(key, host, port, connector, timeout_s))
        self._attempts[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))

    def cancel_all(self) -> None:
        """Gives up every attempt without a word to the node."""
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
            driver.dialed(number, key)

        connections = self._connections
        if connections.wanted() >= connections.limits.connections_max + DIALS_BEYOND:
            driver.dial_failed(key, f"not tried: {host}:{port} is one connection too many")
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
        except ValueError as error:  # a host that cannot be one: too long, or with a null character
            why = f"cannot connect to {host!r}: {error}"
        else:
            return
        finally:
            connections.dialing -= 1
        # Opened, and lost in the same moment: on_closed tells, not on_dial_failed.
        if not opened:
            driver.dial_failed(key, why)

    async def _plain(self, on_open: Callable[[int], None], host: str, port: int) -> None:
        loop = self._connections.loop
        await loop.create_connection(lambda: Connection(self._connections, on_open), host, port)

    async def _secure(
        self,
        on_open: Callable[[int], None],
        host: str,
        port: int,
        connector: str,
        timeout_s: float,
    ) -> None:
        """OSError also for a handshake that failed."""
        loop = self._connections.loop
        tls = self.connectors.get(connector)
        if tls is None:
            raise OSError(f"TLS is asked for, but connector {connector} has none")
        context, name = tls.context, tls.server_name(host)
        done: asyncio.Future[None] = loop.create_future()

        def opened(number: int) -> None:
            if done.done():
                self._connections.close(number, "not waited for any more")
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
