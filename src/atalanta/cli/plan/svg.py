"""A plan as a picture: nodes on a ring, an arrow for each link, red where something is one-way, alone or critical."""

from __future__ import annotations

from typing import Final

from atalanta.cli.output.svg import (
    ALERT,
    EDGE,
    INK,
    PAPER,
    Box,
    Point,
    arrow_between,
    head,
    ring,
    text,
)
from atalanta.sim.files.plan import FROM_TOPOLOGY, Link, Plan

BOX: Final = Box(150, 46)
LINE: Final = "#2f6f9f"


def svg_of(plan: Plan) -> str:
    """A whole SVG document."""
    count = len(plan.nodes)
    radius = 0.0 if count == 1 else max(150.0, count * 48.0)
    places = dict(zip(plan.nodes, ring(count, radius), strict=True))
    alone = {island[0] for island in plan.islands() if len(island) == 1} if count > 1 else set()
    critical, one_way = plan.critical(), plan.one_way()
    arrows, labels, wordless = [], [], _wordless(plan)
    for link in plan.links:
        if link.source in places and link.target in places:
            colour = ALERT if link in one_way else LINE
            arrow = arrow_between(places[link.source], places[link.target], BOX, colour)
            arrows.append(
                arrow.drawn(f"{link.source} to {link.target}: {link.connection}, by {link.found}")
            )
            if link.found != wordless:
                labels.append(arrow.labelled(_told(link, plan)))
    boxes = [
        _box(
            label,
            place,
            "alone" if label in alone else "the others need it" if label in critical else "",
        )
        for label, place in places.items()
    ]
    # Words last: an arrow that crosses them does not strike them out.
    return "".join(
        [head(list(places.values()), BOX, _caption(plan)), *arrows, *boxes, *labels, "</svg>\n"]
    )


def _wordless(plan: Plan) -> str:
    """How most links of a large cluster are found: these words on every arrow would cover the picture."""
    ways = sorted({link.found for link in plan.links})
    return ways[0] if len(ways) == 1 and len(plan.nodes) > 2 else FROM_TOPOLOGY


def _told(link: Link, plan: Plan) -> str:
    """How the link was found, and of which cluster connection it is where there are several."""
    several = len({each.connection for each in plan.links}) > 1
    return f"{link.connection}: {link.found}" if several else link.found


def _caption(plan: Plan) -> str:
    names = sorted({link.connection for link in plan.links})
    connections = ", ".join(names) or "none that links"
    found = _wordless(plan)
    shown = any(link.found == found for link in plan.links)
    wordless = f" · arrows without words: found by {found}" if shown else ""
    return f"{len(plan.nodes)} nodes, {len(plan.links)} links · cluster connections: {connections}{wordless}"


def _box(label: str, place: Point, note: str) -> str:
    x, y = place
    colour = ALERT if note else EDGE
    drawn = (
        f'<rect x="{x - BOX.width / 2:.1f}" y="{y - BOX.height / 2:.1f}" width="{BOX.width}" height="{BOX.height}"'
        f' rx="8" fill="{PAPER}" stroke="{colour}" stroke-width="1.5"/>\n'
    )
    middle = 'text-anchor="middle"'
    drawn += text(
        x, y + (-2 if note else 5), label, f'{middle} font-size="14" font-weight="600" fill="{INK}"'
    )
    if note:
        drawn += text(x, y + 14, note, f'{middle} font-size="10" fill="{colour}"')
    return drawn
