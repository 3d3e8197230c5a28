"""The first page: the nodes of the cluster, and what they have in all."""

from __future__ import annotations

import logging
from typing import Final

from aiohttp import web

from atalanta.console.desk import ConsoleDesk, form_of, one, operator_of
from atalanta.console.nodes.cluster import NodeAnswers
from atalanta.console.nodes.figures import NodeFigures, figures_of

TOTALS: Final = (
    "QueueCount", "ConnectionCount", "SessionCount", "TotalConsumerCount", "TotalMessageCount", "TotalMessagesAdded",
    "TotalMessagesAcknowledged",
)  # fmt: skip

log = logging.getLogger("atalanta.console")


class OverviewPages:
    """The page of the whole cluster."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/", self.overview), web.post("/nodes/agree", self.agree)]

    async def overview(self, request: web.Request) -> web.StreamResponse:
        """Shows nodes and totals."""
        operator = operator_of(request)
        answers = await operator.cluster.each(figures_of)
        totals = {name: _total(answers, name) for name in TOTALS}
        return self.desk.page(
            request,
            "overview.html",
            nodes=answers.found,
            problems=answers.problems,
            totals=totals,
            waiting=operator.cluster.waiting_members(),
            backups={member.node_id: member.backup for member in operator.cluster.members.values()},
            open_brokers=[node.label for node, figures in answers.found if figures.flag("SecurityEnabled") is False],
        )

    async def agree(self, request: web.Request) -> web.StreamResponse:
        """Records that the user's password may go to the address of a node."""
        operator = operator_of(request)
        at = one(await form_of(request), "at")
        operator.cluster.agree(at)
        log.info("console_address_agreed user=%r at=%r", operator.user, at)
        return self.desk.moved("/")


def _total(answers: NodeAnswers[NodeFigures], name: str) -> int | None:
    numbers = [figures.number(name) for _, figures in answers.found]
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
