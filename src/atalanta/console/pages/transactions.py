"""Prepared transactions of all nodes, and the decision of an operator about one."""

from __future__ import annotations

import re
import time
from typing import Final

from aiohttp import web

from atalanta.client.management import BROKER
from atalanta.console.desk import ConsoleDesk, FormRefused, form_of, one, operator_of
from atalanta.console.nodes.failures import NotFound
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.nodes.transactions import (
    DECISIONS,
    BranchDecision,
    PreparedTransaction,
    decision_job,
    find_transaction,
    transactions_of,
)
from atalanta.console.operator import OperatorSession
from atalanta.console.pages.jobs import started

PATH: Final = "/transactions"
XID: Final = re.compile(r"[A-Za-z0-9+/=_-]{1,600}")


class TransactionPages:
    """The page of transactions in doubt."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [web.get(PATH, self.transactions), web.post(f"{PATH}/end", self.end)]

    async def transactions(self, request: web.Request) -> web.StreamResponse:
        """Lists the branches, the oldest first."""
        operator = operator_of(request)
        answers = await operator.cluster.each(transactions_of)
        refusal = answers.only_refusal()
        if refusal is not None:
            raise refusal
        rows = [(node, each) for node, found in answers.found for each in found.prepared]
        rows.sort(key=lambda row: (str(row[1].created), row[0].label))
        ended = [
            (node, xid, word)
            for node, found in answers.found
            for word, xids in (("committed", found.committed), ("rolled back", found.rolled_back))
            for xid in xids
        ]
        return self.desk.page(
            request,
            "transactions.html",
            rows=[(node, each, age_ms(each)) for node, each in rows],
            ended=ended,
            decisions={node.place.at: await self._allowed(operator, node) for node, _ in answers.found},
            problems=answers.problems,
        )

    async def end(self, request: web.Request) -> web.StreamResponse:
        """Ends a branch when that is confirmed, else says what it means."""
        self.desk.check_writable()
        fields = await form_of(request)
        decision = DECISIONS.get(fields.get("do", ""))
        xid = one(fields, "xid")
        if decision is None:
            raise NotFound("there is no such decision")
        if not XID.fullmatch(xid):
            raise FormRefused("This is no id of a transaction.")
        node = await operator_of(request).cluster.node(one(fields, "node"))
        branch = await find_transaction(node, xid)
        if fields.get("confirmed") != "yes":
            return self.desk.page(
                request, "transaction.html", node=node, branch=branch, decision=decision, age_ms=age_ms(branch)
            )
        job = decision_job(decision, xid, node, self.desk.links.to(PATH))
        return await started(self.desk, request, job, f"{decision.name}-transaction", xid, [node])

    async def _allowed(self, operator: OperatorSession, node: ClusterNode) -> list[BranchDecision]:
        """Returns the decisions that have a button."""
        if self.desk.options.read_only:
            return []
        names = [each.operation for each in DECISIONS.values()]
        permitted = await operator.permissions.allowed(node, BROKER, names)
        return [each for each in DECISIONS.values() if each.operation in permitted]


def age_ms(branch: PreparedTransaction) -> int | None:
    """Returns how long a branch has been there; None where the node's time has no zone."""
    return max(0, int(time.time() * 1_000) - branch.created) if isinstance(branch.created, int) else None
