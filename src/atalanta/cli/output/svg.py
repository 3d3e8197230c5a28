"""Parts that pictures of a cluster share: boxes on a ring, the background, arrows between their edges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Final

from atalanta.cli.output.escape import plain

MARGIN: Final = 40
GAP: Final = 9.0  # distance of each of two arrows from the line between two centres
FONT: Final = 'font-family="Helvetica, Arial, DejaVu Sans, Noto Sans, sans-serif"'
CHARACTER_WIDTH: Final = 6.2  # on average
BASELINE: Final = 4  # below the middle of a label's line
ALERT: Final = "#c0392b"
INK: Final = "#1d2b38"
PAPER: Final = "#ffffff"
EDGE: Final = "#41566b"

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """The size of every node's box, in the picture's units."""

    width: float
    height: float


def ring(count: int, radius: float) -> list[Point]:
    """Returns the centres of `count` boxes, the first on top (two side by side); wider than high, like screens."""
    first = -math.pi / (2 if count != 2 else 1)
    angles = [first + 2 * math.pi * index / count for index in range(count)]
    return [(1.3 * radius * math.cos(angle), radius * math.sin(angle)) for angle in angles]


def head(centres: list[Point], box: Box, caption: str = "") -> str:
    """Returns the start of the document: a white background around every box, with the caption at its upper left."""
    around = centres or [(0.0, 0.0)]
    left = min(x for x, _ in around) - box.width / 2 - MARGIN
    top = min(y for _, y in around) - box.height / 2 - MARGIN
    width = max(x for x, _ in around) + box.width / 2 + MARGIN - left
    height = max(y for _, y in around) + box.height / 2 + MARGIN - top
    at = f'x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}"'
    written = text(left + 12, top + 20, caption, f'fill="{EDGE}"') if caption else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}"'
        f' width="{width:.0f}" height="{height:.0f}">\n'
        f'<rect {at} fill="{PAPER}"/>\n{written}'
    )


@dataclass(frozen=True)
class Arrow:
    """An arrow from the edge of one box to the edge of another, parallel to the arrow back."""

    start: Point
    end: Point
    colour: str
    thick: float = 1.5
    dashed: bool = False

    def drawn(self, title: str = "") -> str:
        """Draws line and head; `title` is the tooltip in a browser."""
        along, side = _directions(self.start, self.end)
        tip_length, wing = 9 + self.thick, 4 + self.thick * 0.8
        (x1, y1), (x2, y2) = self.start, self.end
        x3, y3 = x2 - along[0] * tip_length, y2 - along[1] * tip_length
        corners = (
            f"{x2:.1f},{y2:.1f} {x3 + side[0] * wing:.1f},{y3 + side[1] * wing:.1f}"
            f" {x3 - side[0] * wing:.1f},{y3 - side[1] * wing:.1f}"
        )
        dash = ' stroke-dasharray="6 5"' if self.dashed else ""
        hover = f"<title>{escape(plain(title))}</title>" if title else ""
        return (
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x3:.1f}" y2="{y3:.1f}" stroke="{self.colour}"'
            f' stroke-width="{self.thick:.1f}"{dash}>{hover}</line>\n'
            f'<polygon points="{corners}" fill="{self.colour}"/>\n'
        )

    def labelled(self, label: str) -> str:
        """Draws the label, nearer to the source: so labels of the opposite arrow and of crossing links do not
        overlap."""
        (x1, y1), (x2, y2) = self.start, self.end
        side = _directions(self.start, self.end)[1]
        beside = (13 if abs(side[1]) > 0.7 else 8) + self.thick / 2
        x, y = x1 + (x2 - x1) * 0.4 + side[0] * beside, y1 + (y2 - y1) * 0.4 + side[1] * beside
        anchor = "middle" if abs(side[0]) < 0.3 else "end" if side[0] < 0 else "start"
        width = len(label) * CHARACTER_WIDTH
        left = x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        # A box behind the label: not every renderer knows paint-order and dominant-baseline.
        return (
            f'<rect x="{left:.1f}" y="{y - 7:.1f}" width="{width:.1f}" height="14" fill="{PAPER}"/>\n'
            + text(x, y + BASELINE, label, f'text-anchor="{anchor}" fill="{self.colour}"')
        )


def arrow_between(
    source: Point, target: Point, box: Box, colour: str, thick: float = 1.5, dashed: bool = False
) -> Arrow:
    """Returns the arrow from the box around `source` to the box around `target`."""
    along, side = _directions(source, target)
    offset = (side[0] * GAP, side[1] * GAP)
    start = _edge(source, along, offset, box)
    end = _edge(target, (-along[0], -along[1]), offset, box)
    return Arrow(start, end, colour, thick, dashed)


def text(x: float, y: float, shown: str, style: str) -> str:
    """Draws one line of text; foreign names are escaped."""
    size = "" if "font-size=" in style else ' font-size="12"'
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" {FONT}{size} {style}>{escape(plain(shown))}</text>\n'
    )


def _directions(start: Point, end: Point) -> tuple[Point, Point]:
    """Returns a unit vector along the arrow, and one to its side."""
    length = math.dist(start, end) or 1.0
    along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
    return along, (-along[1], along[0])


def _edge(centre: Point, along: Point, offset: Point, box: Box) -> Point:
    """Returns the point where a ray that starts `offset` from the centre of a box leaves it, with a margin."""
    reach = math.inf
    for axis, size in enumerate((box.width, box.height)):
        if along[axis]:
            room = size / 2 - offset[axis] if along[axis] > 0 else size / 2 + offset[axis]
            reach = min(reach, room / abs(along[axis]))
    reach = (0.0 if reach == math.inf else reach) + 3
    return centre[0] + offset[0] + along[0] * reach, centre[1] + offset[1] + along[1] * reach
