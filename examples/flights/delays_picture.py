"""The picture of the delays: what the windows that came back from the cluster say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.dates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

# Untyped, as matplotlib has it.
dates: Any = matplotlib.dates

INK = "#22303c"
FAINT = "#8795a1"
ACCENT = "#D55E00"
CALM = "#0072B2"
NEW_YORK = "America/New_York"
LABELLED_DAYS = 4
CARRIERS = {
    "9E": "Endeavor", "AA": "American", "AS": "Alaska", "B6": "JetBlue", "DL": "Delta", "EV": "ExpressJet",
    "F9": "Frontier", "FL": "AirTran", "HA": "Hawaiian", "MQ": "Envoy", "OO": "SkyWest", "UA": "United",
    "US": "US Airways", "VX": "Virgin", "WN": "Southwest", "YV": "Mesa",
}  # fmt: skip
STYLE: Any = {
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
}


def draw_delays(windows: pd.DataFrame, path: Path) -> None:
    """Draws the windows of `results.read_windows` into the PNG `path`."""
    local = windows.assign(local=windows["hour"].dt.tz_convert(NEW_YORK))
    flights, departed = int(windows["flights"].sum()), int(windows["departed"].sum())
    mean = int(windows["delay_sum"].sum()) / max(departed, 1)
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(13, 8.6), facecolor="white")
        grid = figure.add_gridspec(2, 2, height_ratios=[1, 1.15], width_ratios=[1.45, 1])
        grid.update(left=0.065, right=0.965, top=0.855, bottom=0.075, hspace=0.36, wspace=0.24)
        draw_course(figure.add_subplot(grid[0, :]), local)
        draw_day(figure.add_subplot(grid[1, 0]), local)
        draw_carriers(figure.add_subplot(grid[1, 1]), windows)
        first, last = local["local"].min(), local["local"].max()
        figure.text(0.065, 0.945, "How late New York departs", fontsize=19, fontweight="bold")
        figure.text(
            0.065,
            0.91,
            f"{flights:,} departures from EWR, JFK and LGA, {first:%-d %B} to {last:%-d %B %Y}: {mean:.1f} minutes "
            f"late on average. Drawn from {len(windows):,} windows that Spark sent back.",
            color=FAINT,
        )
        figure.savefig(path, dpi=130)
        plt.close(figure)


def averages(frame: pd.DataFrame, key: list[Any]) -> pd.DataFrame:
    """Flights, mean delay in minutes and cancelled share, by `key`."""
    sums = frame.groupby(key)[["flights", "departed", "cancelled", "delay_sum"]].sum().astype("float64")
    sums["mean"] = sums["delay_sum"] / sums["departed"].where(sums["departed"] > 0)
    sums["cancelled_share"] = sums["cancelled"] / sums["flights"]
    return sums


def draw_course(axes: Axes, local: pd.DataFrame) -> None:
    """Mean delay and cancelled share by day."""
    days = averages(local, [local["local"].dt.floor("D").dt.tz_localize(None).rename("day")])
    days = days[days["departed"] >= min(20, days["departed"].max())]
    axes.set_title("Day by day: mean delay (minutes, orange above 30) and cancelled flights (%)", pad=10)
    position = dates.date2num(days.index.to_pydatetime())
    axes.bar(position, days["mean"], width=0.86, color=np.where(days["mean"] > 30, ACCENT, CALM), alpha=0.85)
    axes.bar(position, -days["cancelled_share"] * 100, width=0.86, color=FAINT)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_ylabel("cancelled %   |   minutes late", fontsize=9)
    axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):.0f}")
    short = len(days) < 40
    axes.xaxis.set_major_locator(dates.DayLocator(interval=1 + len(days) // 12) if short else dates.MonthLocator())
    axes.xaxis.set_major_formatter(dates.DateFormatter("%-d %b" if short else "%b"))
    axes.margins(x=0.01, y=0.16)
    chosen: list[pd.Timestamp] = []
    for day in days["mean"].sort_values(ascending=False).index:
        if len(chosen) < LABELLED_DAYS and all(abs((day - other).days) > 9 for other in chosen):
            chosen.append(day)
            text = f"{day:%-d %b}: {days.loc[day, 'mean']:.0f} min"
            axes.annotate(text, (dates.date2num(day), days.loc[day, "mean"]), xytext=(0, 4),
                          textcoords="offset points", ha="center", fontsize=9)  # fmt: skip


def draw_day(axes: Axes, local: pd.DataFrame) -> None:
    """Mean delay by weekday and hour: delays pile up through the day."""
    axes.set_title("Through the day: mean delay by weekday and hour (New York time)", pad=10)
    cells = averages(
        local, [local["local"].dt.weekday.rename("weekday"), local["local"].dt.hour.rename("hour")]
    )
    cells = cells["mean"].where(cells["departed"] > 1).unstack("hour").dropna(axis="columns", how="all")
    hours = range(int(cells.columns.min()), 24)
    cells = cells.reindex(index=range(7), columns=hours)
    top = max(float(np.nanpercentile(cells.to_numpy(), 97)), 1.0)
    image = axes.pcolormesh(
        np.arange(len(hours) + 1) + hours[0] - 0.5, np.arange(8) - 0.5, cells.to_numpy(),
        cmap="YlOrRd", vmin=0, vmax=top, edgecolors="white", linewidth=1.2,
    )  # fmt: skip
    for (weekday, at), value in np.ndenumerate(cells.to_numpy()):
        if not np.isnan(value):
            shade = "white" if value > 0.62 * top else INK
            axes.text(at + hours[0], weekday, f"{round(value)}", ha="center", va="center", fontsize=8, color=shade)
    axes.set_yticks(range(7), ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
    axes.set_xticks(list(hours)[::2], [f"{hour}:00" for hour in list(hours)[::2]])
    axes.invert_yaxis()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.figure.colorbar(image, ax=axes, pad=0.015, aspect=30, label="minutes")


def draw_carriers(axes: Axes, windows: pd.DataFrame) -> None:
    """Mean delay by carrier; the number of flights stands beside the name."""
    axes.set_title("By carrier: mean delay (minutes, flights)", pad=10)
    carriers = averages(windows, [windows["carrier"]]).sort_values("mean")
    places = np.arange(len(carriers))
    mean = carriers["delay_sum"].sum() / max(carriers["departed"].sum(), 1)
    axes.barh(places, carriers["mean"], color=np.where(carriers["mean"] > mean, ACCENT, CALM), alpha=0.85)
    axes.axvline(mean, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    axes.text(mean, -0.9, f"all: {mean:.1f} ", fontsize=8.5, va="top", ha="center")
    axes.set_yticks(places, [CARRIERS.get(str(code), str(code)) for code in carriers.index])
    for place, (value, flights) in enumerate(zip(carriers["mean"], carriers["flights"], strict=True)):
        axes.annotate(
            f"{value:.1f}  ({flights:,.0f})", (max(value, 0), place), xytext=(4, 0), va="center",
            textcoords="offset points", fontsize=8, color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )  # fmt: skip
    axes.margins(x=0.28, y=0.02)
    axes.tick_params(axis="y", length=0)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
