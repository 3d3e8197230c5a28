"""The first page: the cluster as the survey sees it, with what is wrong; and its picture."""

from __future__ import annotations

import logging
import time

from aiohttp import web

from atalanta.console.desk import ConsoleDesk, form_of, one, operator_of
from atalanta.console.operator import OperatorSession
from atalanta.console.view.charts import CLUSTER_CHARTS, NODE_CHARTS, charts

log = logging.getLogger("atalanta.console")


class OverviewPages:
    """The page of the whole cluster."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self.overview),
            web.get("/lines", self.lines),
            web.get("/picture.svg", self.picture),
            web.post("/nodes/agree", self.agree),
        ]

    async def overview(self, request: web.Request) -> web.StreamResponse:
        """Shows findings, nodes, links and totals."""
        operator = operator_of(request)
        await operator.cluster.nodes()  # the members that wait for the user
        shown = await self._shown(operator)
        if shown is None:
            response = self.desk.page(request, "asking.html", nodes=operator.cluster.known())
            response.headers["Refresh"] = "2"
            return response
        return self.desk.page(request, "overview.html", **shown)

    async def part(self, request: web.Request) -> str | None:
        """Returns the content of the page for a stream, without the age of its numbers: it is sent when they change."""
        shown = await self._shown(operator_of(request))
        if shown is None:
            return None
        return self.desk.part(request, "overview.html", **{**shown, "age_s": 0.0, "findings_age_s": 0.0})

    async def _shown(self, operator: OperatorSession) -> dict[str, object] | None:
        """Returns what the template needs; None while the nodes are being asked for the first time."""
        result = await operator.survey.picture()
        if result is None:
            return None
        cluster = result.cluster
        diagnosis = await operator.survey.findings()
        return {
            "nodes": sorted(cluster.nodes, key=lambda node: (node.label, node.at)),
            "flow": result.flow,
            "labels": {
                **{node.node_id: node.label for node in result.flow.nodes},
                **{each.neighbour_id: each.label for each in result.flow.neighbours},
            },
            "seconds": cluster.seconds,
            "unreachable": result.unreachable,
            "findings": None if diagnosis is None else diagnosis.findings,
            "findings_age_s": 0.0 if diagnosis is None else diagnosis.age_s(operator.clock()),
            "totals": result.totals,
            "charts": charts(CLUSTER_CHARTS, operator.sampler.lines.cluster, time.time()),
            "waiting": operator.cluster.waiting_members(),
            "open_brokers": [node.label for node in cluster.nodes if not node.security_enabled],
            "drawn": self.desk.draw is not None,
            "age_s": result.age_s(operator.clock()),
        }

    async def lines(self, request: web.Request) -> web.StreamResponse:
        """Shows the time lines of the cluster and of each node."""
        operator = operator_of(request)
        result = await operator.survey.picture()
        lines, now_s = operator.sampler.lines, time.time()
        shown = [] if result is None else sorted(result.flow.nodes, key=lambda node: (node.label, node.at))
        nodes = [
            (node.label, node.node_id, charts(NODE_CHARTS, lines.nodes[node.node_id], now_s))
            for node in shown
            if node.node_id in lines.nodes
        ]
        return self.desk.page(
            request, "lines.html", cluster=charts(CLUSTER_CHARTS, lines.cluster, now_s), nodes=nodes
        )

    async def picture(self, request: web.Request) -> web.StreamResponse:
        """Returns the picture of `atalanta topology --svg`."""
        if self.desk.draw is None:
            raise web.HTTPNotFound
        result = await operator_of(request).survey.picture()
        if result is None:
            raise web.HTTPServiceUnavailable
        return web.Response(text=self.desk.draw(result.flow), content_type="image/svg+xml", charset="utf-8")

    async def agree(self, request: web.Request) -> web.StreamResponse:
        """Records that the user's password may go to the address of a node."""
        operator = operator_of(request)
        at = one(await form_of(request), "at")
        operator.cluster.agree(at)
        operator.survey.forget()
        log.info("console_address_agreed user=%r at=%r", operator.user, at)
        return self.desk.moved("/")
