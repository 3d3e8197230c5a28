"""The page of who did what: changing calls of management, as the nodes keep them, in one table."""

from __future__ import annotations

import json
from typing import Final

from aiohttp import web

from atalanta.client.management import BROKER
from atalanta.console.desk import ConsoleDesk, operator_of
from atalanta.console.nodes.list_kinds import CHANGES, ListRow
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.nodes.tables import NODE, of_node, page_of_rows, read_query
from atalanta.console.pages.downloads import downloaded

CALLS_MAX: Final = 1_000  # of each node
PATH: Final = "/audit"


class AuditPages:
    """The page of who did what."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [web.get(PATH, self.audit)]

    async def audit(self, request: web.Request) -> web.StreamResponse:
        """Shows the calls, the newest first; nodes that keep none are named."""
        operator = operator_of(request)
        given = dict(request.query)
        if "sort" not in given:
            given["order"] = "desc"
        query = read_query(given, (*CHANGES.fields, NODE), "lastTime")
        answers = await operator.cluster.each(_calls, query.node)
        refusal = answers.only_refusal()
        if refusal is not None:
            raise refusal
        rows: list[ListRow] = []
        for node, found in answers.found:
            rows += of_node(found or [], node.label, node.id)
        searched = (*CHANGES.texts, NODE)
        file = await downloaded(self.desk, request, "changes", rows, query, searched, (*CHANGES.fields, NODE))
        if file is not None:
            return file
        return self.desk.page(
            request,
            "audit.html",
            table=page_of_rows(rows, query, searched),
            problems=answers.problems,
            silent=[node.label for node, found in answers.found if found is None],
            nodes=operator.cluster.known(),
            path=PATH,
        )


async def _calls(node: ClusterNode) -> list[ListRow] | None:
    """Returns the calls that a node has kept; None for a node that keeps none."""
    if not node.id:
        await node.connection()
    if not node.ours:
        return None
    text = await node.call(BROKER, CHANGES.operation, CALLS_MAX)
    try:
        rows = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        rows = []
    return [CHANGES.typed(row) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
