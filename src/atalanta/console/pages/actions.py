"""Actions: a form, a page that says what would happen, and the job that does it. Nothing is changed by a GET."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from atalanta.console.desk import ConsoleDesk, FormRefused, one, operator_of
from atalanta.console.nodes.actions import (
    ACTIONS,
    ADDRESS,
    CLIENT,
    COUNT,
    MESSAGE,
    PERSIST,
    SELECTOR,
    SEND,
    SEND_TO_ADDRESS,
    TARGET,
    Action,
)
from atalanta.console.nodes.failures import NotFound
from atalanta.console.nodes.list_kinds import ADDRESSES, QUEUES
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.nodes.orders import IDS_MAX, Order, SentMessage, job_of, matching
from atalanta.console.operator import OperatorSession
from atalanta.console.pages.jobs import started
from atalanta.console.pages.queues import rows_named
from atalanta.message.encoding.digits import all_digits

BODY_MAX: Final = 1 << 20
PROPERTIES_MAX: Final = 100
SENT_MAX: Final = 1_000


class ActionPages:
    """The pages that change something."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/action", self.form),
            web.post("/action", self.act),
            web.get("/send", self.send_form),
            web.post("/send", self.send),
        ]

    # -- actions --------------------------------------------------------------------------------
    async def form(self, request: web.Request) -> web.StreamResponse:
        """Shows the form of an action with what is there now."""
        self.desk.check_writable()
        action = _action_of(request.query)
        order = Order(action, name=one(request.query, "name"), selector=one(request.query, "selector").strip())
        if action.subject in (MESSAGE, CLIENT):
            raise NotFound("this action begins on the page of its message or client")
        nodes = await self._nodes(operator_of(request), order, request.query.get("node", ""))
        return await self._preview(request, order, nodes, confirms=not action.asks)

    async def act(self, request: web.Request) -> web.StreamResponse:
        """Carries an order out when it is confirmed, else shows what it would do."""
        self.desk.check_writable()
        fields = await request.post()
        texts = {name: value for name, value in fields.items() if isinstance(value, str)}
        order = _order_of(texts, [value for value in fields.getall("id", []) if isinstance(value, str)])
        operator = operator_of(request)
        nodes = await self._nodes(operator, order, texts.get("node", ""))
        if texts.get("confirmed") != "yes":
            return await self._preview(request, order, nodes, confirms=True)
        return await self._started(request, order, nodes, _back_of(order, texts.get("node", "")))

    async def _preview(
        self, request: web.Request, order: Order, nodes: Sequence[ClusterNode], confirms: bool
    ) -> web.StreamResponse:
        """Shows how many messages an order is about at each node, and what is in its target."""
        operator = operator_of(request)
        counts = [(node, await matching(node, order)) for node in nodes]
        targets = await self._targets(operator, order, nodes)
        return self.desk.page(
            request,
            "action.html",
            order=order,
            action=order.action,
            counts=counts,
            total=sum(count or 0 for _, count in counts),
            targets=targets,
            confirms=confirms,
            chosen=nodes[0].id if len(nodes) == 1 else "",
            back=_back_of(order, nodes[0].id if len(nodes) == 1 else ""),
        )

    async def _targets(
        self, operator: OperatorSession, order: Order, nodes: Sequence[ClusterNode]
    ) -> list[tuple[ClusterNode, int | None]]:
        """Returns the messages of the target queue at each node. FormRefused where it does not exist."""
        if not order.target:
            return []
        parts, _ = await rows_named(operator, QUEUES, order.target)
        found = {node.place.at: row["messageCount"] for node, row in parts}
        lacking = [node.label for node in nodes if node.place.at not in found]
        if lacking:
            raise FormRefused(
                f"There is no queue {order.target} at {', '.join(lacking)}: nothing was done. Create it there, or "
                "choose another target."
            )
        counts = [(node, found[node.place.at]) for node in nodes]
        return [(node, count if isinstance(count, int) else None) for node, count in counts]

    # -- sending --------------------------------------------------------------------------------
    async def send_form(self, request: web.Request) -> web.StreamResponse:
        """Shows the form of a message."""
        self.desk.check_writable()
        is_address = request.query.get("kind") == ADDRESS
        name = one(request.query, "name")
        kind = ADDRESSES if is_address else QUEUES
        parts, problems = await rows_named(operator_of(request), kind, name)
        if not parts:
            raise NotFound(f"no node has {'an address' if is_address else 'a queue'} {name} (now)")
        return self.desk.page(
            request,
            "send.html",
            name=name,
            is_address=is_address,
            nodes=[node for node, _ in parts],
            chosen=request.query.get("node", ""),
            problems=problems,
            sent_max=SENT_MAX,
        )

    async def send(self, request: web.Request) -> web.StreamResponse:
        """Sends a message, or several like it, to one node."""
        self.desk.check_writable()
        fields = await request.post()
        texts = {name: value for name, value in fields.items() if isinstance(value, str)}
        action = SEND_TO_ADDRESS if texts.get("kind") == ADDRESS else SEND
        name, node_id = one(texts, "name"), one(texts, "node")
        if not name or not node_id:
            raise FormRefused("A message is sent to a queue or address of one node: name both.")
        order = Order(action, name=name, message=_message_of(texts))
        nodes = await self._nodes(operator_of(request), order, node_id)
        return await self._started(request, order, nodes, _back_of(order, node_id))

    # -- common ---------------------------------------------------------------------------------
    async def _started(
        self, request: web.Request, order: Order, nodes: Sequence[ClusterNode], back: str
    ) -> web.StreamResponse:
        operator = operator_of(request)
        job = job_of(order, nodes, operator.browser.credentials, self.desk.links.to(back))
        return await started(
            self.desk, request, job, order.action.name, order.name, nodes, target=order.target, selector=order.selector
        )

    async def _nodes(self, operator: OperatorSession, order: Order, node_id: str) -> list[ClusterNode]:
        """Returns the nodes that an order is for: the one that was chosen, or all that have the queue or address."""
        if order.action.subject in (MESSAGE, CLIENT):
            if not node_id:
                raise FormRefused("This is done at one node: name it.")
            return [await operator.cluster.node(node_id)]
        kind = ADDRESSES if order.action.subject == ADDRESS else QUEUES
        parts, _ = await rows_named(operator, kind, order.name)
        nodes = [node for node, _ in parts if not node_id or node_id in (node.id, node.place.at)]
        if not nodes:
            raise NotFound(f"no node has {order.action.subject} {order.name} (now)")
        return nodes


