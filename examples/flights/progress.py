"""What has been seen so far: the counters that pace the producers, trigger the faults and fill the bars."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Progress:
    """Counters of rows; `until` waits for a condition over them."""

    def __init__(self, airports: list[str]) -> None:
        self.published = dict.fromkeys(airports, 0)
        self.archived = 0
        self.averaged = 0
        self.windows_saved = 0
        self.alerts = 0
        self._changed = asyncio.Event()

    @property
    def published_rows(self) -> int:
        """Confirmed by the nodes, all airports."""
        return sum(self.published.values())

    def figures(self) -> tuple[int, ...]:
        """All counters."""
        return (self.published_rows, self.alerts, self.archived, self.averaged, self.windows_saved)

    def changed(self) -> None:
        """To be called after every change of a counter."""
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns as soon as `condition` holds after a change, or at once."""
        while not condition():
            self._changed.clear()
            await self._changed.wait()
