"""The picture of a live cluster: nodes on a circle, an arrow for each direction, as thick as its flow."""

from __future__ import annotations

import math
from html import escape
from typing import Final

from atalanta.cli.plain import plain
from atalanta.cli.topology_flow import Flow, FlowLink, FlowNode, rate

BOX: Final = (230, 92)
MARGIN: Final = 40
GAP: Final = 9.0  # between the two arrows of a pair
BAR: Final = 202
WIDEST: Final = 8.0

HEAD: Final = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}"
 width="{width:.0f}" height="{height:.0f}" font-family="system-ui, sans-serif" font-size="12">
<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>
"""


def svg_of(flow: Flow) -> str:
    """A whole SVG document."""
    count = max(1, len(flow.nodes))
    radius = 0.0 if count == 1 else max(190.0, count * 62.0)
    places: dict[str, tuple[float, float]] = {}
    for index, node in enumerate(flow.nodes):
        angle = 2 * math.pi * index / count - math.pi / (2 if count != 2 else 1)
        # Wider than high, as boxes and screens are.
        places[node.node_id] = (1.3 * radius * math.cos(angle), radius * math.sin(angle))
    most_flow = max((link.per_second or 0.0 for link in flow.links), default=0.0)
    most_messages = max((node.messages for node in flow.nodes), default=0)
    parts = [_head(list(places.values()) or [(0.0, 0.0)])]
    for link in flow.links:
        parts.append(_arrow(link, places[link.source], places[link.target], most_flow))
    for node in flow.nodes:
        parts.append(_box(node, places[node.node_id], most_messages))
    parts.append("</svg>\n")
    return "".join(parts)


def _head(places: list[tuple[float, float]]) -> str:
    left = min(x for x, _ in places) - BOX[0] / 2 - MARGIN
    right = max(x for x, _ in places) + BOX[0] / 2 + MARGIN
    top = min(y for _, y in places) - BOX[1] / 2 - MARGIN
    bottom = max(y for _, y in places) + BOX[1] / 2 + MARGIN
    return HEAD.format(left=left, top=top, width=right - left, height=bottom - top)


def _arrow(
    link: FlowLink, start: tuple[float, float], end: tuple[float, float], most: float
) -> str:
    """Beside the line between the centres, from edge to edge; what flows and what waits stands beside it."""
    length = math.dist(start, end) or 1.0
    along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
    side = (-along[1], along[0])
    colour, dash = ("#1a7f5a" if link.per_second else "#8a94a0"), ""
    thick = 1.5
    if link.per_second and most > 0:
        thick += (WIDEST - 1.5) * math.log1p(link.per_second) / math.log1p(most)
    if not link.linked:
        colour, dash = "#c0392b", ' stroke-dasharray="6 5"'
    offset = (side[0] * GAP, side[1] * GAP)
    x1, y1 = _edge(start, along, offset)
    x2, y2 = _edge(end, (-along[0], -along[1]), offset)
    head = 9 + thick
    x3, y3 = x2 - along[0] * head, y2 - along[1] * head
    wing = 4 + thick * 0.8
    corners = (
        f"{x2:.1f},{y2:.1f} {x3 + side[0] * wing:.1f},{y3 + side[1] * wing:.1f}"
        f" {x3 - side[0] * wing:.1f},{y3 - side[1] * wing:.1f}"
    )
    drawn = (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x3:.1f}" y2="{y3:.1f}" stroke="{colour}"'
        f' stroke-width="{thick:.1f}"{dash}/>\n<polygon points="{corners}" fill="{colour}"/>\n'
    )
    told = rate(link.per_second) if link.per_second else ""
    if link.waiting:
        told += f"{' · ' if told else ''}{link.waiting:,} {'wait' if link.linked else 'parked'}"
    if not told:
        return drawn
    # Nearer to its source: the two directions of a pair, and crossing links, keep apart.
    beside = (13 if abs(side[1]) > 0.7 else 8) + thick / 2
    x = x1 + (x2 - x1) * 0.4 + side[0] * beside
    y = y1 + (y2 - y1) * 0.4 + side[1] * beside
    anchor = "middle" if abs(side[0]) < 0.3 else "end" if side[0] < 0 else "start"
    return drawn + (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="middle" fill="{colour}"'
        f' stroke="#ffffff" stroke-width="4" paint-order="stroke">{escape(told)}</text>\n'
    )


def _edge(
    centre: tuple[float, float], along: tuple[float, float], offset: tuple[float, float]
) -> tuple[float, float]:
    """Where a ray that starts `offset` from the middle of a box leaves it, and a little further."""
    reach = math.inf
    for axis in (0, 1):
        if along[axis]:
            half = BOX[axis] / 2
            room = half - offset[axis] if along[axis] > 0 else half + offset[axis]
            reach = min(reach, room / abs(along[axis]))
    reach += 3
    return centre[0] + offset[0] + along[0] * reach, centre[1] + offset[1] + along[1] * reach


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
        lines.append(_text(left + 14, top + 54, told, 'font-size="11" fill="#1d2b38"'))
        flows = [text for text in (rate(node.in_per_second), rate(node.out_per_second)) if text]
        if len(flows) == 2:
            told = f"{flows[0]} in · {flows[1]} out"
            lines.append(_text(left + 14, top + 69, told, 'font-size="11" fill="#1d2b38"'))
        long = BAR * node.messages / most if most else 0.0
        lines.append(
            f'<rect x="{left + 14:.1f}" y="{top + 77:.1f}" width="{BAR}" height="7" rx="3" fill="#dfe6ec"/>\n'
            f'<rect x="{left + 14:.1f}" y="{top + 77:.1f}" width="{long:.1f}" height="7" rx="3" fill="#d08b2c"/>\n'
        )
    return "".join(lines)


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(plain(text))}</text>\n'
