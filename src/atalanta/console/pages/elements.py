"""The configuration of all nodes: elements by kind, one element, groups of high availability, files."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from aiohttp import web

from atalanta.client import ManagementFailed
from atalanta.client.management import BROKER
from atalanta.console.configuration.artemis_reach import REACH
from atalanta.console.configuration.comparison import (
    ElementRow,
    NodeConfigurations,
    compared,
    parameters_of,
    shown_columns,
)
from atalanta.console.configuration.element_actions import action_of, actions_of
from atalanta.console.configuration.element_kinds import (
    ADD,
    BY_NAME,
    CLUSTERING,
    DISCOVERY_GROUP,
    KINDS,
    OTHERS,
    PageKind,
)
from atalanta.console.configuration.node_configuration import (
    ElementParameter,
    NodeConfiguration,
    NodeElement,
    read_object,
    read_rows,
    rows_of,
    text_of,
)
from atalanta.console.desk import ConsoleDesk, one, operator_of
from atalanta.console.nodes.cluster import NodeAnswers
from atalanta.console.nodes.failures import NodeUnreachable, NotFound
from atalanta.console.nodes.node import ClusterNode
from atalanta.survey.flow import BRIDGE, NETWORK

UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
HEARD: Final = "listHeardNodes"
DOWNLOAD: Final = "downloadConfiguration"
FILTER_MAX: Final = 500
ROWS_MAX: Final = 500


class ElementPages:
    """The pages that show the configuration."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/configuration", self.overview),
            web.get("/configuration/ha-groups", self.groups),
            web.get("/configuration/file", self.file),
            web.get("/configuration/{kind}", self.kind),
            web.get("/element", self.element),
        ]

    # -- all kinds ------------------------------------------------------------------------------
    async def overview(self, request: web.Request) -> web.StreamResponse:
        """Shows how many elements of each kind there are, and the nodes' files."""
        answers = await self._configurations(request)
        kinds = [(kind, compared(kind, answers.found)) for kind in KINDS]
        return self.desk.page(
            request,
            "configuration.html",
            **self._tabs(""),
            kinds=kinds,
            configurations=answers.found,
            problems=answers.problems,
        )

    async def kind(self, request: web.Request) -> web.StreamResponse:
        """Shows the elements of a kind over all nodes."""
        kind = kind_named(request.match_info["kind"])
        operator = operator_of(request)
        answers = await self._configurations(request, kind)
        every = compared(kind, answers.found)
        text = one(request.query, "q", FILTER_MAX).strip()
        rows = [row for row in every if text.casefold() in row.name.casefold()]
        networks = []
        if kind.name == "network-connector":
            survey = await operator.survey.picture()
            networks = [] if survey is None else [each for each in survey.flow.bridges if each.kind == NETWORK]
        adding = action_of(ADD, kind, answers.found)
        return self.desk.page(
            request,
            "elements.html",
            **self._tabs(kind.name),
            kind=kind,
            rows=rows[:ROWS_MAX],
            cut=max(0, len(rows) - ROWS_MAX),
            total=len(every),
            text=text,
            columns=shown_columns(kind, rows[:ROWS_MAX]),
            configurations=answers.found,
            problems=answers.problems,
            notes=notes_of(kind, answers.found),
            adding=adding,
            may_add=bool(adding.nodes) and not self.desk.options.read_only,
            networks=networks,
        )

    # -- one element ----------------------------------------------------------------------------
    async def element(self, request: web.Request) -> web.StreamResponse:
        """Shows an element at each node, with every parameter of its kind."""
        kind = kind_named(one(request.query, "kind"))
        name = one(request.query, "name")
        operator = operator_of(request)
        answers = await self._configurations(request, kind)
        row = row_named(kind, name, answers)
        actions = await actions_of(row, kind, answers.found, operator.permissions)
        return self.desk.page(
            request,
            "element.html",
            **self._tabs(kind.name),
            kind=kind,
            row=row,
            parameters=shown_parameters(parameters_of(kind, answers.found), row),
            actions=actions,
            read_only=self.desk.options.read_only,
            problems=answers.problems,
            heard=await heard_nodes(row) if kind.name == DISCOVERY_GROUP else [],
            failures=await failure_reasons(row) if kind.name == BRIDGE else {},
        )

    # -- groups and files -----------------------------------------------------------------------
    async def groups(self, request: web.Request) -> web.StreamResponse:
        """Shows pairs and replicated groups as the survey sees them."""
        result = await operator_of(request).survey.picture()
        if result is None:
            response = self.desk.page(request, "asking.html", nodes=operator_of(request).cluster.known())
            response.headers["Refresh"] = "2"
            return response
        nodes = sorted(result.cluster.nodes, key=lambda node: (node.label, node.at))
        return self.desk.page(request, "ha_groups.html", **self._tabs("ha-groups"), nodes=nodes)

    async def file(self, request: web.Request) -> web.StreamResponse:
        """Sends the file of a node with the changes that count now: for the disk, never something that a browser
        shows."""
        node = await operator_of(request).cluster.node(one(request.query, "node"))
        told = read_object(await node.call(BROKER, DOWNLOAD), DOWNLOAD)
        files = {file_name(each): text_of(each, "text") for each in (told, *rows_of(told, "more"))}
        first = file_name(told)
        if len(files) > 1:
            first, body = f"{first}.zip", zipped(files)
        else:
            body = files[first].encode()
        name = f"{UNSAFE.sub('_', node.label)[:60]}-{first}"
        return web.Response(
            body=body,
            headers={
                "Content-Type": "application/octet-stream",
                "Content-Disposition": f'attachment; filename="{name}"',
                "Content-Security-Policy": "sandbox; default-src 'none'",
            },
        )

    # -- common ---------------------------------------------------------------------------------
    async def _configurations(
        self, request: web.Request, kind: PageKind | None = None
    ) -> NodeAnswers[NodeConfiguration]:
        """Returns the configurations of all nodes; the error of the first if none answers."""
        kinds = [each.name for each in KINDS] if kind is None else [kind.name]
        answers = await operator_of(request).configurations.all(kinds)
        refusal = answers.only_refusal()
        if refusal is not None:
            raise refusal
        return answers

    def _tabs(self, chosen: str) -> dict[str, object]:
        return {"clustering": CLUSTERING, "others": OTHERS, "chosen": chosen}


