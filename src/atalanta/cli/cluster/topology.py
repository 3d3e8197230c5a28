"""The command `atalanta topology`: surveys, draws in the terminal, writes the picture; once or repeatedly."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Final

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from atalanta.cli.cluster.svg import svg_of
from atalanta.cli.operator_login import operator_login
from atalanta.cli.output.escape import plain
from atalanta.cli.output.outcome import line_of, reported
from atalanta.cli.output.tables import FILE_COLUMNS
from atalanta.client import ClientError, run
from atalanta.survey.broker_login import BrokerLogin
from atalanta.survey.flow import Flow, FlowLink, FlowNode, flow_of, rate
from atalanta.survey.survey import Survey, url_of
from atalanta.survey.texts import duration_text, messages

PAUSE_S: Final = 1.0  # for --watch with --wait 0
BAR: Final = 12
WIDE: Final = 100  # columns of a terminal wide enough for bars
PAIRS_MAX: Final = 10  # more pairs are summed up
NUMBERS: Final = ("queues", "messages", "consumers", "in", "out")


class Surveys:
    """Repeated surveys. Nodes that were found are asked too, so that it continues when the named ones are down."""

    def __init__(
        self, nodes: list[str], target: BrokerLogin, wait: float, svg: Path | None, short: bool = True
    ) -> None:
        self.nodes = nodes
        self.short = short  # short names for people
        self.target = target
        self.wait = wait
        self.svg = svg
        self.found: list[str] = []
        self.known: dict[str, FlowNode] = {}  # the nodes that answered once, by node id

    def survey(self) -> Flow:
        """Surveys once. Raises the error of the first node if no node answers."""
        options = url_of(self.nodes[0])[1]
        more = [f"tcp://{at}?{options}" if options else at for at in self.found]
        survey = Survey(self.target, self.wait, details=False)
        cluster = run(survey.run(list(dict.fromkeys([*self.nodes, *more]))))
        if self.short:
            cluster.shorten()
        flow = flow_of(cluster)
        self.found = [node.at for node in flow.nodes if node.reached]
        self.remember(flow)
        if self.svg is not None:
            self.svg.write_text(svg_of(flow), encoding="utf-8")
        return flow

    def remember(self, flow: Flow) -> None:
        """Gives the nodes that did not answer their names of earlier surveys."""
        for node in flow.nodes:
            if node.reached:
                self.known[node.node_id] = node
            elif node.node_id in self.known:
                node.rename(self.known[node.node_id])

    def survey_again(self, before: Flow) -> tuple[Flow, str]:
        """Surveys after a pause. If no node answers, returns the last result with the reason."""
        if self.wait <= 0:
            time.sleep(PAUSE_S)
        try:
            return self.survey(), ""
        except (ClientError, OSError) as error:
            time.sleep(PAUSE_S)
            return before, line_of(error)


def run_topology(
    nodes: list[str],
    user: str | None,
    password: str | None,
    wait: float,
    watch: bool,
    svg: Path | None,
    json_output: bool,
) -> None:
    """Shows the topology. An error ends it at the first survey; --watch ignores later ones, until Ctrl-C."""
    with reported():
        surveys = Surveys(nodes, operator_login("", user, password), wait, svg, not json_output)
        flow = surveys.survey()
        if json_output:
            typer.echo(as_text(flow, not watch))
            while watch:
                flow, why = surveys.survey_again(flow)
                typer.echo(why if why else as_text(flow, False), err=bool(why))
            return
        console = Console(width=None if sys.stdout.isatty() else FILE_COLUMNS, highlight=False)
        if not watch or not console.is_terminal:
            console.print(drawn(flow, console.width))
            while watch:
                flow, why = surveys.survey_again(flow)
                console.print(Text(why) if why else drawn(flow, console.width))
            return
        with Live(drawn(flow, console.width), console=console, auto_refresh=False) as live:
            while True:
                flow, why = surveys.survey_again(flow)
                live.update(Group(drawn(flow, console.width), Text(why, "red")), refresh=True)


def as_text(flow: Flow, wide: bool) -> str:
    return json.dumps(flow.as_json(), indent=2 if wide else None, ensure_ascii=False)


def drawn(flow: Flow, width: int = FILE_COLUMNS) -> RenderableType:
    """Draws a summary line, a table of nodes, a line for each pair of them, and the reasons of missing answers."""
    reasons = [Text(plain(f"  {node.label}: {node.why}"), "red") for node in flow.nodes if node.why]
    return Group(Text(summary(flow), "bold"), node_table(flow, width), *pair_lines(flow), *reasons)


def summary(flow: Flow) -> str:
    count = len(flow.nodes)
    parts = [f"{count} node{'s' * (count != 1)}"]
    parts.append(f"{messages(sum(node.messages for node in flow.nodes))} wait")
    came = [node.in_per_second for node in flow.nodes if node.in_per_second is not None]
    left = [node.out_per_second for node in flow.nodes if node.out_per_second is not None]
    if came:
        parts.append(f"{rate(sum(came))} in, {rate(sum(left))} out")
    crossed = [link.per_second for link in flow.links if link.per_second is not None]
    if crossed:
        parts.append(f"{rate(sum(crossed))} between nodes")
    parked = sum(link.waiting for link in flow.links if not link.linked)
    if parked:
        parts.append(f"{messages(parked)} parked")
    kinds = versions(flow)
    if len(kinds) == 1:
        parts.append(plain(kinds[0]))
    return " · ".join(parts)


def versions(flow: Flow) -> list[str]:
    """Returns product and version of the nodes, without duplicates: `atalanta 0.1.0`."""
    return sorted({version(node) for node in flow.nodes if node.reached})


def version(node: FlowNode) -> str:
    return f"{'atalanta' if node.atalanta else 'artemis'} {node.version}".strip()


def node_table(flow: Flow, width: int) -> Table:
    """Draws the table of nodes, without bars on a narrow terminal."""
    bars, kinds = width >= WIDE, len(versions(flow)) > 1
    columns = ["node", "at", *["version"] * kinds, "queues", "messages", *[""] * bars, "consumers", "in", "out"]
    table = Table(*columns)
    for column in table.columns:
        column.overflow = "fold"
        if column.header in NUMBERS:
            column.justify = "right"
            column.no_wrap = True
    most = max((node.messages for node in flow.nodes), default=0)
    for node in flow.nodes:
        if not node.reached:
            cells = [Text(plain(node.label), "red"), Text(plain(node.at)), Text("not reached", "red")]
            table.add_row(*(cells if kinds else [*cells[:1], Text(f"{plain(node.at)} not reached", "red")]))
            continue
        bar = "█" * -(-node.messages * BAR // most) if most else ""
        table.add_row(
            Text(plain(node.label), "bold"),
            Text(plain(node.at)),
            *[Text(plain(version(node)))] * kinds,
            f"{node.queues:,}",
            f"{node.messages:,}",
            *[Text(bar, "cyan")] * bars,
            f"{node.consumers:,}",
            rate(node.in_per_second),
            rate(node.out_per_second),
        )
    return table


def pair_lines(flow: Flow) -> list[Text]:
    """Draws `a ═══▶ 53/s   2/s ◀─── b`: thick with flow, dashed for a lost member. With many pairs only those with
    flow, backlog or problems are drawn; the others are counted."""
    pairs = flow.pairs()
    shown = pairs
    if len(pairs) > PAIRS_MAX:
        shown = [pair for pair in pairs if not _quiet(flow, *pair)]
    width = max((len(first.label) for first, _ in shown), default=0)
    lines = [_pair_line(flow, first, second, width) for first, second in shown]
    if len(shown) < len(pairs):
        rest = len(pairs) - len(shown)
        who = "all" if not shown else "the other"
        lines.append(Text(f"  {who} {rest} pairs: linked both ways, nothing flows between them", "dim"))
    return lines


def _quiet(flow: Flow, first: FlowNode, second: FlowNode) -> bool:
    """Returns whether two nodes are linked both ways, without flow and backlog."""
    links = (
        flow.between(first.node_id, second.node_id),
        flow.between(second.node_id, first.node_id),
    )
    return all(
        link is not None and link.linked and not link.per_second and not link.waiting
        for link in links
    )


def _pair_line(flow: Flow, first: FlowNode, second: FlowNode, width: int) -> Text:
    there = flow.between(first.node_id, second.node_id)
    back = flow.between(second.node_id, first.node_id)
    line = Text(plain(f"  {first.label:>{width}} "), "bold")
    style, stroke = _stroke(there)
    line.append(f"{stroke * 4}{'▶' if there is not None else stroke} ", style)
    line.append(f"{rate(None if there is None else there.per_second):>8}", style)
    line.append("   ")
    style, stroke = _stroke(back)
    line.append(f"{rate(None if back is None else back.per_second):<8}", style)
    line.append(f" {'◀' if back is not None else stroke}{stroke * 4}", style)
    line.append(plain(f" {second.label}"), "bold")
    for link, source, target in ((there, first, second), (back, second, first)):
        if link is not None:
            line.append(
                plain(_problems(link, source, target)), "red" if not link.linked else "yellow"
            )
    return line


def _stroke(link: FlowLink | None) -> tuple[str, str]:
    if link is None:
        return "dim", "·"
    if not link.linked:
        return "red", "╳"
    return ("green", "═") if link.per_second else ("", "─")


def _problems(link: FlowLink, source: FlowNode, target: FlowNode) -> str:
    """Describes the problems of one direction; "" without problems."""
    text = ""
    if not link.linked:
        text = f"   {source.label}: {target.label} is away"
        if link.away_since_ms is not None:
            text += f" for {duration_text(max(0, int(time.time() * 1_000) - link.away_since_ms))}"
        if link.waiting:
            text += f", {messages(link.waiting)} parked"
        if link.may_have_arrived:
            text += f" ({link.may_have_arrived:,} may have arrived)"
    elif link.waiting:
        text = f"   {source.label}: {messages(link.waiting)} wait for {target.label}"
    return text
