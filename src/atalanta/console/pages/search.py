"""The page that finds things: by name, and messages by a selector."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from atalanta.console.desk import ConsoleDesk, one, operator_of
from atalanta.console.nodes.search import find_messages, find_names

TEXT_MAX: Final = 500


class SearchPages:
    """The search."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/search", self.search)]

    async def search(self, request: web.Request) -> web.StreamResponse:
        """Shows the form, and what was found."""
        operator = operator_of(request)
        cluster, snapshots = operator.cluster, operator.snapshots
        text = one(request.query, "q", TEXT_MAX).strip()
        selector = one(request.query, "selector").strip()
        names, problems = await find_names(cluster, snapshots, text) if text and not selector else (None, [])
        found = await find_messages(cluster, snapshots, selector, text) if selector else None
        return self.desk.page(
            request,
            "search.html",
            text=text,
            selector=selector,
            names=names,
            found=found,
            problems=problems if found is None else found.problems,
        )
