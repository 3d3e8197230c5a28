"""The node's clock: integer nanoseconds since 1970 that never decrease while the node runs.

The clock adds the monotonic clock to an offset. It begins at the wall clock, or at the last instant of the node's
predecessor, if that is later. While it is ahead of the wall clock it runs at half speed, until both meet; what is more
than a minute ahead is given back at once at the begin. If the wall clock is found ahead (a change by hand or NTP, a
suspended machine), the offset grows.

Nothing takes its order from this clock (kernel/broker/reserved_ids.py), and no lease is counted by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# A smaller difference is ordinary drift between the two clocks.
STEP_NS_MIN: Final = 200_000_000
# What a clock gives back at half speed. More would make every interval late for too long.
AHEAD_NS_MAX: Final = 60_000_000_000


class Clock:
    """The source of `now()` for every input of the node. Both shells give it their clocks."""

    def __init__(self, monotonic_ns: Callable[[], int], wall_ns: Callable[[], int]) -> None:
        self.monotonic_ns = monotonic_ns  # for differences: saves one call
        self._wall_ns = wall_ns
        self._offset_ns = wall_ns() - monotonic_ns()  # at full speed
        # Until this instant of the monotonic clock it runs at half speed, and is ahead by half of what is left.
        self._slow_until_ns = 0

    def now(self) -> int:
        """Returns nanoseconds since 1970; never less than an earlier result since `begin`."""
        monotonic = self.monotonic_ns()
        if monotonic < self._slow_until_ns:
            return monotonic + self._offset_ns + (self._slow_until_ns - monotonic) // 2
        return monotonic + self._offset_ns

    def wait_ns(self, at_ns: int) -> int:
        """Returns the time until `now` reaches this instant, in ns of the monotonic clock; at most 0 if it has."""
        monotonic = self.monotonic_ns()
        at = at_ns - self._offset_ns
        if at < self._slow_until_ns and monotonic < self._slow_until_ns:
            at = 2 * at - self._slow_until_ns
        return at - monotonic

    def begin(self, last_ns: int = 0) -> int:
        """Begins a life of the node at the wall clock, or at the last instant of its predecessor if that is later.

        Returns 0, or by how much (ns) that is further ahead than a minute: then it begins at the wall clock.
        """
        ahead_ns = last_ns - self._wall_ns()
        self._set_ahead(ahead_ns if 0 < ahead_ns <= AHEAD_NS_MAX else 0)
        return ahead_ns if ahead_ns > AHEAD_NS_MAX else 0

    def follow_wall(self) -> int:
        """Moves forward to the wall clock if that is ahead by a step, and returns the step in ns.

        If the wall clock is behind by a step, the clock runs at half speed. By more than a minute: it runs on as
        before, and the result is negative: how far the wall clock is behind. Else the result is 0.
        """
        step_ns = self._wall_ns() - self.now()
        if step_ns < -AHEAD_NS_MAX:
            return step_ns
        if step_ns >= STEP_NS_MIN or step_ns <= -STEP_NS_MIN:
            self._set_ahead(max(0, -step_ns))
        return max(0, step_ns) if step_ns >= STEP_NS_MIN else 0

    def _set_ahead(self, ahead_ns: int) -> None:
        """Sets the clock to so much more than the wall clock, and lets them meet."""
        monotonic = self.monotonic_ns()
        self._offset_ns = self._wall_ns() - monotonic
        self._slow_until_ns = monotonic + 2 * ahead_ns if ahead_ns > 0 else 0
