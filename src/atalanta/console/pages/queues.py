"""Queues and addresses over all nodes, and one of them."""

from __future__ import annotations

import time
from typing import Final

from aiohttp import web

from atalanta.client import ManagementFailed
from atalanta.client.management import BROKER, REPLY_QUEUE_PREFIX
from atalanta.console.desk import ConsoleDesk, one, operator_of
from atalanta.console.nodes import messages
from atalanta.console.nodes.actions import (
    ADDRESS,
    ADDRESS_ACTIONS,
    MESSAGE_ACTIONS,
    QUEUE,
    QUEUE_ACTIONS,
    SEND,
    SEND_TO_ADDRESS,
    Action,
    operation_names,
)
from atalanta.console.nodes.cluster import NodeAnswers, NodeProblem
from atalanta.console.nodes.destinations import CREATIONS, DELETIONS
from atalanta.console.nodes.failures import NotFound, error_text, missing_permission
from atalanta.console.nodes.list_kinds import ADDRESSES, CONSUMERS, QUEUES, ListKind, ListRow
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.nodes.snapshots import Snapshot
from atalanta.console.nodes.tables import NODE, PARTS, TableQuery, of_node, page_of_rows, read_query
from atalanta.console.operator import OperatorSession
from atalanta.console.pages.downloads import downloaded
from atalanta.console.view.charts import QUEUE_CHARTS, charts
from atalanta.message.encoding.digits import all_digits

QUEUE_SUMS: Final = ("messageCount", "consumerCount", "deliveringCount", "scheduledCount")
ADDRESS_SUMS: Final = ("queueCount", "messageCount", "addressSize")
# Names of queues that a cluster makes for itself.
INTERNAL: Final = ("$.artemis.internal", "notif.", "$sys.mqtt", "activemq.management", "activemq.notifications")
CONSUMERS_SHOWN_MAX: Final = 100
# The part of a queue's page with messages, when nobody has looked at them.
NOT_BROWSED: Final[dict[str, object]] = {
    "selector": "", "size": messages.PAGE_SIZES[0], "page": 1, "sizes": messages.PAGE_SIZES, "messages": None,
    "scheduled": None, "browse_problem": "", "browse_missing": None, "view": "",
}  # fmt: skip


