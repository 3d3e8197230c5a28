"""The picture of a live cluster: nodes on a circle, an arrow for each direction, as thick as its flow."""

from __future__ import annotations

import math
from html import escape
from typing import Final

from atalanta.cli.topology_flow import Flow, FlowLink, FlowNode, rate

BOX: Final = (210, 84)
MARGIN: Final = 40
GAP: Final = 9.0  # between the two arrows of a pair
BAR: Final = 180
WIDEST: Final = 8.0

HEAD: Final = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"
 height="{height}" font-family="system-ui, sans-serif" font-size="12">
<defs>
<marker id="flow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="12" markerHeight="12" markerUnits="userSpaceOnUse"
 orient="auto"><path d="M0 0L8 4L0 8z" fill="#1a7f5a"/></marker>
<marker id="still" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="12" markerHeight="12" markerUnits="userSpaceOnUse"
 orient="auto"><path d="M0 0L8 4L0 8z" fill="#8a94a0"/></marker>
<marker id="away" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="12" markerHeight="12" markerUnits="userSpaceOnUse"
 orient="auto"><path d="M0 0L8 4L0 8z" fill="#c0392b"/></marker>
</defs>
<rect width="100%" height="100%" fill="#ffffff"/>
"""


def svg_of(flow: Flow) -> str:
    """A whole SVG document."""
    count = max(1, len(flow.nodes))
    radius = 0.0 if count == 1 else max(190.0, count * 62.0)
    width = int(2 * radius + BOX[0] + 2 * MARGIN)
    height = int(2 * radius + BOX[1] + 2 * MARGIN)
    places: dict[str, tuple[float, float]] = {}
    for index, node in enumerate(flow.nodes):
        angle = 2 * math.pi * index / count - math.pi / 2
        places[node.node_id] = (
            width / 2 + radius * math.cos(angle),
            height / 2 + radius * math.sin(angle),
        )
    most_flow = max((link.per_second or 0.0 for link in flow.links), default=0.0)
    most_messages = max((node.messages for node in flow.nodes), default=0)
    parts = [HEAD.format(width=width, height=height)]
    for link in flow.links:
        parts.append(_arrow(link, places[link.source], places[link.target], most_flow))
    for node in flow.nodes:
        parts.append(_box(node, places[node.node_id], most_messages))
    parts.append("</svg>\n")
    return "".join(parts)


def _arrow(
    link: FlowLink, start: tuple[float, float], end: tuple[float, float], most: float
) -> str:
    """Beside the line between the centres, from edge to edge, with what flows and what waits at its middle."""
    length = math.dist(start, end) or 1.0
    along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
    side = (-along[1] * GAP, along[0] * GAP)
    x1, y1 = _edge(start, along)
    x2, y2 = _edge(end, (-along[0], -along[1]))
    x1, y1, x2, y2 = x1 + side[0], y1 + side[1], x2 + side[0], y2 + side[1]
    flows = bool(link.per_second)
    kind = "flow" if flows else "still"
    colour = "#1a7f5a" if flows else "#8a94a0"
    thick = 1.5
    if flows and most > 0:
        thick += (WIDEST - 1.5) * math.log1p(link.per_second or 0.0) / math.log1p(most)
    dash = ""
    if not link.linked:
        kind, colour, dash = "away", "#c0392b", ' stroke-dasharray="6 5"'
    line = (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{thick:.1f}"'
        f'{dash} marker-end="url(#{kind})"/>\n'
    )
    told = rate(link.per_second) if flows else ""
    if link.waiting:
        told += f"{' · ' if told else ''}{link.waiting:,} {'wait' if link.linked else 'parked'}"
    if not told:
        return line
    # A third of the way: the two directions of a pair, and crossing links, keep apart.
    x, y = x1 + (x2 - x1) * 0.36 + side[0], y1 + (y2 - y1) * 0.36 + side[1]
    return line + (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" dominant-baseline="middle" fill="{colour}"'
        f' stroke="#ffffff" stroke-width="4" paint-order="stroke">{escape(told)}</text>\n'
    )


def _edge(centre: tuple[float, float], along: tuple[float, float]) -> tuple[float, float]:
    """Where a ray from the middle of a box leaves it."""
    across = BOX[0] / 2 / abs(along[0]) if along[0] else math.inf
    down = BOX[1] / 2 / abs(along[1]) if along[1] else math.inf
    reach = min(across, down) + 3
    return centre[0] + along[0] * reach, centre[1] + along[1] * reach


def _box(node: FlowNode, centre: tuple[float, float], most: int) -> str:
    left, top = centre[0] - BOX[0] / 2, centre[1] - BOX[1] / 2
    fill, edge = ("#f4f7fa", "#41566b") if node.reached else ("#fdecea", "#c0392b")
    lines = [
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{BOX[0]}" height="{BOX[1]}" rx="8" fill="{fill}"'
        f' stroke="{edge}"/>\n',
        _text(left + 14, top + 20, node.label, 'font-size="14" font-weight="600" fill="#1d2b38"'),
    ]
    kind = f"{'atalanta' if node.atalanta else 'artemis'} {node.version}".strip()
    under = f"{node.at} · {kind}" if node.reached else "not reached"
    lines.append(_text(left + 14, top + 37, under, f'font-size="10" fill="{edge}"'))
    if node.reached:
        told = f"{node.messages:,} waiting · {node.consumers:,} consumers"
        flows = [text for text in (rate(node.in_per_second), rate(node.out_per_second)) if text]
        if len(flows) == 2:
            told += f" · {flows[0]} in, {flows[1]} out"
        lines.append(_text(left + 14, top + 55, told, 'font-size="10" fill="#1d2b38"'))
        long = BAR * node.messages / most if most else 0.0
        lines.append(
            f'<rect x="{left + 14:.1f}" y="{top + 65:.1f}" width="{BAR}" height="7" rx="3" fill="#dfe6ec"/>\n'
            f'<rect x="{left + 14:.1f}" y="{top + 65:.1f}" width="{long:.1f}" height="7" rx="3" fill="#d08b2c"/>\n'
        )
    return "".join(lines)


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>\n'
