"""Charts of time lines: the geometry of an SVG, which a template writes. Numbers only, and classes for colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from typing import Final

from atalanta.console.nodes.time_lines import (
    ANSWER,
    CONSUMERS,
    DISK,
    IN,
    MEMORY,
    MESSAGES,
    OUT,
    SPAN_S,
    STEP_S,
    LineGroup,
    Point,
)
from atalanta.survey.flow import rate

WIDTH: Final = 360
HEIGHT: Final = 90
BUCKETS: Final = 180  # points of a line in a picture; of several the highest is drawn
SPANS_S: Final = (600.0, 1_800.0, SPAN_S)
GAP_S: Final = 30.0  # no line over a pause longer than this, or than three usual ones
MOMENT: Final = "%H:%M"


def count_text(value: float) -> str:
    return f"{value:,.0f}"


def milliseconds_text(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 10 else f"{value:.1f} ms"


def percent_text(value: float) -> str:
    return f"{value:.0f} %"


@dataclass(frozen=True)
class ChartKind:
    """A chart: the lines that it shows, with their labels, and the form of its values."""

    title: str
    lines: tuple[tuple[str, str], ...]
    text: Callable[[float], str]
    top: float | None = None  # the end of its scale, None as the values need it


RATES: Final = ChartKind("Messages a second", ((IN, "in"), (OUT, "out")), rate)
DEPTH: Final = ChartKind("Messages waiting", ((MESSAGES, "messages"),), count_text)
READERS: Final = ChartKind("Consumers", ((CONSUMERS, "consumers"),), count_text)
ANSWERS: Final = ChartKind("Answer time of management", ((ANSWER, "slowest node"),), milliseconds_text)
ANSWER_OF_NODE: Final = ChartKind("Answer time of management", ((ANSWER, "answer"),), milliseconds_text)
USED: Final = ChartKind("Used", ((MEMORY, "memory"), (DISK, "disk")), percent_text, 100.0)
CLUSTER_CHARTS: Final = (RATES, DEPTH, ANSWERS)
NODE_CHARTS: Final = (RATES, DEPTH, ANSWER_OF_NODE, USED)
QUEUE_CHARTS: Final = (RATES, DEPTH, READERS)


@dataclass
class DrawnLine:
    """A line of a chart: its path, and its figures in words. `number` chooses its colour."""

    number: int
    label: str
    path: str
    now: str
    least: str
    most: str


@dataclass
class Chart:
    """A chart as the template needs it. `begin` and `end` are moments in UTC (ms since 1970)."""

    title: str
    top: str
    begin_ms: int
    end_ms: int
    lines: list[DrawnLine] = field(default_factory=list)

    @property
    def words(self) -> str:
        """Returns what it shows, for those who do not see it."""
        told = [f"{each.label} {each.now} now, from {each.least} to {each.most}" for each in self.lines]
        return f"{self.title} since {_moment(self.begin_ms)} UTC: {'; '.join(told)}"


def charts(kinds: Sequence[ChartKind], group: LineGroup, now_s: float) -> list[Chart]:
    """Returns the charts of a group of lines, without those that have no point yet."""
    now_s = math.ceil(now_s / STEP_S) * STEP_S  # a chart changes when it has a new point, and not with each look
    age_s = now_s - group.begin_s(now_s)
    span_s = next((each for each in SPANS_S if age_s <= each), SPAN_S)
    found = [_chart(kind, group, now_s - span_s, now_s) for kind in kinds]
    return [each for each in found if each.lines]


def _chart(kind: ChartKind, group: LineGroup, begin_s: float, end_s: float) -> Chart:
    points = {name: group.points(name, begin_s) for name, _ in kind.lines}
    known = [value for line in points.values() for _, value in line if not math.isnan(value)]
    top = kind.top if kind.top is not None else nice_top(max(known, default=0.0))
    chart = Chart(kind.title, kind.text(top), int(begin_s * 1_000), int(end_s * 1_000))
    for number, (name, label) in enumerate(kind.lines):
        values = [value for _, value in points[name] if not math.isnan(value)]
        if values:
            path = path_of(points[name], begin_s, end_s, top)
            texts = [kind.text(value) for value in (values[-1], min(values), max(values))]
            chart.lines.append(DrawnLine(number, label, path, *texts))
    return chart


def nice_top(most: float) -> float:
    """Returns 1, 2 or 5 times a power of ten that is not below the value."""
    if most <= 0 or not math.isfinite(most):
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= most * 0.999)


def path_of(points: Sequence[Point], begin_s: float, end_s: float, top: float) -> str:
    """Returns the path of a line, with a new beginning behind each gap."""
    steps = [later[0] - former[0] for former, later in zip(points, points[1:], strict=False)]
    gap_s = max(GAP_S, 3 * median(steps)) if steps else GAP_S
    words: list[str] = []
    last_s, bucket = -math.inf, -1
    for at_s, value in points:
        if math.isnan(value):
            last_s = -math.inf
            continue
        x = WIDTH * (at_s - begin_s) / (end_s - begin_s)
        y = HEIGHT * (1 - min(1.0, max(0.0, value / top)))
        at = int(BUCKETS * (at_s - begin_s) / (end_s - begin_s))
        goes_on = at_s - last_s <= gap_s
        if goes_on and at == bucket and words:
            if y < float(words[-1].rpartition(",")[2]):
                words[-1] = f"{words[-1].partition(',')[0]},{y:.1f}"
        else:
            words.append(f"{'L' if goes_on else 'M'}{x:.1f},{y:.1f}")
        last_s, bucket = at_s, at
    if len(words) == 1:
        words.append("h1")  # one point alone is a line of no length, which nobody sees
    return "".join(words)


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime(MOMENT)