def kind_named(name: str) -> PageKind:
    """Returns a kind. Raises NotFound."""
    found = BY_NAME.get(name)
    if found is None:
        raise NotFound("there is no such kind of element")
    return found


def row_named(kind: PageKind, name: str, answers: NodeAnswers[NodeConfiguration]) -> ElementRow:
    """Returns an element over all nodes. Raises NotFound, or the error of a node that did not answer."""
    for row in compared(kind, answers.found):
        if row.name == name:
            return row
    if answers.problems:
        raise answers.problems[0].error
    raise NotFound(f"no node has a {kind.noun} {name} (now)")


def shown_parameters(described: list[ElementParameter], row: ElementRow) -> list[ElementParameter]:
    """Returns the parameters of a kind, with those that an element has and nobody describes."""
    known = {each.name for each in described}
    others = dict.fromkeys(name for _, part in row.parts for name in part.values if name not in known)
    return described + [ElementParameter(name, editable=False) for name in others]


def notes_of(kind: PageKind, configurations: NodeConfigurations) -> list[tuple[str, str]]:
    """Returns what the management of nodes does not tell, each with the label of the node."""
    found: list[tuple[str, str]] = []
    for node, configuration in configurations:
        if configuration.kept:
            continue
        untold = configuration.untold.get(kind.name)
        note = untold or (configuration.why if node.ours else REACH[kind.name].note)
        if note:
            found.append((node.label, note))
    return found


def file_name(told: Mapping[str, object]) -> str:
    """Returns the name of a node's file: without a folder, and without characters that mean something elsewhere."""
    return UNSAFE.sub("_", text_of(told, "file"))[:60].lstrip(".") or "configuration"


def zipped(files: Mapping[str, str]) -> bytes:
    """Returns an archive of the files: a broker.xml with its includes."""
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return found.getvalue()


async def failure_reasons(row: ElementRow) -> dict[str, str]:
    """Returns why a bridge does not forward, by the place of the node; an Artemis does not tell it."""
    found: dict[str, str] = {}
    for node, _ in row.parts:
        if node.ours:
            with suppress(ManagementFailed, NodeUnreachable):
                found[node.place.at] = str(await node.get(f"bridge.{row.name}", "FailureReason") or "")
    return found


async def heard_nodes(row: ElementRow) -> list[tuple[ClusterNode, dict[str, object]]]:
    """Returns what each node hears by a discovery group: node id, connector, address and times in ms."""
    found: list[tuple[ClusterNode, dict[str, object]]] = []
    for node, _ in row.parts:
        try:
            answer = await node.call(f"discoverygroup.{row.name}", HEARD)
        except (ManagementFailed, NodeUnreachable):
            continue  # a group that is not running, or not for this user
        found += [(node, each) for each in read_rows(answer, HEARD)]
    return found


def of_node(row: ElementRow, node: ClusterNode) -> NodeElement | None:
    """Returns the element at one node."""
    return next((part for each, part in row.parts if each.place.at == node.place.at), None)
