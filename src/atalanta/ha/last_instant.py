"""The last instant of an active node's clock, as its successor knows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LastInstant:
    """`clock_ns`: what the clock of the active node has shown last, in nanoseconds since 1970, as far as it is known.

    `seen_ns`: when this process has learned it, by its own monotonic clock; -1 if it was not watching.
    """

    clock_ns: int
    seen_ns: int = -1

    def at(self, monotonic_ns: int) -> int:
        """Returns what that clock would show at an instant of the own monotonic clock."""
        return self.clock_ns if self.seen_ns < 0 else self.clock_ns + max(0, monotonic_ns - self.seen_ns)


# Nobody is known to have served before.
NO_INSTANT = LastInstant(0)