class DestinationPages:
    """The lists, and the page of a queue and of an address."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/queues", self.queues),
            web.get("/queue", self.queue),
            web.get("/addresses", self.addresses),
            web.get("/address", self.address),
        ]

    # -- lists ----------------------------------------------------------------------------------
    async def queues(self, request: web.Request) -> web.StreamResponse:
        """Shows queues, those with the same name and address as one row."""
        query = read_query(request.query, QUEUES.fields, "name")
        rows, answers = await _table(operator_of(request), QUEUES, query)
        if not query.with_internal:
            rows = [row for row in rows if not is_internal(row)]
        searched, fields = ("name", "address"), (*QUEUES.fields, NODE, PARTS)
        file = await downloaded(self.desk, request, "queues", rows, query, searched, fields)
        if file is not None:
            return file
        table = page_of_rows(rows, query, searched, QUEUE_SUMS)
        return await self._list(request, "queues.html", QUEUE, table, answers)

    async def addresses(self, request: web.Request) -> web.StreamResponse:
        """Shows addresses, those with the same name as one row."""
        query = read_query(request.query, ADDRESSES.fields, "name")
        rows, answers = await _table(operator_of(request), ADDRESSES, query)
        if not query.with_internal:
            rows = [row for row in rows if not is_internal(row)]
        searched, fields = ("name",), (*ADDRESSES.fields, NODE, PARTS)
        file = await downloaded(self.desk, request, "addresses", rows, query, searched, fields)
        if file is not None:
            return file
        table = page_of_rows(rows, query, searched, ADDRESS_SUMS)
        return await self._list(request, "addresses.html", ADDRESS, table, answers)

    async def _list(
        self, request: web.Request, template: str, kind: str, table: object, answers: NodeAnswers[Snapshot]
    ) -> web.StreamResponse:
        operator = operator_of(request)
        nodes = [node for node, _ in answers.found]
        age_s = max((each.age_s(operator.clock()) for _, each in answers.found), default=0.0)
        return self.desk.page(
            request,
            template,
            table=table,
            problems=answers.problems,
            nodes=operator.cluster.known(),
            may_create=bool(nodes) and await self._may(operator, nodes[0], CREATIONS[kind]),
            age_s=age_s,
            cut=[node.label for node, each in answers.found if each.total > len(each.rows)],
        )

    # -- one queue ------------------------------------------------------------------------------
    async def queue(self, request: web.Request) -> web.StreamResponse:
        """Shows a queue: at each node, its consumers, and a page of its messages at one node."""
        operator = operator_of(request)
        name = one(request.query, "name")
        parts, problems = await rows_named(operator, QUEUES, name)
        if not parts:
            raise NotFound(f"no node has a queue {name} (now)") if not problems else problems[0].error
        node, row = _chosen(parts, request.query.get("node", ""))
        permitted = await operator.permissions.allowed(
            node, f"queue.{name}", operation_names((*QUEUE_ACTIONS, *MESSAGE_ACTIONS, SEND))
        )
        return self.desk.page(
            request,
            "queue.html",
            queue_actions=self._drawn(QUEUE_ACTIONS, permitted),
            message_actions=self._drawn(MESSAGE_ACTIONS, permitted),
            may_send=SEND.operation in permitted and not self.desk.options.read_only,
            may_delete=not is_internal(row) and await self._may(operator, node, DELETIONS[QUEUE]),
            **await self._figures(operator, name, parts, problems, node, row),
            **await self._browsed(request, node, name),
        )

    async def queue_part(self, request: web.Request) -> str:
        """Returns the content of the page for a stream: the figures, without messages and buttons."""
        operator = operator_of(request)
        name = one(request.query, "name")
        parts, problems = await rows_named(operator, QUEUES, name)
        if not parts:
            raise NotFound(f"no node has a queue {name} (now)")
        node, row = _chosen(parts, request.query.get("node", ""))
        figures = await self._figures(operator, name, parts, problems, node, row)
        nothing = {"queue_actions": [], "message_actions": [], "may_send": False, "may_delete": False}
        return self.desk.part(request, "queue.html", **figures, **nothing, **NOT_BROWSED)

    async def _figures(
        self,
        operator: OperatorSession,
        name: str,
        parts: list[tuple[ClusterNode, ListRow]],
        problems: list[NodeProblem],
        node: ClusterNode,
        row: ListRow,
    ) -> dict[str, object]:
        """Returns the part of the page that changes by itself: figures, time lines, consumers."""
        consumers, hidden = await _consumers(operator, [each for each, _ in parts], name)
        return {
            "name": name,
            "parts": parts,
            "sums": {field: _sum(parts, field) for field in QUEUES.numbers},
            "first": row,
            "node": node,
            "problems": problems,
            "charts": charts(QUEUE_CHARTS, operator.sampler.watch(name), time.time()),
            "consumers": consumers,
            "consumers_hidden": hidden,
        }

    async def _browsed(self, request: web.Request, node: ClusterNode, name: str) -> dict[str, object]:
        """Returns the part of the page with messages; a refusal is told there and hides nothing else."""
        selector = one(request.query, "selector").strip()
        size_text, page_text = request.query.get("size", ""), request.query.get("page", "")
        size = int(size_text) if size_text in map(str, messages.PAGE_SIZES) else messages.PAGE_SIZES[0]
        page = max(1, int(page_text)) if all_digits(page_text, 6) else 1
        found: dict[str, object] = {**NOT_BROWSED, "selector": selector, "size": size, "page": page}
        view = request.query.get("view", "")
        found["view"] = view if view == "scheduled" else ""
        try:
            if found["view"]:
                found["scheduled"] = await messages.scheduled(node, name)
            else:
                found["messages"] = await messages.browse(node, name, page, size, selector)
        except ManagementFailed as error:
            found["browse_problem"] = error_text(error)
            found["browse_missing"] = missing_permission(error)
        return found

    # -- one address ----------------------------------------------------------------------------
    async def address(self, request: web.Request) -> web.StreamResponse:
        """Shows an address at each node, and its queues."""
        operator = operator_of(request)
        name = one(request.query, "name")
        parts, problems = await rows_named(operator, ADDRESSES, name)
        if not parts:
            raise NotFound(f"no node has an address {name} (now)") if not problems else problems[0].error
        query = read_query({**request.query, "q": ""}, QUEUES.fields, "name")
        rows, answers = await _table(operator, QUEUES, query)
        rows = [row for row in rows if row["address"] == name]
        resource = f"address.{name}"
        permitted = await operator.permissions.allowed(
            parts[0][0], resource, operation_names((*ADDRESS_ACTIONS, SEND_TO_ADDRESS))
        )
        return self.desk.page(
            request,
            "address.html",
            name=name,
            parts=parts,
            table=page_of_rows(rows, query, ("name",), QUEUE_SUMS),
            problems=problems + answers.problems,
            actions=self._drawn(ADDRESS_ACTIONS, permitted),
            may_send=SEND_TO_ADDRESS.operation in permitted and not self.desk.options.read_only,
            may_create=await self._may(operator, parts[0][0], CREATIONS[QUEUE]),
            may_delete=not is_internal(parts[0][1]) and await self._may(operator, parts[0][0], DELETIONS[ADDRESS]),
        )

    async def _may(self, operator: OperatorSession, node: ClusterNode, operation: str) -> bool:
        """Returns whether an operation of the whole broker has a button."""
        if self.desk.options.read_only:
            return False
        return operation in await operator.permissions.allowed(node, BROKER, [operation])

    def _drawn(self, actions: tuple[Action, ...], permitted: frozenset[str]) -> list[Action]:
        """Returns the actions that have a button: none for a console that only reads."""
        if self.desk.options.read_only:
            return []
        return [action for action in actions if action.operation in permitted]


def is_internal(row: ListRow) -> bool:
    """Returns whether a queue or address is one that brokers make for themselves."""
    if row.get("internalQueue") is True or row.get("internal") is True:
        return True
    return is_internal_name(str(row.get("name") or ""))


def is_internal_name(name: str) -> bool:
    """Returns whether the name is one that brokers, or consoles for their answers, give."""
    return name.startswith((REPLY_QUEUE_PREFIX, *INTERNAL))


async def rows_named(
    operator: OperatorSession, kind: ListKind, name: str
) -> tuple[list[tuple[ClusterNode, ListRow]], list[NodeProblem]]:
    """Returns the row of the queue or address at each node that has it, asked now, and the nodes without an answer."""

    async def ask(node: ClusterNode) -> list[ListRow]:
        rows, _ = await node.page(kind.operation, 1, 10, ("name", "EQUALS", name))
        return [kind.typed(row) for row in rows]

    answers = await operator.cluster.each(ask)
    parts = [(node, row) for node, rows in answers.found for row in rows if row["name"] == name]
    return parts, answers.problems


async def _table(
    operator: OperatorSession, kind: ListKind, query: TableQuery
) -> tuple[list[ListRow], NodeAnswers[Snapshot]]:
    """Returns the rows of one node, or of all nodes summed."""

    async def ask(node: ClusterNode) -> Snapshot:
        return await operator.snapshots.of(node, kind)

    answers = await operator.cluster.each(ask, query.node)
    refusal = answers.only_refusal()
    if refusal is not None:
        raise refusal
    if query.node:
        rows = [row for node, each in answers.found for row in of_node(each.rows, node.label, node.id)]
    else:
        rows = operator.snapshots.summed(kind, answers.found)
    return rows, answers


async def _consumers(operator: OperatorSession, nodes: list[ClusterNode], queue: str) -> tuple[list[ListRow], int]:
    """Returns consumers of a queue at these nodes, and how many more there are."""
    found: list[ListRow] = []
    total = 0
    for node in nodes:
        try:
            rows, count = await node.page(
                CONSUMERS.operation, 1, CONSUMERS_SHOWN_MAX, ("queue", "EQUALS", queue)
            )
        except ManagementFailed:
            continue  # without the permission: the number of consumers is in the table of the nodes
        total += count
        found += of_node([CONSUMERS.typed(row) for row in rows], node.label, node.id)
    shown = found[:CONSUMERS_SHOWN_MAX]
    return shown, max(0, total - len(shown))


def _chosen(parts: list[tuple[ClusterNode, ListRow]], node_id: str) -> tuple[ClusterNode, ListRow]:
    """Returns the node whose messages are shown: the one asked for, else the one with most."""
    for node, row in parts:
        if node_id and node.id == node_id:
            return node, row
    return max(parts, key=lambda part: part[1]["messageCount"] if isinstance(part[1]["messageCount"], int) else 0)


def _sum(parts: list[tuple[ClusterNode, ListRow]], field: str) -> int:
    return sum(value for _, row in parts if isinstance(value := row.get(field), int))
