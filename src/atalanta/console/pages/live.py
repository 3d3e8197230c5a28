"""Server-sent events: what changes on an open page, sent when it changes. A page without them asks every few seconds.

Each event has the part of the page as HTML, made by the same template as the page. A stream ends with its session.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from atalanta.client import ClientError
from atalanta.console.access.streams import LiveStreams, StreamsTaken
from atalanta.console.desk import ConsoleDesk, FormRefused, operator_of
from atalanta.console.nodes.failures import NodeUnreachable, NotFound
from atalanta.console.nodes.surveys import is_cancelled
from atalanta.console.operator import OperatorSession

TICK_S: Final = 2.0
SHARE: Final = 100  # the pause after a look at the nodes, as a multiple of the time that it took
BEAT_S: Final = 15.0  # proxies close a connection on which nothing comes for long

log = logging.getLogger("atalanta.console")

Render = Callable[[web.Request], Awaitable[str | None]]


@dataclass(frozen=True)
class LiveView:
    """A page that has a stream. `asks`: each look asks the nodes, so that its pause follows the cost."""

    path: str
    render: Render
    asks: bool


class LivePages:
    """The streams."""

    def __init__(self, desk: ConsoleDesk, views: list[LiveView]) -> None:
        self.desk = desk
        self.streams = LiveStreams()
        self._views = {view.path: view for view in views}

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/live", self.live)]

    async def live(self, request: web.Request) -> web.StreamResponse:
        """Sends the page of the parameter `page` when it changes, until the session or the browser is gone."""
        view = self._views.get(request.query.get("page", ""))
        if view is None:
            raise web.HTTPNotFound
        if not self.desk.guard.comes_from_here(request.host, request.headers):
            raise web.HTTPForbidden(reason="This comes from another site.")
        operator = operator_of(request)
        try:
            with self.streams.opened(operator.user):
                return await self._sent(request, operator, view)
        except StreamsTaken:
            raise web.HTTPServiceUnavailable(reason="Too many pages are open: this one asks now and then.") from None

    async def _sent(self, request: web.Request, operator: OperatorSession, view: LiveView) -> web.StreamResponse:
        # X-Accel-Buffering: nginx hands on each event at once.
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        self.desk.secure(request, response)
        await response.prepare(request)
        try:
            await self._events(request, response, operator, view)
            await response.write_eof()
        except ConnectionResetError:
            log.debug("console_stream_left remote=%s", request.remote)
        return response

    async def _events(
        self, request: web.Request, response: web.StreamResponse, operator: OperatorSession, view: LiveView
    ) -> None:
        last, wrote_s, clock = None, time.monotonic(), self.desk.operators.clock
        while not operator.ended.is_set() and not operator.browser.is_over(clock()):
            if request.transport is None:
                return
            operator.browser.use(clock())  # a page that somebody sees; hidden ones close their streams
            began_s = time.monotonic()
            try:
                text = await view.render(request)
            except (ClientError, FormRefused, NodeUnreachable, NotFound, OSError):
                if operator.ended.is_set():
                    break
                await response.write(event_of("stop", ""))  # the page asks by itself, and shows what is wrong
                return
            except asyncio.CancelledError:
                if is_cancelled():
                    raise
                break  # the session has ended, and its samples with it
            now_s = time.monotonic()
            if text is not None and text != last:
                last, wrote_s = text, now_s
                self.desk.connections.renew(request.protocol)
                await response.write(event_of("part", text))
            elif now_s - wrote_s >= BEAT_S:
                wrote_s = now_s
                self.desk.connections.renew(request.protocol)
                await response.write(b": still here\n\n")
            pause_s = max(TICK_S, SHARE * (now_s - began_s)) if view.asks else TICK_S
            try:
                async with asyncio.timeout(min(BEAT_S, pause_s)):
                    await operator.ended.wait()
            except TimeoutError:
                continue
        await response.write(event_of("end", ""))


def event_of(name: str, text: str) -> bytes:
    """Returns an event. Each line of the text has its own field: no text can begin another event."""
    lines = text.replace("\r", "").split("\n")
    fields = "".join(f"data: {line}\n" for line in lines)
    return f"event: {name}\n{fields}\n".encode()
