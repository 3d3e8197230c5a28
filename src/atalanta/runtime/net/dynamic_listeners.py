"""Ports that the node opens at run time for its peers: the first free port of a range."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from atalanta.runtime.net.acceptor import Acceptor, Listen
from atalanta.runtime.net.tcp import Connections
from atalanta.runtime.trace import LogTrace

ANY = ("0.0.0.0", "[::]", "::")
CONNECTIONS_MAX = 200  # connections per listener; peers stay only briefly


class DynamicListeners:
    """Listeners by key. A port that cannot be opened is logged and tried again."""

    def __init__(self, connections: Connections, trace: LogTrace) -> None:
        self._connections = connections
        self._trace = trace
        self._open: dict[str, Acceptor] = {}
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._retries: dict[str, asyncio.TimerHandle] = {}

    def listen(self, key: str, host: str, port: int, port_range: int) -> None:
        """Implements Links.listen."""
        self.unlisten(key)
        why = ""
        for number in range(port, min(port + port_range, 65_535) + 1):
            listen = Listen(key, host, number, connections_max=CONNECTIONS_MAX)
            acceptor = Acceptor(listen, self._connections, self._trace)
            try:
                acceptor.bind()
                acceptor.listen_early()  # two may bind a port at once, and one of them listens
            except OSError as error:
                acceptor.close()
                why = why or error.strerror or str(error)
                continue
            self._open[key] = acceptor
            task = self._connections.loop.create_task(acceptor.accept())
            self._starting[key] = task
            self._trace.event("discovery_port_opened", {"name": key, "at": " ".join(acceptor.addresses)})
            return
        self._trace.event("discovery_port_failed", {"name": key, "why": why})
        retry = self._connections.limits.join_retry_s
        again = (key, host, port, port_range)
        self._retries[key] = self._connections.loop.call_later(retry, self.listen, *again)

    def addresses(self, key: str) -> list[str]:
        """Returns host:port of the open listeners."""
        acceptor = self._open.get(key)
        return [] if acceptor is None else acceptor.addresses

    def listening(self, key: str, towards: str) -> str:
        """Implements Links.listening: for a listener at all addresses the one that the system uses towards there."""
        addresses: list[str] = []
        with contextlib.suppress(OSError):  # closed meanwhile
            addresses = self.addresses(key)
        for address in addresses:
            host, _, port = address.rpartition(":")
            if host not in ANY:
                return address
            with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
                asking.connect((towards, 1))  # sends nothing
                return f"{asking.getsockname()[0]}:{port}"
        return ""

    def unlisten(self, key: str) -> None:
        """Implements Links.unlisten."""
        retry = self._retries.pop(key, None)
        if retry is not None:
            retry.cancel()
        starting = self._starting.pop(key, None)
        if starting is not None:
            starting.cancel()
        acceptor = self._open.pop(key, None)
        if acceptor is not None:
            acceptor.close()

    def close(self) -> None:
        """Closes all listeners."""
        for key in [*self._open, *self._retries]:
            self.unlisten(key)