def _action_of(given: Mapping[str, str]) -> Action:
    action = ACTIONS.get(given.get("do", ""))
    if action is None or action in (SEND, SEND_TO_ADDRESS):
        raise NotFound("there is no such action")
    return action


def _order_of(texts: dict[str, str], ids: list[str]) -> Order:
    """Returns the order of a form. FormRefused names the field that is missing or wrong."""
    action = _action_of(texts)
    count = one(texts, "count").strip()
    if count and (not all_digits(count, 10) or int(count) == 0):
        raise FormRefused(f"{count[:20]} is not a number of messages.")
    if action.subject == MESSAGE and (not ids or len(ids) > IDS_MAX):
        raise FormRefused(f"Choose messages first, at most {IDS_MAX:,}.")
    if not all(all_digits(each, 19) for each in ids):
        raise FormRefused("These are no ids of messages.")
    order = Order(
        action,
        name=one(texts, "name"),
        target=one(texts, "target").strip() if TARGET in action.asks else "",
        selector=one(texts, "selector").strip() if SELECTOR in action.asks else "",
        count=int(count) if count and COUNT in action.asks else -1,
        persist=PERSIST in action.asks and texts.get("persist") == "yes",
        message_ids=tuple(int(each) for each in ids) if action.subject == MESSAGE else (),
        connection=one(texts, "connection"),
        session=one(texts, "session"),
        consumer=one(texts, "consumer"),
    )
    if TARGET in action.asks and not order.target and texts.get("confirmed") == "yes":
        raise FormRefused("Name the queue that the messages go to.")
    if TARGET in action.asks and order.target == order.name and order.name:
        raise FormRefused("The target is the queue itself: name another one.")
    if action.subject != CLIENT and not order.name:
        raise FormRefused("The form names no queue or address.")
    return order


def _message_of(texts: dict[str, str]) -> SentMessage:
    """Returns the message of a form. Properties are lines `name=value`."""
    properties: dict[str, str] = {}
    for line in one(texts, "properties").splitlines():
        name, mark, value = line.partition("=")
        if not line.strip():
            continue
        if not mark or not name.strip():
            raise FormRefused(f"A property is written as name=value: {line[:60]}")
        properties[name.strip()] = value
    if len(properties) > PROPERTIES_MAX:
        raise FormRefused(f"A message has at most {PROPERTIES_MAX} properties here.")
    count = one(texts, "count").strip() or "1"
    if not all_digits(count, 6) or not 1 <= int(count) <= SENT_MAX:
        raise FormRefused(f"Send one message, or up to {SENT_MAX:,}.")
    return SentMessage(
        body=one(texts, "body", BODY_MAX).replace("\r\n", "\n"),
        is_text=texts.get("form") != "base64",
        durable=texts.get("durable") == "yes",
        properties=properties,
        count=int(count),
    )


def _back_of(order: Order, node_id: str) -> str:
    """Returns the page that an order came from."""
    if order.action.subject == CLIENT:
        return "/consumers" if order.consumer else "/sessions" if order.session else "/connections"
    given = {"name": order.name, "node": node_id}
    page = "/address" if order.action.subject == ADDRESS else "/queue"
    return f"{page}?{urlencode({name: value for name, value in given.items() if value})}"
