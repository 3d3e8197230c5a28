"""The drawing of a live cluster in a terminal: a table of nodes, and lines for what lies between them."""

from __future__ import annotations

import time
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from atalanta.cli.output.escape import plain
from atalanta.cli.output.tables import FILE_COLUMNS
from atalanta.survey.flow import Flow, FlowBridge, FlowLink, FlowNode, rate
from atalanta.survey.model.groups import PassiveView
from atalanta.survey.texts import duration_text, messages

BAR: Final = 12
WIDE: Final = 100  # columns of a terminal wide enough for bars
PAIRS_MAX: Final = 10  # more pairs are summed up
NUMBERS: Final = ("queues", "messages", "consumers", "in", "out")


def drawn(flow: Flow, width: int = FILE_COLUMNS) -> RenderableType:
    """Draws a summary line, a table of nodes, a line for each pair of them, for the passive members of a node and for
    each bridge, and the reasons of missing answers."""
    reasons = [Text(plain(f"  {node.label}: {node.why}"), "red") for node in flow.nodes if node.why]
    lines = [*pair_lines(flow), *passive_lines(flow), *bridge_lines(flow)]
    return Group(Text(summary(flow), "bold"), node_table(flow, width), *lines, *reasons)


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


def passive_lines(flow: Flow) -> list[Text]:
    """Draws `  north   north-b waits`: the members that would serve for a node."""
    width = max((len(node.label) for node in flow.nodes if node.passive), default=0)
    lines = []
    for node in flow.nodes:
        if node.passive:
            line = Text(plain(f"  {node.label:>{width}} "), "bold")
            for at, each in enumerate(node.passive):
                line.append(plain(f"{', ' if at else '⇠ '}{each.name} {passive_word(each)}"), passive_style(each))
            lines.append(line)
    return lines


def passive_word(passive: PassiveView) -> str:
    """Returns the state of a passive member in a word or two."""
    if passive.connected is False:
        return "is away"
    if passive.in_sync is None:
        return "waits" if passive.connected else "is announced"
    return "is in sync" if passive.in_sync else f"is {passive.behind or 0:,} records behind"


def passive_style(passive: PassiveView) -> str:
    if passive.connected is False:
        return "red"
    return "yellow" if passive.in_sync is False else ""


def bridge_lines(flow: Flow) -> list[Text]:
    """Draws `  north ════▶ 53/s   bridge out to dc2:61616`: what leads out of the cluster, and core bridges inside."""
    labels = {node.node_id: node.label for node in flow.nodes}
    width = max((len(labels.get(each.source, "")) for each in flow.bridges), default=0)
    return [_bridge_line(flow, each, labels.get(each.source, ""), width) for each in flow.bridges]


def _bridge_line(flow: Flow, bridge: FlowBridge, source: str, width: int) -> Text:
    works = bridge.started and bridge.linked is not False
    style, stroke = ("green", "═") if works and bridge.per_second else ("", "─") if works else ("red", "╳")
    target = flow.place(bridge.target)
    line = Text(plain(f"  {source:>{width}} "), "bold")
    line.append(f"{stroke * 4}▶ {rate(bridge.per_second):>8}   ", style)
    line.append(plain(f"{bridge.kind} {bridge.name} to "))
    line.append(plain("?" if target is None else target.label), "bold")
    if target is not None and target.label != target.at:
        line.append(plain(f" ({target.at})"))
    if bridge.duplex:
        line.append(f", {rate(bridge.back_per_second) or 'and'} back")
    problem = bridge_problem(bridge)
    if problem:
        line.append(plain(f"   {problem}"), "yellow" if works else "red")
    return line


def bridge_problem(bridge: FlowBridge) -> str:
    """Describes what keeps a bridge from forwarding; "" if nothing does."""
    parts = []
    if not bridge.started:
        parts.append("is stopped")
    elif bridge.linked is False:
        parts.append("has no connection")
    if bridge.why:
        parts.append(bridge.why)
    if bridge.waiting:
        parts.append(f"{messages(bridge.waiting)} wait in {bridge.queue}")
    return "; ".join(parts)


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
