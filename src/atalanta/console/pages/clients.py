"""Connections, sessions, consumers and producers of all nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web

from atalanta.client.management import BROKER
from atalanta.console.desk import ConsoleDesk, operator_of
from atalanta.console.nodes.actions import ACTIONS, Action
from atalanta.console.nodes.list_kinds import (
    CONNECTIONS,
    CONSUMERS,
    PRODUCERS,
    SESSIONS,
    ListKind,
    ListRow,
)
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.nodes.snapshots import Snapshot
from atalanta.console.nodes.tables import NODE, of_node, page_of_rows, read_query
from atalanta.console.pages.downloads import downloaded
from atalanta.console.pages.queues import is_internal_name


@dataclass(frozen=True)
class ClientColumn:
    """A column: its field, its heading, and the page that a value leads to ("" for none)."""

    field: str
    heading: str
    leads_to: str = ""


@dataclass(frozen=True)
class ClientList:
    """A page with a list of clients' things. `action` closes one of them.

    Rows whose field `hides` is a name of the brokers' own are not shown, unless asked for.
    """

    path: str
    title: str
    kind: ListKind
    columns: tuple[ClientColumn, ...]
    searched: tuple[str, ...]
    action: Action | None = None
    hides: str = ""


def columns(*given: tuple[str, ...]) -> tuple[ClientColumn, ...]:
    """Returns the columns of (field, heading) or (field, heading, page)."""
    return tuple(ClientColumn(*each) for each in given)


LISTS: Final = (
    ClientList(
        "/connections", "Connections", CONNECTIONS,
        columns(
            ("connectionID", "Connection", "/sessions"), ("clientID", "Client id"), ("users", "Users"),
            ("remoteAddress", "From"), ("protocol", "Protocol"), ("sessionCount", "Sessions"),
            ("creationTime", "Since"),
        ),
        ("connectionID", "clientID", "users", "remoteAddress", "protocol", NODE), ACTIONS["close-connection"],
    ),
    ClientList(
        "/sessions", "Sessions", SESSIONS,
        columns(
            ("id", "Session"), ("connectionID", "Connection"), ("user", "User"), ("clientID", "Client id"),
            ("consumerCount", "Consumers"), ("producerCount", "Producers"), ("creationTime", "Since"),
        ),
        ("id", "connectionID", "user", "clientID", NODE), ACTIONS["close-session"],
    ),
    ClientList(
        "/consumers", "Consumers", CONSUMERS,
        columns(
            ("queue", "Queue", "/queue"), ("filter", "Selector"), ("clientID", "Client id"), ("user", "User"),
            ("remoteAddress", "From"), ("protocol", "Protocol"), ("messagesInTransit", "Holds"),
            ("messagesDelivered", "Delivered"), ("messagesAcknowledged", "Acknowledged"), ("creationTime", "Since"),
        ),
        ("queue", "address", "filter", "clientID", "user", "remoteAddress", "session", NODE), ACTIONS["close-consumer"],
        "queue",
    ),
    ClientList(
        "/producers", "Producers", PRODUCERS,
        columns(
            ("address", "Address", "/address"), ("clientID", "Client id"), ("user", "User"), ("remoteAddress", "From"),
            ("protocol", "Protocol"), ("msgSent", "Sent"), ("msgSizeSent", "Bytes"), ("creationTime", "Since"),
        ),
        ("address", "clientID", "user", "remoteAddress", "session", NODE), hides="address",
    ),
)  # fmt: skip


class ClientPages:
    """The lists of who uses the brokers."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [web.get(each.path, self._handler(each)) for each in LISTS]

    def _handler(self, shown: ClientList):  # type: ignore[no-untyped-def]
        async def show(request: web.Request) -> web.StreamResponse:
            return await self._show(request, shown)

        return show

    async def _show(self, request: web.Request, shown: ClientList) -> web.StreamResponse:
        operator = operator_of(request)
        kind = shown.kind
        fields = [column.field for column in shown.columns]
        query = read_query(request.query, [*fields, NODE], fields[0])

        async def ask(node: ClusterNode) -> Snapshot:
            return await operator.snapshots.of(node, kind)

        answers = await operator.cluster.each(ask, query.node)
        refusal = answers.only_refusal()
        if refusal is not None:
            raise refusal
        rows: list[ListRow] = []
        for node, each in answers.found:
            rows += of_node(each.rows, node.label, node.id)
        if shown.hides and not query.with_internal:
            rows = [row for row in rows if not is_internal_name(str(row.get(shown.hides) or ""))]
        file = await downloaded(
            self.desk, request, shown.path.strip("/"), rows, query, shown.searched, (*kind.fields, NODE)
        )
        if file is not None:
            return file
        action = shown.action if await self._may(request, shown, [node for node, _ in answers.found]) else None
        return self.desk.page(
            request,
            "clients.html",
            shown=shown,
            lists=LISTS,
            table=page_of_rows(rows, query, shown.searched, kind.numbers[:1]),
            problems=answers.problems,
            nodes=operator.cluster.known(),
            action=action,
            age_s=max((each.age_s(operator.clock()) for _, each in answers.found), default=0.0),
            cut=[node.label for node, each in answers.found if each.total > len(each.rows)],
        )

    async def _may(self, request: web.Request, shown: ClientList, nodes: list[ClusterNode]) -> bool:
        """Returns whether the list has buttons."""
        if shown.action is None or self.desk.options.read_only or not nodes:
            return False
        wanted = shown.action.operation
        return wanted in await operator_of(request).permissions.allowed(nodes[0], BROKER, [wanted])
