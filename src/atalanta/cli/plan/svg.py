"""The picture of a plan: nodes on a ring, an arrow for each link; problems and critical nodes are red."""

from __future__ import annotations

from html import escape
from typing import Final

from atalanta.cli.output import (
    ALERT,
    EDGE,
    INK,
    PAPER,
    Box,
    Point,
    arrow_between,
    head,
    plain,
    ring,
    text,
)
from atalanta.cli.plan.pairs import Backing
from atalanta.sim.files.plan import FROM_TOPOLOGY, PlannedLink, PlanResult

BOX: Final = Box(150, 46)
LINE: Final = "#2f6f9f"
NAMES_MAX: Final = 22  # characters


def svg_of(plan: PlanResult, backings: list[Backing]) -> str:
    """Returns a complete SVG document. Nodes that wait are below those for which they do."""
    count = len(plan.nodes)
    radius = 0.0 if count == 1 else max(150.0, count * 48.0)
    centres = dict(zip(plan.nodes, ring(count, radius), strict=True))
    alone = {island[0] for island in plan.islands() if len(island) == 1} if count > 1 else set()
    critical, one_way = plan.critical(), plan.one_way()
    arrows, labels, wordless = [], [], _wordless(plan)
    for link in plan.links:
        if link.source in centres and link.target in centres:
            colour = ALERT if link in one_way else LINE
            arrow = arrow_between(centres[link.source], centres[link.target], BOX, colour, dashed=link.network)
            arrows.append(
                arrow.drawn(f"{link.source} to {link.target}: {link.connection}, by {link.found}")
            )
            if link.found != wordless:
                labels.append(arrow.labelled(_link_label(link, plan)))
    boxes = [
        _box(
            label,
            centre,
            "alone" if label in alone else "the others need it" if label in critical else "",
        )
        for label, centre in centres.items()
    ]
    waiting = [
        _waiting(each, centres[each.serves]) for each in backings if each.waiting and each.serves in centres
    ]
    # Labels last: a crossing arrow does not cover them.
    return "".join(
        [head(list(centres.values()), BOX, _caption(plan)), *arrows, *waiting, *boxes, *labels, "</svg>\n"]
    )


def _wordless(plan: PlanResult) -> str:
    """Returns the most frequent kind of discovery in a large cluster: on every arrow its label would cover the
    picture."""
    kinds = sorted({link.found for link in plan.links})
    return kinds[0] if len(kinds) == 1 and len(plan.nodes) > 2 else FROM_TOPOLOGY


def _link_label(link: PlannedLink, plan: PlanResult) -> str:
    """Returns the kind of discovery, and the cluster connection if there are several."""
    several = len({each.connection for each in plan.links}) > 1
    return f"{link.connection}: {link.found}" if several else link.found


def _caption(plan: PlanResult) -> str:
    names = sorted({link.connection for link in plan.links if not link.network})
    networks = sorted({link.connection for link in plan.links if link.network})
    kinds = [f"cluster connections: {', '.join(names) or 'none that links'}"] if names or not networks else []
    kinds += [f"dashed: {', '.join(networks)}"] if networks else []
    found = _wordless(plan)
    shown = any(link.found == found for link in plan.links)
    wordless = f" · arrows without words: found by {found}" if shown else ""
    return f"{len(plan.nodes)} nodes, {len(plan.links)} links · {' · '.join(kinds)}{wordless}"


def _waiting(backing: Backing, centre: Point) -> str:
    """Draws the nodes that wait as a dashed box that the one of the serving node covers in part."""
    x, y = centre
    names = ", ".join(backing.waiting)
    shown = names if len(names) <= NAMES_MAX else f"{names[:NAMES_MAX]}…"
    middle = 'text-anchor="middle"'
    title = f"<title>{escape(plain(f'{names}: {backing.form}, decided by {backing.decided_by}'))}</title>"
    return (
        f'<g>{title}<rect x="{x - BOX.width / 2 + 8:.1f}" y="{y:.1f}" width="{BOX.width - 16}" height="{BOX.height}"'
        f' rx="8" fill="{PAPER}" stroke="{EDGE}" stroke-dasharray="4 3"/>\n'
        + text(x, y + BOX.height - 8, f"waits: {shown}", f'{middle} font-size="10" fill="{EDGE}"')
        + "</g>\n"
    )


def _box(label: str, centre: Point, note: str) -> str:
    x, y = centre
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
