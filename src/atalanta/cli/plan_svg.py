"""A plan as a drawing: nodes on a circle, an arrow for each link, red where something is one-way or alone."""

from __future__ import annotations

import math
from xml.sax.saxutils import escape

from atalanta.sim.plan import Link, Plan

WIDTH = 900
NODE_WIDTH = 150
NODE_HEIGHT = 46
GAP = 9  # between the two arrows of a pair
INK, LINE, ALERT, PAPER = "#1f2933", "#3e7cb1", "#c0392b", "#ffffff"


def svg_text(plan: Plan) -> str:
    """A whole SVG document."""
    count = len(plan.nodes)
    radius = max(170.0, NODE_WIDTH * count / 4.2)
    size = int(2 * radius + 2 * NODE_WIDTH)
    middle = size / 2
    places = {
        label: (
            middle + radius * math.sin(2 * math.pi * index / max(count, 1)),
            middle - radius * math.cos(2 * math.pi * index / max(count, 1)),
        )
        for index, label in enumerate(plan.nodes)
    }
    alone = {island[0] for island in plan.islands() if len(island) == 1} if count > 1 else set()
    one_way = plan.one_way()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{WIDTH}"'
        ' font-family="sans-serif" font-size="13">',
        f'<rect width="{size}" height="{size}" fill="{PAPER}"/>',
        _marker("arrow", LINE),
        _marker("alert", ALERT),
    ]
    for link in plan.links:
        if link.source in places and link.target in places:
            parts.append(_arrow(link, places, link in one_way))
    for label, place in places.items():
        parts.append(_box(label, place, label in alone, label in plan.critical()))
    parts.append("</svg>\n")
    return "\n".join(parts)


def _marker(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8"'
        f' orient="auto"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
    )


def _arrow(link: Link, places: dict[str, tuple[float, float]], one_way: bool) -> str:
    """From the edge of one box to the edge of the other, a little beside the arrow back."""
    (x1, y1), (x2, y2) = places[link.source], places[link.target]
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    sx, sy = -dy * GAP, dx * GAP
    start, end = _edge(dx, dy), _edge(-dx, -dy)
    line = (
        f'x1="{x1 + sx + dx * start:.1f}" y1="{y1 + sy + dy * start:.1f}"'
        f' x2="{x2 + sx - dx * end:.1f}" y2="{y2 + sy - dy * end:.1f}"'
    )
    colour, marker = (ALERT, "alert") if one_way else (LINE, "arrow")
    label_x, label_y = x1 + sx * 2.2 + dx * length * 0.42, y1 + sy * 2.2 + dy * length * 0.42
    told = escape(f"{link.connection}: {link.found}")
    return (
        f'<line {line} stroke="{colour}" stroke-width="1.6" marker-end="url(#{marker})"><title>{told}</title></line>'
        f'<text x="{label_x:.1f}" y="{label_y:.1f}" fill="{colour}" font-size="10" text-anchor="middle">{told}</text>'
    )


def _edge(dx: float, dy: float) -> float:
    """How far the edge of a box is from its middle in that direction."""
    across = NODE_WIDTH / 2 / abs(dx) if dx else math.inf
    along = NODE_HEIGHT / 2 / abs(dy) if dy else math.inf
    return min(across, along) + 3


def _box(label: str, place: tuple[float, float], alone: bool, critical: bool) -> str:
    x, y = place
    colour = ALERT if alone or critical else INK
    note = "alone" if alone else "the others need it" if critical else ""
    second = (
        f'<text x="{x:.1f}" y="{y + 15:.1f}" text-anchor="middle" font-size="10" fill="{colour}">{note}</text>'
        if note
        else ""
    )
    return (
        f'<rect x="{x - NODE_WIDTH / 2:.1f}" y="{y - NODE_HEIGHT / 2:.1f}" width="{NODE_WIDTH}" height="{NODE_HEIGHT}"'
        f' rx="7" fill="{PAPER}" stroke="{colour}" stroke-width="1.8"/>'
        f'<text x="{x:.1f}" y="{y + (0 if note else 5):.1f}" text-anchor="middle" fill="{INK}">'
        f"{escape(label)}</text>{second}"
    )
