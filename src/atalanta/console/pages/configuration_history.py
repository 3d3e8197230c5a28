"""The changes of the configuration that each node keeps, and their undoing."""

from __future__ import annotations

from aiohttp import web

from atalanta.console.configuration.change_answer import RecordedChange
from atalanta.console.configuration.change_job import ChangeReturn, recorded_changes, undo_job
from atalanta.console.desk import ConsoleDesk, form_of, one, operator_of
from atalanta.console.nodes.failures import NotFound
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.pages.jobs import started


class HistoryPages:
    """The page of changes, and the one that takes a change back."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/changes", self.changes),
            web.get("/changes/undo", self.form),
            web.post("/changes/undo", self.undo),
        ]

    async def changes(self, request: web.Request) -> web.StreamResponse:
        """Shows the last changes of each node."""
        operator = operator_of(request)
        answers = await operator.cluster.each(recorded_changes)
        refusal = answers.only_refusal()
        if refusal is not None:
            raise refusal
        configurations = await operator.configurations.all([])
        permitted = {node.place.at for node, each in configurations.found if each.permitted and each.kept}
        return self.desk.page(
            request,
            "changes.html",
            changes=[(node, rows) for node, rows in answers.found if node.ours],
            others=[node.label for node, _ in answers.found if not node.ours],
            problems=answers.problems,
            permitted=set() if self.desk.options.read_only else permitted,
        )

    async def form(self, request: web.Request) -> web.StreamResponse:
        """Shows the change that would be taken back."""
        self.desk.check_writable()
        operator = operator_of(request)
        node, recorded = await self._found(request, one(request.query, "node"), one(request.query, "id"))
        configurations = await operator.configurations.all([], fresh=True)
        digest = next((each.digest for at, each in configurations.found if at.place.at == node.place.at), "")
        return self.desk.page(request, "change_undo.html", node=node, recorded=recorded, digest=digest)

    async def undo(self, request: web.Request) -> web.StreamResponse:
        """Takes a change back at its node."""
        self.desk.check_writable()
        given = await form_of(request)
        node, recorded = await self._found(request, one(given, "node"), one(given, "id"))
        taken = ChangeReturn(node, recorded, one(given, "digest"))
        title = f"Take back change {recorded.id} of {node.label}"
        job = undo_job(title, [taken], operator_of(request).browser.peer, self.desk.links.to("/changes"))
        return await started(self.desk, request, job, job.title, "", [node])

    async def _found(self, request: web.Request, node_id: str, change_id: str) -> tuple[ClusterNode, RecordedChange]:
        """Returns a node and a change that it keeps. Raises NotFound."""
        if not node_id:
            raise NotFound("the link names no node")
        node = await operator_of(request).cluster.node(node_id)
        for each in await recorded_changes(node):
            if each.id == change_id:
                return node, each
        raise NotFound(f"{node.label} keeps no such change (now): it keeps the last 20")
