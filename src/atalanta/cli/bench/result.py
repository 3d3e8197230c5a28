"""The results of `atalanta bench`, as a table with a column for each broker, or as JSON."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Final

import typer

from atalanta.cli.output.tables import show_table

CLIENT_BUSY: Final = 0.9  # cores
PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 100.0)


class BenchResult:
    """Counts and times after the warm-up. `latencies_ns` extend from before the send to the receiving program."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.version = ""
        self.sent = 0
        self.received = 0
        self.send_seconds = 0.0
        self.receive_seconds = 0.0
        self.backlog = 0  # sent, but not received at the end of sending
        self.lost = 0  # never received
        self.client_cpu = 0.0  # cores
        self.latencies_ns = array("q")

    def figures(self) -> dict[str, object]:
        """Returns the results for programs: rates a second, latencies in ms."""
        found: dict[str, object] = {
            "url": self.url,
            "version": self.version,
            "sent": self.sent,
            "received": self.received,
            "send_rate": rate(self.sent, self.send_seconds),
            "receive_rate": rate(self.received, self.receive_seconds),
            "backlog": self.backlog,
            "lost": self.lost,
            "client_cpu": round(self.client_cpu, 2),
        }
        ordered = sorted(self.latencies_ns)
        for percentile in PERCENTILES if ordered else ():
            found[latency_name(percentile)] = round(value_at(ordered, percentile) / 1e6, 3)
        return found


def rate(count: int, seconds: float) -> float:
    return round(count / seconds, 1) if seconds > 0 else 0.0


def latency_name(percentile: float) -> str:
    return "latency_max_ms" if percentile >= 100 else f"latency_p{percentile:g}_ms"


def value_at(ordered: Sequence[int], percentile: float) -> int:
    """Returns the smallest value that is not below the given percentage of values."""
    index = -(-len(ordered) * percentile // 100) - 1
    return ordered[max(0, min(len(ordered) - 1, int(index)))]


def show_results(
    receives: bool, sends: bool, results: list[BenchResult], json_output: bool
) -> None:
    """Prints the results, without values that were not measured."""
    figures = [result.figures() for result in results]
    if json_output:
        typer.echo(json.dumps(figures, indent=2))
        return
    hidden = {"url"} | (set() if sends else {"sent", "send_rate", "backlog", "lost"})
    hidden |= set() if receives else {"received", "receive_rate", "backlog", "lost"}
    names = list(dict.fromkeys(name for found in figures for name in found if name not in hidden))
    rows = [[name.replace("_", " "), *(shown(found.get(name)) for found in figures)] for name in names]
    columns = [str(found["url"]) for found in figures]
    show_table(["", *columns], rows, columns)
    if max(result.client_cpu for result in results) > CLIENT_BUSY:
        typer.echo("the client used a whole core: it may be the limit, not the broker", err=True)


def shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1_000 else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
