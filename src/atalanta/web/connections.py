"""The connections of the HTTP server: their number and their time are limited."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from atalanta.runtime.net.connections_by_host import ConnectionsByHost

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

CONNECTIONS_MAX: Final = 32
CONNECTION_S: Final = 75.0  # for a request with its answer, and for the next request


class WebConnections:
    """The open connections. A new one above the limit replaces the oldest of the host that has most."""

    def __init__(self) -> None:
        self.open: dict[RequestHandler, WebConnection] = {}
        self._by_host = ConnectionsByHost()

    def add(self, connection: WebConnection) -> None:
        if len(self.open) >= CONNECTIONS_MAX:
            self._by_host.close_one()
        self.open[connection.handler] = connection
        self._by_host.add(connection)

    def remove(self, connection: WebConnection) -> None:
        del self.open[connection.handler]
        self._by_host.remove(connection)

    def answered(self, handler: RequestHandler) -> None:
        """Starts the time of the next request."""
        connection = self.open.get(handler)
        if connection is not None:
            connection.start_time()


class WebConnection(asyncio.Protocol):
    """A connection that aiohttp's `handler` serves. It is closed when the time of a request is over."""

    def __init__(self, connections: WebConnections, handler: RequestHandler) -> None:
        self.handler = handler
        self.peer = ""
        self._connections = connections
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername") or ("", 0)
        self.peer = f"[{name[0]}]:{name[1]}"
        self._connections.add(self)
        self.start_time()
        self.handler.connection_made(transport)

    def start_time(self) -> None:
        """Starts the time of a request anew."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(CONNECTION_S, self.abort)

    def abort(self) -> None:
        """Closes the connection now."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self.handler.data_received(data)

    def eof_received(self) -> bool | None:
        self.handler.eof_received()
        return None

    def pause_writing(self) -> None:
        self.handler.pause_writing()

    def resume_writing(self) -> None:
        self.handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._connections.remove(self)
        self.handler.connection_lost(exc)
