"""Outgoing connections: one attempt a call, in limited time; the node tries again."""

from __future__ import annotations

import asyncio

from atalanta.runtime.tcp import Connection, Connections


class Dialer:
    """At most one attempt a key is under way."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._timeout_s = connections.limits.dial_timeout_s
        self._attempts: dict[str, asyncio.Task[None]] = {}

    def dial(self, key: str, host: str, port: int) -> None:
        """Answered by on_dialed or on_dial_failed of that key; a newer call replaces an older."""
        before = self._attempts.get(key)
        if before is not None:
            before.cancel()
        task = self._connections.loop.create_task(self._attempt(key, host, port))
        self._attempts[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))

    def cancel_all(self) -> None:
        """Gives up every attempt without a word to the node."""
        for task in list(self._attempts.values()):
            task.cancel()

    def _forget(self, key: str, done: asyncio.Task[None]) -> None:
        if self._attempts.get(key) is done:
            del self._attempts[key]

    async def _attempt(self, key: str, host: str, port: int) -> None:
        driver = self._connections.driver
        opened = False

        def on_open(number: int) -> None:
            nonlocal opened
            opened = True
            driver.dialed(number, key)

        loop = self._connections.loop
        connect = loop.create_connection(lambda: Connection(self._connections, on_open), host, port)
        try:
            await asyncio.wait_for(connect, self._timeout_s)
        except TimeoutError:
            why = f"no answer from {host}:{port} within {self._timeout_s:g} s"
        except OSError as error:
            why = f"cannot connect to {host}:{port}: {error.strerror or error}"
        else:
            return
        # Opened, and lost in the same moment: on_closed tells, not on_dial_failed.
        if not opened:
            driver.dial_failed(key, why)
