"""Changes of an element: a form, a page that says what would happen at each node, and the job that does it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from atalanta.console.configuration.change_answer import ChangeAnswer
from atalanta.console.configuration.change_job import (
    ChangeJob,
    ChangeOrder,
    ChangeReturn,
    change_job,
    preview,
    switch_job,
    undo_job,
)
from atalanta.console.configuration.comparison import ElementRow, compared, parameters_of
from atalanta.console.configuration.element_actions import (
    LABELS,
    SWITCHES,
    ElementAction,
    action_of,
    actions_of,
)
from atalanta.console.configuration.element_form import (
    FormIncomplete,
    again,
    as_posted,
    change_of,
    digests_of,
    fields_of,
    plain,
)
from atalanta.console.configuration.element_kinds import ADD, PageKind
from atalanta.console.configuration.node_configuration import (
    HIDDEN,
    NodeConfiguration,
    NodeElement,
)
from atalanta.console.desk import ConsoleDesk, FormRefused, form_of, one, operator_of
from atalanta.console.nodes.cluster import NodeAnswers
from atalanta.console.nodes.failures import NotFound
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.pages.elements import kind_named, of_node
from atalanta.console.pages.jobs import started

FIELDS_MAX: Final = 2_000

log = logging.getLogger("atalanta.console")


class ElementSubject:
    """The subject of a form: an action, a kind, a name, and the nodes where the action is possible."""

    def __init__(
        self, kind: PageKind, action: ElementAction, row: ElementRow, answers: NodeAnswers[NodeConfiguration]
    ) -> None:
        self.kind = kind
        self.action = action
        self.row = row
        self.answers = answers
        able = [*action.nodes, *action.unpermitted]
        self.parameters = parameters_of(kind, [part for part in answers.found if part[0] in able])

    def nodes(self, node_id: str) -> list[ClusterNode]:
        """Returns the nodes that were chosen, those that will refuse it too. Raises NotFound, or FormRefused with the
        reason of a node."""
        for able in (self.action.nodes, self.action.unpermitted):
            found = [node for node in able if not node_id or node_id in (node.id, node.place.at)]
            if found:
                return found
        for node, why in self.action.refusals:
            if not node_id or node_id in (node.id, node.place.at):
                raise FormRefused(f"{node.label}: {why} Nothing was done.")
        raise NotFound(f"there is no node where this is possible (now): {self.kind.noun} {self.row.name}")

    def models(self) -> list[tuple[ClusterNode, NodeElement]]:
        """Returns the element where its values are taken from: what is changed, else where most is told of it."""
        able = [part for part in self.row.parts if part[0] in (*self.action.nodes, *self.action.unpermitted)]
        return able or sorted(self.row.parts, key=lambda part: not part[0].ours)

    def digests(self) -> dict[str, str]:
        """Returns the digests of the files now, by the place of the node."""
        return {node.place.at: each.digest for node, each in self.answers.found if each.digest}


class ElementChangePages:
    """The pages that change the configuration."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/element/form", self.form),
            web.post("/element/change", self.change),
            web.post("/element/undo", self.undo),
        ]

    async def form(self, request: web.Request) -> web.StreamResponse:
        """Shows the form of an action."""
        self.desk.check_writable()
        return await self._form(request, request.query, {})

    async def change(self, request: web.Request) -> web.StreamResponse:
        """Carries a change out when it is confirmed, else shows what it would do, or the form again."""
        self.desk.check_writable()
        given = await form_of(request)
        if len(given) > FIELDS_MAX:
            raise FormRefused(f"A form has at most {FIELDS_MAX} fields.")
        if given.get("step") == "form":
            return await self._form(request, given, given)
        subject = await self._subject(request, given)
        nodes = subject.nodes(one(given, "node"))
        action, kind, name = subject.action.name, subject.kind, subject.row.name
        back = self.desk.links.to(self._back(kind, name))
        if action in SWITCHES:
            if given.get("step") != "confirmed":
                return await self._form(request, given, {})
            job = switch_job(action, kind.name, name, nodes, back)
            return await started(self.desk, request, job, job.title, name, nodes)
        try:
            change = change_of(action, kind, name, subject.parameters, given)
        except FormIncomplete as error:
            return await self._form(request, given, given, str(error))
        order = ChangeOrder(change, digests_of(given), operator_of(request).browser.peer)
        if given.get("step") != "confirmed":
            return await self._preview(request, subject, order, nodes, given)
        job = change_job(order, nodes, back)
        return await started(self.desk, request, job, job.title, "", nodes)

    async def undo(self, request: web.Request) -> web.StreamResponse:
        """Takes the change of a job back at the nodes that have it."""
        self.desk.check_writable()
        operator = operator_of(request)
        job = operator.jobs.find(one(await form_of(request), "id"))
        if not isinstance(job, ChangeJob) or not job.is_over or not job.returning:
            raise NotFound("this session has no such change, or it was taken back already")
        returns = [
            ChangeReturn(step.at, step.recorded, step.answer.digest, step)
            for step in job.returning
            if step.recorded is not None and step.answer is not None
        ]
        made = undo_job(f"Take back: {job.title}", returns, operator.browser.peer, job.back)
        return await started(self.desk, request, made, made.title, "", [each.node for each in returns])

    # -- parts ----------------------------------------------------------------------------------
    async def _form(
        self, request: web.Request, given: Mapping[str, str], earlier: Mapping[str, str], incomplete: str = ""
    ) -> web.StreamResponse:
        """Shows a form with what is there now, and what the operator has changed in an earlier one."""
        subject = await self._subject(request, given)
        nodes = subject.nodes("")
        chosen = one(given, "node")
        like = one(given, "like") or chosen
        parts = subject.models()
        shown = [part for part in parts if like in (part[0].id, part[0].place.at)] or parts
        element = shown[0][1] if shown else None
        fields = fields_of(subject.parameters, element, subject.action.name)
        if earlier:
            fields = as_posted(fields, earlier) if incomplete else again(fields, earlier)
        return self.desk.page(
            request,
            "element_form.html",
            subject=subject,
            kind=subject.kind,
            action=subject.action,
            row=subject.row,
            fields=fields,
            shown=shown[0] if shown else None,
            hidden=[] if element is None else [name for name, value in element.values.items() if value == HIDDEN],
            nodes=nodes,
            chosen=chosen,
            like=like,
            # The digests are those of the values that are shown, unless the form only lacks something.
            digests=digests_of(earlier) if incomplete else subject.digests(),
            incomplete=incomplete,
            switches=subject.action.name in SWITCHES,
            back=self._back(subject.kind, subject.row.name if subject.row.parts else ""),
        )

    async def _preview(
        self,
        request: web.Request,
        subject: ElementSubject,
        order: ChangeOrder,
        nodes: Sequence[ClusterNode],
        given: Mapping[str, str],
    ) -> web.StreamResponse:
        """Shows what a change would do at each node."""
        answers = await asyncio.gather(*(preview(node, order) for node in nodes))
        shown: list[tuple[ClusterNode, ChangeAnswer]] = list(zip(nodes, answers, strict=True))
        kept = {name: plain(value) for name, value in given.items() if name not in ("form_token", "step")}
        return self.desk.page(
            request,
            "element_preview.html",
            kind=subject.kind,
            order=order,
            label=LABELS[order.change.action],
            answers=shown,
            possible=all(answer.is_possible for answer in answers),
            kept=kept,
            fixed=[
                (node.label, part.fixed) for node in nodes if (part := of_node(subject.row, node)) and part.fixed
            ],
            back=self._back(subject.kind, subject.row.name if subject.row.parts else ""),
        )

    async def _subject(self, request: web.Request, given: Mapping[str, str]) -> ElementSubject:
        """Returns what a form is about, with what the nodes tell now."""
        kind, name = kind_named(one(given, "kind")), one(given, "name").strip()
        wanted = one(given, "do")
        if wanted not in LABELS or (wanted in SWITCHES and not kind.resource):
            raise NotFound("there is no such action")
        operator = operator_of(request)
        answers = await operator.configurations.all([kind.name], fresh=True)
        refusal = answers.only_refusal()
        if refusal is not None:
            raise refusal
        row = next((row for row in compared(kind, answers.found) if row.name == name), None)
        if row is None and wanted != ADD:
            raise NotFound(f"no node has a {kind.noun} {name} (now)") if not answers.problems else (
                answers.problems[0].error
            )
        if row is None:
            return ElementSubject(kind, action_of(ADD, kind, answers.found), ElementRow(name), answers)
        if wanted == ADD and not row.missing:
            raise FormRefused(f"Every node has a {kind.noun} {name}: change it, or choose another name.")
        actions = await actions_of(row, kind, answers.found, operator.permissions)
        action = next((each for each in actions if each.name == wanted), ElementAction(wanted))
        return ElementSubject(kind, action, row, answers)

    def _back(self, kind: PageKind, name: str) -> str:
        if not name:
            return f"/configuration/{kind.name}"
        return f"/element?{urlencode({'kind': kind.name, 'name': name})}"
