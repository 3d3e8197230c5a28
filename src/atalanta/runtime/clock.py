"""The node's clock: integer nanoseconds since the epoch that never decrease.

The clock adds the monotonic clock to an offset taken at start. If the wall clock is found ahead (a change by
hand or NTP, a suspended machine), the offset grows. If the wall clock is behind, the node's clock keeps running:
the kernel needs order more than the true time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# For nodes with a lease. Where the system has it, this clock counts while the machine is suspended.
STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

# A smaller difference is ordinary drift between the two clocks.
STEP_NS_MIN = 200_000_000


def steady_ns() -> int:
    """Returns nanoseconds of a clock that follows no change of the wall clock, and counts while the machine sleeps."""
    return time.clock_gettime_ns(STEADY)


class Clock:
    """The source of `now()` for every input of the node."""

    def __init__(
        self,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.monotonic_ns = monotonic_ns  # for differences: saves one call
        self._wall_ns = wall_ns
        self._offset_ns = wall_ns() - monotonic_ns()

    def now(self) -> int:
        """Returns nanoseconds since the epoch; never less than an earlier result."""
        return self.monotonic_ns() + self._offset_ns

    def begin_above(self, floor_ns: int) -> None:
        """Moves forward so that `now` is above `floor_ns`: the clock of the process whose messages this one has."""
        self._offset_ns = max(self._offset_ns, floor_ns + 1 - self.monotonic_ns())

    def follow_wall(self) -> int:
        """Moves forward to the wall clock if that is ahead by a step. Returns the step in ns, else 0."""
        ahead = self._wall_ns() - self.now()
        if ahead < STEP_NS_MIN:
            return 0
        self._offset_ns += ahead
        return ahead
