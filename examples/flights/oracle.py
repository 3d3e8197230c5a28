"""What the results must be: computed by pandas from the packaged file, with nothing of ours in between."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from examples.flights.data import KEY

# The filter of the queue `alerts`, in minutes.
ALERT_DELAY = 60
WINDOW_KEY = ["carrier", "hour"]
WINDOW_FIGURES = ["flights", "departed", "cancelled", "delay_sum", "delay_max"]


@dataclass(frozen=True)
class Oracle:
    """The expected content of the archive, of the windows and of the alerts."""

    flights: pd.DataFrame
    windows: pd.DataFrame
    alerts: pd.DataFrame

    def alerts_by_origin(self) -> dict[str, int]:
        """How many alerts each airport causes."""
        return {str(name): int(count) for name, count in self.alerts["origin"].value_counts().items()}


def expected(flights: pd.DataFrame) -> Oracle:
    """The oracle for the rows of `data.load`."""
    return Oracle(flights, windows(flights), flights[(flights["dep_delay"] > ALERT_DELAY).fillna(False)])


def windows(flights: pd.DataFrame) -> pd.DataFrame:
    """Delay figures by carrier and hour of scheduled departure (UTC). Minutes; `delay_max` may be missing."""
    grouped = flights.assign(hour=flights["scheduled"].dt.floor("h")).groupby(WINDOW_KEY, as_index=False)
    return grouped.agg(
        flights=(KEY, "size"),
        departed=("dep_delay", "count"),
        cancelled=("cancelled", "sum"),
        delay_sum=("dep_delay", "sum"),
        delay_max=("dep_delay", "max"),
    )
