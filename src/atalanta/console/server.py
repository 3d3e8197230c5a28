"""The HTTP server of the console."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from aiohttp import web

from atalanta.console.access.request_guard import RequestGuard
from atalanta.console.desk import ConsoleDesk, Draw
from atalanta.console.nodes.place import NodePlace, place_of
from atalanta.console.operator import Operators
from atalanta.console.options import ConsoleOptions, ConsoleRefused
from atalanta.console.pages.actions import ActionPages
from atalanta.console.pages.audit import AuditPages
from atalanta.console.pages.clients import ClientPages
from atalanta.console.pages.configuration_history import HistoryPages
from atalanta.console.pages.destinations import CreationPages
from atalanta.console.pages.element_changes import ElementChangePages
from atalanta.console.pages.elements import ElementPages
from atalanta.console.pages.jobs import JobPages
from atalanta.console.pages.live import LivePages, LiveView
from atalanta.console.pages.login import LoginPages
from atalanta.console.pages.messages import MessagePages
from atalanta.console.pages.overview import OverviewPages
from atalanta.console.pages.queues import DestinationPages
from atalanta.console.pages.search import SearchPages
from atalanta.console.pages.transactions import TransactionPages
from atalanta.console.request_path import RequestPath
from atalanta.console.static_files import StaticFile, static_files
from atalanta.web.connections import WebConnection, WebConnections
from atalanta.wire.uri import UriError

REQUEST_BYTES_MAX: Final = 2 << 20
LINE_BYTES_MAX: Final = 16_384
SWEEP_S: Final = 30.0
STOP_S: Final = 2.0
KEEP_ALIVE_S: Final = 30.0
CONNECTIONS_MAX: Final = 256
REQUEST_S: Final = 75.0  # for a request with its answer, or for each part of a long one
HANDSHAKE_S: Final = 10.0
STATIC_AGE: Final = "public, max-age=600"

log = logging.getLogger("atalanta.console")


class ConsoleServer:
    """Serves the console between `start` and `stop`. ConsoleRefused for options that cannot be used.

    `draw` makes the picture of a cluster; without it there is none.
    """

    def __init__(self, options: ConsoleOptions, draw: Draw | None = None) -> None:
        self.options = options
        self._draw = draw
        self.host, self.port = options.place()
        self.operators = Operators(places_of(options.nodes))
        self.address = ""  # the URL, after the start
        self._guard = RequestGuard(self.host, options.tls, options.origin_hosts())
        self._tls = options.tls_context()
        options.base_path()
        self._connections = WebConnections(CONNECTIONS_MAX, REQUEST_S)
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Binds the port and returns the URL. OSError if it cannot be bound."""
        loop = asyncio.get_running_loop()
        base = self.options.base_path()
        # The port is needed for the names of cookies, before there is an application.
        runner = web.AppRunner(
            self.application(),
            access_log=None,
            handle_signals=False,
            keepalive_timeout=KEEP_ALIVE_S,
            shutdown_timeout=STOP_S,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=LINE_BYTES_MAX,
        )
        await runner.setup()
        self._runner = runner
        handshake_s = None if self._tls is None else HANDSHAKE_S
        try:
            self._listener = await loop.create_server(
                self._accepted, self.host, self.port, ssl=self._tls, ssl_handshake_timeout=handshake_s
            )
        except OSError:
            await self.stop()
            raise
        self.port = int(self._listener.sockets[0].getsockname()[1])
        self.desk.port = self.port
        self._sweeper = loop.create_task(self._sweep())
        shown = f"[{self.host}]" if ":" in self.host else self.host
        self.address = f"{'https' if self._tls else 'http'}://{shown}:{self.port}{base}/"
        return self.address

    async def stop(self) -> None:
        """Ends every session and connection."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeper
        if self._listener is not None:
            self._listener.close()
        await self.operators.end_all()
        if self._runner is not None:
            await self._runner.cleanup()

    def _accepted(self) -> asyncio.Protocol:
        assert self._runner is not None
        server = self._runner.server
        assert server is not None
        return WebConnection(self._connections, server())

    def application(self) -> web.Application:
        """Returns the application with all pages."""
        self.desk = desk = ConsoleDesk(
            self.options, self.operators, self._guard, self._connections, self.port, self._draw
        )
        application = web.Application(
            client_max_size=REQUEST_BYTES_MAX, middlewares=RequestPath(desk).middlewares()
        )
        static = StaticPages()
        overview, destinations = OverviewPages(desk), DestinationPages(desk)
        views = [LiveView("/", overview.part, asks=False), LiveView("/queue", destinations.queue_part, asks=True)]
        for pages in (
            LoginPages(desk),
            overview,
            destinations,
            LivePages(desk, views),
            MessagePages(desk),
            ClientPages(desk),
            ActionPages(desk),
            CreationPages(desk),
            JobPages(desk),
            SearchPages(desk),
            ElementPages(desk),
            ElementChangePages(desk),
            HistoryPages(desk),
            AuditPages(desk),
            TransactionPages(desk),
            static,
        ):
            for route in pages.routes():
                application.router.add_route(route.method, f"{desk.links.base}{route.path}", route.handler)
        return application

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            await self.operators.end_expired()


class StaticPages:
    """Style and modules."""

    def __init__(self) -> None:
        self._files: dict[str, StaticFile] = static_files()

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/static/{name}", self.file)]

    async def file(self, request: web.Request) -> web.StreamResponse:
        """Returns a file of the package by its name; what is not among them does not exist."""
        found = self._files.get(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound
        headers = {"ETag": found.tag, "Cache-Control": STATIC_AGE}
        if request.headers.get("If-None-Match") == found.tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=found.content, content_type=found.kind, charset="utf-8", headers=headers)


def places_of(nodes: list[str]) -> list[NodePlace]:
    """Returns the places of the command line, each once."""
    found: dict[str, NodePlace] = {}
    for node in nodes:
        try:
            place = place_of(node)
        except UriError as error:
            raise ConsoleRefused(str(error)) from None
        found.setdefault(place.at, place)
    if not found:
        raise ConsoleRefused("name at least one node: host:port")
    return list(found.values())
