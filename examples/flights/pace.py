"""The clock that the airports share: nobody runs far ahead, neither of the others nor of Spark.

Spark's watermark drops what is later than its delay. How late a flight can be depends on how far, in scheduled time,
one node's messages are ahead of another's; with a node away that would be without a bound. So an airport publishes
only what departs at most `lead` after the slowest airport's last confirmed flight.
"""

from __future__ import annotations

from examples.flights.progress import Progress


class Pace:
    """Tells each airport when it may publish a flight, by its departure (ms since the epoch)."""

    def __init__(self, progress: Progress, lead_ms: int, ahead_rows: int, first_ms: int) -> None:
        self.ahead_rows = ahead_rows
        self._progress = progress
        self._lead_ms = lead_ms
        # Of the airports that have flights left: the last confirmed departure.
        self._clocks = dict.fromkeys(progress.published, first_ms)
        # Of those that wait: the departure they wait for.
        self._waiting: dict[str, int] = {}

    def confirmed(self, airport: str, rows: int, departure_ms: int) -> None:
        """`rows` flights of `airport` are confirmed, the last one departs at `departure_ms`."""
        if airport in self._clocks:
            self._clocks[airport] = departure_ms
        self._progress.published[airport] = rows
        self._progress.changed()

    def finished(self, airport: str) -> None:
        """`airport` has no more flights, so nobody waits for it."""
        self._clocks.pop(airport, None)
        self._progress.changed()

    def allows(self, airport: str, departure_ms: int) -> bool:
        """May `airport` publish the flight that departs at `departure_ms` now?"""
        if self.ahead() > self.ahead_rows:
            return False
        others = [clock for code, clock in self._clocks.items() if code != airport]
        return not others or departure_ms <= min(others) + self._lead_ms

    def let_ahead(self, rows: int) -> None:
        """From now on the airports may be `rows` more ahead of the archive than they are now: who waits looks again."""
        self.ahead_rows = max(self.ahead_rows, self.ahead() + rows)
        self._progress.changed()

    def ahead(self) -> int:
        """How many rows the airports are ahead of the archive."""
        return self._progress.published_rows - self._progress.archived

    def holds(self, *airports: str) -> bool:
        """Is each of the airports at its end, or waiting for something that has not come yet?"""
        return not any(
            code in self._clocks and (code not in self._waiting or self.allows(code, self._waiting[code]))
            for code in airports
        )

    async def turn(self, airport: str, departure_ms: int) -> None:
        """Waits until the airport may publish the flight that departs at `departure_ms`."""
        if self.allows(airport, departure_ms):
            return
        self._waiting[airport] = departure_ms
        self._progress.changed()
        try:
            await self._progress.until(lambda: self.allows(airport, departure_ms))
        finally:
            del self._waiting[airport]
