"""The picture of a live cluster: nodes on a circle, an arrow for each direction; its thickness shows the flow."""

from __future__ import annotations

import math
from typing import Final

from atalanta.cli.output.svg import ALERT, EDGE, INK, Box, Point, arrow_between, head, ring, text
from atalanta.survey.flow import Flow, FlowBridge, FlowLink, FlowNeighbour, FlowNode, rate
from atalanta.survey.texts import counted

BOX: Final = Box(230, 92)
BAR: Final = 202
WIDEST: Final = 8.0
OUTSIDE: Final = 420.0  # from the cluster to its neighbours
LABEL_MAX: Final = 24  # characters in a box


def svg_of(flow: Flow) -> str:
    """Returns a complete SVG document."""
    count = max(1, len(flow.nodes))
    radius = 0.0 if count == 1 else max(190.0, count * 62.0)
    middles = ring(len(flow.nodes), radius)
    centres = {node.node_id: middle for node, middle in zip(flow.nodes, middles, strict=True)}
    outside = column(len(flow.neighbours), max((x for x, _ in middles), default=0.0) + OUTSIDE)
    centres |= {each.neighbour_id: place for each, place in zip(flow.neighbours, outside, strict=True)}
    flows = [link.per_second or 0.0 for link in flow.links] + [each.per_second or 0.0 for each in flow.bridges]
    most_flow = max(flows, default=0.0)
    most_messages = max((node.messages for node in flow.nodes), default=0)
    parts = [head([*middles, *outside], BOX)]
    for link in flow.links:
        parts.append(_arrow(link, centres[link.source], centres[link.target], most_flow))
    for bridge in flow.bridges:
        parts.append(_bridge(bridge, centres[bridge.source], centres[bridge.target], most_flow))
    for neighbour in flow.neighbours:
        parts.append(_neighbour(neighbour, centres[neighbour.neighbour_id]))
    for node in flow.nodes:
        parts.append(_box(node, centres[node.node_id], most_messages))
    parts.append("</svg>\n")
    return "".join(parts)


def column(count: int, x: float) -> list[Point]:
    """Returns the centres of the neighbours' boxes, one below the other beside the cluster."""
    step = BOX.height + 40
    return [(x, (index - (count - 1) / 2) * step) for index in range(count)]


def fitting(label: str) -> str:
    """Shortens a label that would not fit into its box."""
    return label if len(label) <= LABEL_MAX else f"{label[: LABEL_MAX - 1]}…"


def _arrow(link: FlowLink, start: Point, end: Point, most: float) -> str:
    """Draws an arrow, as thick as its flow; flow and backlog are its label."""
    colour = "#1a7f5a" if link.per_second else "#8a94a0"
    thick = _thickness(link.per_second, most)
    arrow = arrow_between(start, end, BOX, colour if link.linked else ALERT, thick, not link.linked)
    label = rate(link.per_second) if link.per_second else ""
    if link.waiting:
        label += f"{' · ' if label else ''}{link.waiting:,} {'wait' if link.linked else 'parked'}"
    return arrow.drawn() + (arrow.labelled(label) if label else "")


def _thickness(per_second: float | None, most: float) -> float:
    if not per_second or most <= 0:
        return 1.5
    return 1.5 + (WIDEST - 1.5) * math.log1p(per_second) / math.log1p(most)


def _bridge(bridge: FlowBridge, start: Point, end: Point, most: float) -> str:
    """Draws the arrow of a core bridge or a network; a bridge from a node to itself has none."""
    if start == end:
        return ""
    works = bridge.started and bridge.linked is not False
    colour = "#2c5f8a" if works else ALERT
    thick = _thickness(bridge.per_second, most)
    words = [bridge.name, rate(bridge.per_second) if bridge.per_second else ""]
    if bridge.waiting:
        words.append(f"{bridge.waiting:,} wait")
    arrow = arrow_between(start, end, BOX, colour, thick, not works)
    drawn = arrow.drawn(bridge.why) + arrow.labelled(" · ".join(word for word in words if word))
    if bridge.duplex:
        drawn += arrow_between(end, start, BOX, colour, _thickness(bridge.back_per_second, most), not works).drawn()
    return drawn


def _neighbour(neighbour: FlowNeighbour, centre: Point) -> str:
    """Draws a broker that is no member, with a dashed edge."""
    left, top = centre[0] - BOX.width / 2, centre[1] - BOX.height / 2
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{BOX.width}" height="{BOX.height}" rx="8" fill="#ffffff"'
        f' stroke="{EDGE}" stroke-dasharray="4 3"/>\n'
        + text(left + 14, top + 20, fitting(neighbour.label), f'font-size="14" font-weight="600" fill="{INK}"')
        + text(left + 14, top + 37, neighbour.at, f'font-size="10" fill="{EDGE}"')
    )


def _box(node: FlowNode, centre: Point, most: int) -> str:
    left, top = centre[0] - BOX.width / 2, centre[1] - BOX.height / 2
    fill, edge = ("#f4f7fa", EDGE) if node.reached else ("#fdecea", ALERT)
    lines = [
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{BOX.width}" height="{BOX.height}" rx="8" fill="{fill}"'
        f' stroke="{edge}"/>\n',
        text(left + 14, top + 20, fitting(node.label), f'font-size="14" font-weight="600" fill="{INK}"'),
    ]
    kind = f"{'atalanta' if node.atalanta else 'artemis'} {node.version}".strip()
    under = f"{node.at} · {kind}" if node.reached else "not reached"
    lines.append(text(left + 14, top + 37, under, f'font-size="10" fill="{edge}"'))
    if node.reached:
        label = f"{node.messages:,} waiting · {node.consumers:,} consumers"
        if node.passive:
            away = sum(each.connected is False for each in node.passive)
            label += f" · {counted(len(node.passive), 'backup')}" + (f", {away} away" if away else "")
        lines.append(text(left + 14, top + 54, label, f'font-size="11" fill="{INK}"'))
        flows = [shown for shown in (rate(node.in_per_second), rate(node.out_per_second)) if shown]
        if len(flows) == 2:
            label = f"{flows[0]} in · {flows[1]} out"
            lines.append(text(left + 14, top + 69, label, f'font-size="11" fill="{INK}"'))
        long = BAR * node.messages / most if most else 0.0
        lines.append(
            f'<rect x="{left + 14:.1f}" y="{top + 77:.1f}" width="{BAR}" height="7" rx="3" fill="#dfe6ec"/>\n'
            f'<rect x="{left + 14:.1f}" y="{top + 77:.1f}" width="{long:.1f}" height="7" rx="3" fill="#d08b2c"/>\n'
        )
    return "".join(lines)
