"""The clock that the airports share: nobody runs far ahead, neither of the others nor of Spark.

Spark's watermark drops what is later than its delay. How late a flight can be depends on how far, in scheduled time,
one node's messages are ahead of another's; with a node away that would be without a bound. So an airport publishes
only what departs at most `lead` after the slowest airport's last confirmed flight.
"""

from __future__ import annotations

from examples.flights.progress import Progress


class Pace:
    """Tells each airport up to which departure (ms since the epoch) it may publish."""

    def __init__(self, progress: Progress, lead_ms: int, ahead_rows: int, first_ms: int) -> None:
        self.ahead_rows = ahead_rows
        self._progress = progress
        self._lead_ms = lead_ms
        self._clocks = dict.fromkeys(progress.published, first_ms)
        self._running = dict.fromkeys(progress.published, True)
        self._held = dict.fromkeys(progress.published, False)

    def confirmed(self, airport: str, rows: int, departure_ms: int) -> None:
        """`rows` flights of `airport` are confirmed, the last one departs at `departure_ms`."""
        self._clocks[airport] = departure_ms
        self._progress.published[airport] = rows
        self._progress.changed()

    def finished(self, airport: str) -> None:
        """`airport` has no more flights, so nobody waits for it."""
        self._running[airport] = False
        self._progress.changed()

    def all_wait_for(self, airport: str) -> bool:
        """Is `airport` the slowest, and are all the others finished or waiting?"""
        running = {code: self._clocks[code] for code, runs in self._running.items() if runs}
        if running.get(airport, -1) != min(running.values(), default=0):
            return False
        return all(self._held[code] for code in running if code != airport)

    def horizon_ms(self) -> int | None:
        """Nobody may publish what departs later; None without a limit."""
        running = [self._clocks[airport] for airport, runs in self._running.items() if runs]
        return min(running) + self._lead_ms if running else None

    def allows(self, departure_ms: int) -> bool:
        """May the flight that departs at `departure_ms` be published now?"""
        if self._progress.published_rows - self._progress.archived > self.ahead_rows:
            return False
        horizon = self.horizon_ms()
        return horizon is None or departure_ms <= horizon

    async def turn(self, airport: str, departure_ms: int) -> None:
        """Waits until the airport may publish the flight that departs at `departure_ms`."""
        if self.allows(departure_ms):
            return
        self._held[airport] = True
        self._progress.changed()
        try:
            await self._progress.until(lambda: self.allows(departure_ms))
        finally:
            self._held[airport] = False
