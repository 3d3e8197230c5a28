"""The picture of the cluster: nodes, queues and what went where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from examples.flights.airports import AIRPORTS, ALERTS_AIRPORT, ALERTS_QUEUE, Airport

INK = "#22303c"
FAINT = "#8795a1"
PAPER = "#f6f8fa"
SPARK = "#E8862E"
ALERT = "#B3261E"
NODE_X = {"EWR": 2.3, "JFK": 8.0, "LGA": 13.7}
NODE_TOP, NODE_HEIGHT, NODE_WIDTH = 7.35, 2.2, 3.3
SPARK_Y, SPARK_HEIGHT = 2.2, 1.15


@dataclass(frozen=True)
class Flows:
    """Messages: published, forwarded between nodes (from, to), sent back by Spark, by airport; and the kills."""

    published: dict[str, int]
    forwarded: dict[tuple[str, str], int]
    alerts: int
    windows: dict[str, int]
    archived: int
    kills: list[str]


def draw_cluster(flows: Flows, path: Path) -> None:
    """Draws the flows; the suffix of `path` says what is written, png or svg."""
    with plt.rc_context({"font.family": "DejaVu Sans", "text.color": INK, "svg.fonttype": "none"}):
        figure = plt.figure(figsize=(13, 8.4), facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, 16)
        axes.set_ylim(0, 10.4)
        axes.axis("off")
        total = sum(flows.published.values())
        axes.text(0.55, 9.85, "What went through the cluster", fontsize=19, fontweight="bold")
        axes.text(
            0.55, 9.45,
            f"{total:,} flights published, {sum(flows.forwarded.values()):,} messages forwarded between nodes, "
            f"{flows.archived:,} flights archived, {sum(flows.windows.values()):,} windows sent back",
            fontsize=10.5, color=FAINT,
        )  # fmt: skip
        for airport in AIRPORTS:
            draw_node(axes, airport, flows)
        draw_forwarding(axes, flows)
        draw_spark(axes, flows)
        kills = "      ".join(f"✕ killed and back: {kill}" for kill in flows.kills)
        axes.text(0.55, 0.42, kills, fontsize=9.5, color=ALERT)
        figure.savefig(path, dpi=130)
        plt.close(figure)


def box(axes: Axes, x: float, y: float, width: float, height: float, colour: str, title: str) -> None:
    """A rounded box around (x, y) .. with its title in the first line."""
    patch = FancyBboxPatch(
        (x, y), width, height, boxstyle="round,pad=0,rounding_size=0.14",
        facecolor=PAPER, edgecolor=colour, linewidth=2,
    )  # fmt: skip
    axes.add_patch(patch)
    axes.text(x + 0.18, y + height - 0.2, title, fontsize=11, fontweight="bold", color=colour, va="top")


def arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, messages: int, bend: float = 0.0
) -> None:
    """An arrow whose width grows with the number of messages."""
    width = 1.1 + min(messages, 340_000) ** 0.5 / 180
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=13, linewidth=width, color=colour,
            connectionstyle=f"arc3,rad={bend}", shrinkA=2, shrinkB=2, zorder=0,
        )
    )  # fmt: skip


def label(axes: Axes, x: float, y: float, text: str, colour: str = INK, align: str = "center") -> None:
    """Text on white, beside or on an arrow."""
    axes.text(
        x, y, text, fontsize=9.5, color=colour, ha=align, va="center",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )  # fmt: skip


def draw_node(axes: Axes, airport: Airport, flows: Flows) -> None:
    """A node with its queues, the producer above it."""
    x = NODE_X[airport.code]
    left, bottom = x - NODE_WIDTH / 2, NODE_TOP - NODE_HEIGHT
    published = flows.published[airport.code]
    box(axes, left, bottom, NODE_WIDTH, NODE_HEIGHT, airport.colour, f"node {airport.code}")
    axes.text(
        left + NODE_WIDTH - 0.18, NODE_TOP - 0.23, f":{airport.port}", fontsize=9, color=FAINT, ha="right", va="top"
    )
    sent_back = flows.windows.get(airport.code, 0)
    queues = [("archive", published, INK), ("delays", published, INK), ("windows", sent_back, INK)]
    if airport == ALERTS_AIRPORT:
        queues.append((ALERTS_QUEUE, flows.alerts, ALERT))
    for line, (queue, count, colour) in enumerate(queues):
        y = NODE_TOP - 0.78 - line * 0.37
        axes.text(left + 0.3, y, f"▤ {queue}", fontsize=10, color=colour, va="center")
        axes.text(left + NODE_WIDTH - 0.25, y, f"{count:,}", fontsize=10, color=colour, ha="right", va="center")
    centre = x - 0.75 if airport == ALERTS_AIRPORT else x
    axes.text(centre, 8.72, airport.name, fontsize=10.5, fontweight="bold", ha="center", color=airport.colour)
    arrow(axes, (centre, 8.62), (centre, NODE_TOP), airport.colour, published)
    label(axes, centre, 8.05, f"{published:,} flights")
    if airport == ALERTS_AIRPORT:
        axes.text(x + 1.55, 8.72, "Alerting service", fontsize=10.5, fontweight="bold", ha="center", color=ALERT)
        arrow(axes, (x + 1.25, NODE_TOP), (x + 1.5, 8.62), ALERT, flows.alerts)
        label(axes, x + 1.5, 8.05, f"{flows.alerts:,} alerts", ALERT)


def draw_forwarding(axes: Axes, flows: Flows) -> None:
    """What the cluster carried from node to node."""
    y = NODE_TOP - NODE_HEIGHT / 2
    for (origin, target), count in flows.forwarded.items():
        if not count:
            continue
        rightwards = NODE_X[origin] < NODE_X[target]
        side = NODE_WIDTH / 2 * (1 if rightwards else -1)
        start, end = NODE_X[origin] + side, NODE_X[target] - side
        arrow(axes, (start, y), (end, y), ALERT, count)
        label(axes, (start + end) / 2, y + 0.32, f"{count:,}", ALERT)
        label(axes, (start + end) / 2, y - 0.32, "forwarded", FAINT)


def draw_spark(axes: Axes, flows: Flows) -> None:
    """The three queries, what they read and where it ends."""
    total, windows = sum(flows.published.values()), sum(flows.windows.values())
    left, width, bottom = 0.55, 14.9, SPARK_Y - 0.35
    box(axes, left, bottom, width, SPARK_HEIGHT + 0.85, SPARK, "Spark Structured Streaming")
    texts = {
        "archive": "every flight, exactly once",
        "delays": "by carrier and hour",
        "windows": "what came back",
    }
    for (query, text), x in zip(texts.items(), NODE_X.values(), strict=True):
        box(axes, x - 1.55, SPARK_Y - 0.15, 3.1, 0.95, INK, query)
        axes.text(x - 1.37, SPARK_Y + 0.12, text, fontsize=9.5, color=FAINT, va="center")
    top = bottom + SPARK_HEIGHT + 0.85
    for airport in AIRPORTS:
        x, count = NODE_X[airport.code], flows.published[airport.code]
        arrow(axes, (x - 0.9, NODE_TOP - NODE_HEIGHT), (x - 0.9, top), airport.colour, 2 * count)
        label(axes, x - 0.9, 4.3, f"2 × {count:,}")
        sent_back = flows.windows.get(airport.code, 0)
        if sent_back:
            arrow(axes, (x + 0.75, top), (x + 0.75, NODE_TOP - NODE_HEIGHT), SPARK, sent_back)
            arrow(axes, (x + 1.15, NODE_TOP - NODE_HEIGHT), (x + 1.15, top), SPARK, sent_back)
            label(axes, x + 0.95, 4.3, f"{sent_back:,} windows", SPARK)
    for x, folder, count in ((NODE_X["EWR"], "archive/", total), (NODE_X["LGA"], "delays/", windows)):
        arrow(axes, (x, SPARK_Y - 0.15), (x, 1.2), INK, count)
        label(axes, x, 1.0, f"{folder}  {count:,} rows (Parquet)")
