"""The table at the end, and report.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from examples.flights.out_folder import shown
from examples.network.places import PLACES, ZONES, Zone
from examples.network.timeline import Phase, Timeline

COUNTS: Final = ("sent", "received", "lost", "doubled", "again")
REPORT: Final = "report.json"
OK: Final = "[green]✓[/green]"
BAD: Final = "[bold red]✗[/bold red]"


def is_fine(timeline: Timeline) -> bool:
    """Returns whether nothing is lost or doubled, and all clients are in their zones."""
    return not timeline.total("lost") and not timeline.total("doubled") and not astray(timeline)


def astray(timeline: Timeline) -> list[str]:
    """Returns the clients that are not in their zones at the end."""
    zones = {place.name: place.zone for place in PLACES}
    now = timeline.now()
    return [name for name, zone in timeline.zones.items() if zones.get(now.get(name, "")) != zone]


def print_summary(console: Console, timeline: Timeline, out: Path) -> None:
    """A line for each phase."""
    table = Table(title="The network demo", title_style="bold", title_justify="left", header_style="bold")
    table.add_column("phase")
    for place in PLACES:
        table.add_column(place.name)
    for count in COUNTS:
        table.add_column(count, justify="right")
    table.add_column("")
    for phase in timeline.phases:
        numbers = [phase.messages.get(count, 0) for count in COUNTS]
        mark = BAD if phase.messages.get("lost") or phase.messages.get("doubled") else OK
        places = [clients_text(phase, place.name, timeline) for place in PLACES]
        table.add_row(phase.name, *places, *(f"{number:,}" for number in numbers), mark)
    table.add_section()
    totals = [f"{timeline.total(count):,}" for count in COUNTS]
    away = astray(timeline)
    home = "every client is back in its zone" if not away else f"not in their zones: {', '.join(away)}"
    table.add_row("together", *("" for _ in PLACES), *totals, OK if is_fine(timeline) else BAD)
    console.print()
    console.print(table)
    console.print(f"  {home}", style="" if not away else "red", highlight=False)
    console.print(
        "  clients by zone (n: north, s: south) while a broker was away (✕); 'again': repeats after a failover,\n"
        "  known by their JMSMessageID and not worked on",
        style="dim", highlight=False,
    )  # fmt: skip
    console.print("[bold]To look at[/bold]")
    for name in ("network.png", "network.svg", REPORT, "logs/"):
        console.print(f"  {shown(out)}/{name}", highlight=False)


def clients_text(phase: Phase, place: str, timeline: Timeline) -> str:
    """Returns the clients at a broker, by zone."""
    if place in phase.away:
        return "✕"
    counts = phase.clients_at(place, timeline.zones)
    return " ".join(f"{counts[zone.name]}{letter(zone)}" for zone in ZONES if counts[zone.name]) or "0"


def letter(zone: Zone) -> str:
    return zone.name[0]


def write_report(timeline: Timeline, out: Path) -> None:
    """Writes the phases and totals as JSON."""
    phases = [
        {
            "phase": phase.name,
            "begun_s": round(phase.begun, 1),
            "away": list(phase.away),
            "clients": {place.name: dict(phase.clients_at(place.name, timeline.zones)) for place in PLACES},
            "messages": phase.messages,
        }
        for phase in timeline.phases
    ]
    totals = {count: timeline.total(count) for count in COUNTS}
    report = {"fine": is_fine(timeline), "totals": totals, "astray": astray(timeline), "phases": phases}
    (out / REPORT).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
