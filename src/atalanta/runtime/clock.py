"""The node's clock: integer nanoseconds since the epoch that never go back.

It counts on the monotonic clock from an anchor taken at start. When the wall clock is found ahead
(a step by hand or NTP, a suspended machine) the anchor moves forward; when it is behind, our clock
keeps running: order matters more to the kernel than the true hour.
"""

from __future__ import annotations

import time
from collections.abc import Callable

# Below this a difference is ordinary drift of the two clocks against each other.
STEP_NS_MIN = 200_000_000


class Clock:
    """`now()` for every input of the node."""

    def __init__(
        self,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.monotonic_ns = monotonic_ns  # for differences: one call less
        self._wall_ns = wall_ns
        self._offset_ns = wall_ns() - monotonic_ns()

    def now(self) -> int:
        """Nanoseconds since the epoch; never less than what an earlier call returned."""
        return self.monotonic_ns() + self._offset_ns

    def follow_wall(self) -> int:
        """Moves forward to the wall clock when that is ahead by a step; returns the step in ns."""
        ahead = self._wall_ns() - self.now()
        if ahead < STEP_NS_MIN:
            return 0
        self._offset_ns += ahead
        return ahead
