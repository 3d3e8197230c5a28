"""Creation and deletion of queues and addresses: forms that say what there is, and the job that does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from aiohttp import web

from atalanta.client import ManagementFailed
from atalanta.console.desk import ConsoleDesk, FormRefused, form_of, one, operator_of
from atalanta.console.nodes.actions import ADDRESS, QUEUE
from atalanta.console.nodes.destinations import (
    ANYCAST,
    MULTICAST,
    Deletion,
    DestinationUse,
    NewDestination,
    check_use,
    creation_job,
    deletion_job,
    use_of,
)
from atalanta.console.nodes.failures import InUse, NotFound, is_missing
from atalanta.console.nodes.list_kinds import ADDRESSES, QUEUES
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.operator import OperatorSession
from atalanta.console.pages.jobs import started
from atalanta.console.pages.queues import rows_named
from atalanta.message.encoding.digits import all_digits

NAME_MAX: Final = 4_000
CONSUMERS_MAX: Final = 1_000_000
ROUTINGS: Final = (ANYCAST, MULTICAST)


class CreationPages:
    """The forms that create a queue or an address, and delete one."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/create", self.create_form),
            web.post("/create", self.create),
            web.get("/delete", self.delete_form),
            web.post("/delete", self.delete),
        ]

    # -- creation -------------------------------------------------------------------------------
    async def create_form(self, request: web.Request) -> web.StreamResponse:
        """Shows the form of a new queue or address."""
        self.desk.check_writable()
        return self.desk.page(
            request,
            "create.html",
            kind=_kind_of(request.query),
            address=one(request.query, "address", NAME_MAX),
            nodes=await operator_of(request).cluster.nodes(),
        )

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Creates it at one node, or at all of them, one after the other."""
        self.desk.check_writable()
        fields = await form_of(request)
        new = new_destination(fields)
        operator = operator_of(request)
        node_id = fields.get("node", "")
        nodes = [await operator.cluster.node(node_id)] if node_id else await operator.cluster.nodes()
        job = creation_job(new, nodes, self.desk.links.to(f"/{new.kind}", name=new.name))
        return await started(self.desk, request, job, f"create-{new.kind}", new.name, nodes, target=new.address)

    # -- deletion -------------------------------------------------------------------------------
    async def delete_form(self, request: web.Request) -> web.StreamResponse:
        """Shows what the queue or address holds at each node, and asks for what would be lost."""
        self.desk.check_writable()
        return await self._asked(request, _kind_of(request.query), one(request.query, "name", NAME_MAX))

    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Deletes it, if the form agrees to what is lost with it."""
        self.desk.check_writable()
        fields = await form_of(request)
        deletion = Deletion(
            _kind_of(fields),
            one(fields, "name", NAME_MAX),
            with_messages=fields.get("with_messages") == "yes",
            with_consumers=fields.get("with_consumers") == "yes",
            with_queues=fields.get("with_queues") == "yes",
        )
        node_id = fields.get("node", "")
        held = await _held(operator_of(request), deletion.kind, deletion.name)
        chosen = [(node, use) for node, use in held if not node_id or node_id in (node.id, node.place.at)]
        if not chosen:
            raise NotFound(f"no node has {deletion.kind} {deletion.name} (now)")
        try:
            for _, use in chosen:
                check_use(deletion, use)
        except InUse as error:
            why = f"Not deleted: {error}. Tick what you mean."
            return await self._asked(request, deletion.kind, deletion.name, why)
        nodes = [node for node, _ in chosen]
        back = "/addresses" if deletion.kind == ADDRESS else "/queues"
        job = deletion_job(deletion, nodes, self.desk.links.to(back))
        return await started(self.desk, request, job, f"delete-{deletion.kind}", deletion.name, nodes)

    async def _asked(self, request: web.Request, kind: str, name: str, why: str = "") -> web.StreamResponse:
        held = await _held(operator_of(request), kind, name)
        if not held:
            raise NotFound(f"no node has {kind} {name} (now)")
        sums = DestinationUse(
            sum(use.queues for _, use in held),
            sum(use.messages for _, use in held),
            sum(use.consumers for _, use in held),
        )
        return self.desk.answer(
            409 if why else 200, request, "delete.html", kind=kind, name=name, held=held, sums=sums, why=why,
        )  # fmt: skip


async def _held(
    operator: OperatorSession, kind: str, name: str
) -> Sequence[tuple[ClusterNode, DestinationUse]]:
    """Returns what it holds at each node that has it. Raises the error of a question that no node answers."""
    parts, problems = await rows_named(operator, ADDRESSES if kind == ADDRESS else QUEUES, name)
    if not parts and problems:
        raise problems[0].error
    found = []
    for node, _ in parts:
        try:
            found.append((node, await use_of(node, kind, name)))
        except ManagementFailed as error:
            if not is_missing(error):
                raise
    return found


def new_destination(fields: Mapping[str, str]) -> NewDestination:
    """Returns what a form describes. FormRefused names the field that is missing or wrong."""
    kind = _kind_of(fields)
    name = one(fields, "name", NAME_MAX).strip()
    if not name:
        raise FormRefused(f"Give the {kind} a name.")
    routing = tuple(each for each in ROUTINGS if fields.get(each.lower()) == "yes")
    if kind == QUEUE:
        routing = tuple(each for each in ROUTINGS if fields.get("routing") == each)
    if not routing:
        raise FormRefused("Choose anycast (each message to one consumer) or multicast (to every subscription).")
    most = one(fields, "max_consumers").strip()
    if most and (not all_digits(most, 7) or int(most) > CONSUMERS_MAX):
        raise FormRefused(f"{most[:20]} is not a number of consumers: leave it empty for any number.")
    if kind == ADDRESS:
        return NewDestination(kind, name, routing)
    return NewDestination(
        kind,
        name,
        routing,
        address=one(fields, "address", NAME_MAX).strip(),
        filter=one(fields, "filter").strip(),
        durable=fields.get("durable") == "yes",
        exclusive=fields.get("exclusive") == "yes",
        max_consumers=int(most) if most else -1,
    )


def _kind_of(given: Mapping[str, str]) -> str:
    kind = given.get("kind", "")
    if kind not in (QUEUE, ADDRESS):
        raise NotFound("a queue or an address is created and deleted here")
    return kind
