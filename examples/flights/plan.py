"""How large a run is and what follows from it: limits, leads, the watermark's delay."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd

LEAST_FLIGHTS = 500
MAX_BATCH_ROWS = 24_000
MIN_BATCH_ROWS = 20
# A batch is at most this part of all rows, so that the short forms have something to kill, too.
BATCHES = 10
# The producers are at most this part of all rows ahead of the archive.
AHEAD_PART = 0.25
# A run is at least this many leads long, if that is more than a day each.
LEADS = 6
# The watermark's delay is this many leads: the skew is one, the rest is margin.
DELAY_LEADS = 2
WINDOW = timedelta(hours=1)


@dataclass(frozen=True)
class Plan:
    """One run over `flights` rows, from `first` to `last` scheduled departure (UTC)."""

    flights: int
    first: pd.Timestamp
    last: pd.Timestamp
    out: Path
    master: str

    @property
    def lead(self) -> timedelta:
        """How far, in scheduled time, an airport may be ahead of the slowest one: the skew's bound."""
        span = self.last - self.first
        return min(max(span.to_pytimedelta() / LEADS, timedelta(days=1)), timedelta(days=8))

    @property
    def watermark_delay(self) -> timedelta:
        """Later than any flight can be behind the newest one read. Whole seconds."""
        return timedelta(seconds=int(self.lead.total_seconds() * DELAY_LEADS))

    @property
    def end(self) -> pd.Timestamp:
        """Event time of the `end` message: moves the watermark past the end of the last window."""
        return self.last.floor("h") + self.watermark_delay + 3 * WINDOW

    @property
    def batch_rows(self) -> int:
        """Limit of a query's batch over all nodes, in messages."""
        return max(min(self.flights // BATCHES, MAX_BATCH_ROWS), MIN_BATCH_ROWS)

    @property
    def ahead_rows(self) -> int:
        """How many rows the producers may be ahead of the archive; more than two batches."""
        return max(int(self.flights * AHEAD_PART), 3 * self.batch_rows)


def check_count(count: int) -> None:
    """Errors: ValueError for a run so short that nothing could be killed in its midst."""
    if count < LEAST_FLIGHTS:
        raise ValueError(f"FLIGHTS={count} is too short a run, at least {LEAST_FLIGHTS} are needed")


def plan_for(flights: pd.DataFrame, out: Path, master: str) -> Plan:
    """The plan for the rows of `data.load`."""
    scheduled: Any = flights["scheduled"]
    return Plan(len(flights), scheduled.iloc[0], scheduled.iloc[-1], out, master)
