"""The connections of an HTTP server, the node's or the console's: their number and their time are limited."""

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

    def __init__(self, most: int = CONNECTIONS_MAX, request_s: float = CONNECTION_S) -> None:
        self.request_s = request_s
        self._most = most
        self.open: dict[RequestHandler, WebConnection] = {}
        self._by_host = ConnectionsByHost()

    def add(self, connection: WebConnection) -> None:
        if len(self.open) >= self._most:
            self._by_host.close_one()
        self.open[connection.handler] = connection
        self._by_host.add(connection)

    def remove(self, connection: WebConnection) -> None:
        del self.open[connection.handler]
        self._by_host.remove(connection)

    def renew(self, handler: RequestHandler) -> None:
        """Starts the time of the next request, or of the next part of a long answer."""
        connection = self.open.get(handler)
        if connection is not None:
            connection.start_time()

    def hold(self, handler: RequestHandler) -> None:
        """Stops the time until `renew`: the client waits for others."""
        connection = self.open.get(handler)
        if connection is not None:
            connection.stop_time()


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
        self.stop_time()
        self._timer = asyncio.get_running_loop().call_later(self._connections.request_s, self.abort)

    def stop_time(self) -> None:
        """Stops the time of a request."""
        if self._timer is not None:
            self._timer.cancel()

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
        self.stop_time()
        self._connections.remove(self)
        self.handler.connection_lost(exc)
