"""The picture of the run: the network in each phase, and below where each client was at any time."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from examples.network.places import PLACES, ZONES, Place
from examples.network.timeline import Phase, Timeline

INK: Final = "#22303c"
FAINT: Final = "#8795a1"
PAPER: Final = "#f6f8fa"
GROUND: Final = "#eef1f4"
DEAD: Final = "#B3261E"
PLACE_COLOUR: Final = {"north-1": "#1F5FA8", "north-2": "#4FA3D9", "south-1": "#E8862E"}
ZONE_COLOUR: Final = {"north": "#1F5FA8", "south": "#E8862E"}
# The middle of each broker in a panel of 10 x 9.
SPOT: Final = {"north-1": (2.3, 6.7), "north-2": (7.7, 6.7), "south-1": (5.0, 1.9)}
BOX_WIDTH, BOX_HEIGHT = 3.7, 1.9
PANEL_WIDTH, PANEL_HEIGHT = 10.0, 9.0
DOTS_A_LINE: Final = 6
# How far the two arrows between a pair of brokers are apart, and how wide the widest one is.
APART, WIDTH_MAX = 0.22, 4.0
KILLED: Final = "killed"


def draw(timeline: Timeline, path: Path) -> None:
    """Draws the run; the suffix of `path` says what is written, png or svg."""
    with plt.rc_context({"font.family": "DejaVu Sans", "text.color": INK, "svg.fonttype": "none"}):
        count = len(timeline.phases)
        figure = plt.figure(figsize=(2.75 * count, 9.2), facecolor="white")
        grid = figure.add_gridspec(
            2, count, height_ratios=(1, 1.25), left=0.06, right=0.985, top=0.86, bottom=0.075, wspace=0.06, hspace=0.16
        )
        figure.text(0.02, 0.955, "A network of three brokers in two data centres", fontsize=19, fontweight="bold")
        figure.text(0.02, 0.92, subtitle(timeline), fontsize=11, color=FAINT)
        for at, phase in enumerate(timeline.phases):
            draw_phase(figure.add_subplot(grid[0, at]), phase, timeline)
        draw_timeline(figure.add_subplot(grid[1, :]), timeline)
        figure.savefig(path, dpi=110)
        plt.close(figure)


def subtitle(timeline: Timeline) -> str:
    total = timeline.total
    text = f"{total('sent'):,} persistent messages sent, {total('received'):,} received, {total('lost')} lost, "
    return f"{text}{total('doubled')} doubled, {total('again')} came again and were known by their JMSMessageID"


# -- a phase -----------------------------------------------------------------------------------------
def draw_phase(axes: Axes, phase: Phase, timeline: Timeline) -> None:
    """The brokers with their clients, and what the bridges have carried."""
    axes.set_xlim(0, PANEL_WIDTH)
    axes.set_ylim(0, PANEL_HEIGHT)
    axes.axis("off")
    sent, received = (phase.messages.get(key, 0) for key in ("sent", "received"))
    axes.set_title(phase.name, fontsize=11.5, fontweight="bold", color=INK, pad=16)
    axes.text(PANEL_WIDTH / 2, 9.1, f"{sent:,} sent, {received:,} received", fontsize=8.5, color=FAINT, ha="center")
    for zone, (bottom, height) in {"north": (5.15, 3.5), "south": (0.15, 3.4)}.items():
        axes.add_patch(Rectangle((0.15, bottom), PANEL_WIDTH - 0.3, height, facecolor=GROUND, edgecolor="none"))
        axes.text(0.35, bottom + 0.15, zone, fontsize=8.5, color=ZONE_COLOUR[zone], va="bottom", style="italic")
    most = max((count for each in timeline.phases for key, count in each.messages.items() if ">" in key), default=1)
    for origin in PLACES:
        for target in PLACES:
            count = phase.messages.get(f"{origin.name}>{target.name}", 0)
            if origin != target and not {origin.name, target.name} & set(phase.away) or count:
                draw_bridge(axes, origin, target, count, most)
    for place in PLACES:
        draw_broker(axes, place, phase, timeline)


def draw_bridge(axes: Axes, origin: Place, target: Place, count: int, most: int) -> None:
    """An arrow beside the one of the other direction, with the messages that it has carried."""
    (x, y), (to_x, to_y) = SPOT[origin.name], SPOT[target.name]
    length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
    along_x, along_y = (to_x - x) / length, (to_y - y) / length
    side_x, side_y = along_y * APART, -along_x * APART
    # From the edge of one box to that of the other.
    gap = BOX_WIDTH / 2 if abs(along_x) > 0.9 else BOX_HEIGHT / 2 / abs(along_y)
    start = (x + along_x * gap + side_x, y + along_y * gap + side_y)
    end = (to_x - along_x * gap + side_x, to_y - along_y * gap + side_y)
    colour = PLACE_COLOUR[origin.name] if count else "#c5ced6"
    width = 0.8 + (WIDTH_MAX - 0.8) * count / most if count else 0.8
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=9 + width, linewidth=width, color=colour, shrinkA=1, shrinkB=1
        )
    )
    if count:
        far = 0.55 if abs(along_x) > 0.9 else 0.85
        # Not in the middle, where the numbers of two bridges would meet.
        part = 0.5 if abs(along_x) > 0.9 else 0.28
        at_x, at_y = start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part
        at_x, at_y = at_x + along_y * far, at_y - along_x * far
        axes.text(at_x, at_y, f"{count:,}", fontsize=8.5, color=colour, ha="center", va="center")


def draw_broker(axes: Axes, place: Place, phase: Phase, timeline: Timeline) -> None:
    """A box with a dot for each client, in the colour of its zone; crossed out if the broker was away."""
    x, y = SPOT[place.name]
    left, bottom = x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2
    gone = place.name in phase.away
    axes.add_patch(
        FancyBboxPatch(
            (left, bottom), BOX_WIDTH, BOX_HEIGHT, boxstyle="round,pad=0,rounding_size=0.18", facecolor=PAPER,
            edgecolor=DEAD if gone else PLACE_COLOUR[place.name], linewidth=1.6, linestyle="--" if gone else "-",
        )
    )  # fmt: skip
    axes.text(left + 0.2, bottom + BOX_HEIGHT - 0.42, place.name, fontsize=9, fontweight="bold", va="center",
              color=DEAD if gone else PLACE_COLOUR[place.name])  # fmt: skip
    if gone:
        killed = KILLED in phase.name
        text = "✕ killed" if killed else "stopped"
        axes.text(x, y - 0.3, text, fontsize=10, color=DEAD, ha="center", va="center")
        return
    counts = phase.clients_at(place.name, timeline.zones)
    axes.text(left + BOX_WIDTH - 0.2, bottom + BOX_HEIGHT - 0.42, str(counts.total()), fontsize=9, ha="right",
              va="center", color=FAINT)  # fmt: skip
    dots = [zone.name for zone in ZONES for _ in range(counts[zone.name])]
    for at, zone in enumerate(dots):
        line, column = divmod(at, DOTS_A_LINE)
        centre = (left + 0.42 + column * 0.57, bottom + BOX_HEIGHT - 0.98 - line * 0.5)
        axes.plot(*centre, marker="o", markersize=6.2, color=ZONE_COLOUR[zone], markeredgecolor="white")


# -- the times ---------------------------------------------------------------------------------------
def draw_timeline(axes: Axes, timeline: Timeline) -> None:
    """A line for each client, in the colour of the broker where it is, and one for each broker."""
    names = list(timeline.zones)
    end = timeline.samples[-1][0]
    begin = timeline.phases[0].begun
    rows = len(names) + len(PLACES) + 0.6
    axes.set_xlim(begin, end)
    axes.set_ylim(rows, -1.0)
    for row, name in enumerate(names):
        for since, until, place in timeline.stays(name):
            axes.barh(row, until - since, left=since, height=0.74, color=PLACE_COLOUR[place], linewidth=0)
    lines: dict[float, str] = dict(enumerate(names))
    for row, broker in enumerate(PLACES):
        at = len(names) + 0.6 + row
        axes.barh(at, end - begin, left=begin, height=0.5, color=PLACE_COLOUR[broker.name], alpha=0.3, linewidth=0)
        for outage in timeline.outages:
            if outage.place == broker.name:
                length = (outage.ended or end) - outage.begun
                axes.barh(at, length, left=outage.begun, height=0.62, color=DEAD if outage.killed else FAINT)
                text = KILLED if outage.killed else "stopped"
                axes.text(outage.begun + length / 2, at, text, fontsize=8, color="white", ha="center", va="center",
                          clip_on=True)  # fmt: skip
        lines[at] = broker.name
    axes.set_yticks(list(lines), list(lines.values()), fontsize=8.5)
    for label in axes.get_yticklabels():
        name = label.get_text()
        label.set_color(PLACE_COLOUR.get(name) or ZONE_COLOUR[timeline.zones[name]])
    for phase in timeline.phases:
        axes.axvline(phase.begun, color=INK, linewidth=0.8, linestyle=":")
        axes.text(phase.begun, -0.75, f" {phase.name}", fontsize=8.5, color=INK, va="center", clip_on=True)
    text = "seconds; the line of a client has the colour of the broker where it is"
    axes.set_xlabel(text, fontsize=9.5, color=FAINT)
    axes.tick_params(length=0, colors=FAINT, axis="x")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
