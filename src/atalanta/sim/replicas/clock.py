"""The clock of a simulated machine: it has a rate of its own, is ahead of the world's or behind it, and may stand."""

from __future__ import annotations

import random
from typing import Final

from atalanta.sim.world.world import EPOCH, SECOND, World

DRIFT_PPM: Final = 50_000
SKEWS_NS: Final = (0, 0, -5 * SECOND, 3 * SECOND)
MILLION: Final = 1_000_000


class MachineClock:
    """The clock. `stood_still`: it has, since `begin_above`."""

    def __init__(self, world: World, draw: random.Random) -> None:
        self.world = world
        self.rate_ppm = MILLION + draw.randint(-DRIFT_PPM, DRIFT_PPM)
        self.stood_still = False
        self._skew_ns = draw.choice(SKEWS_NS)
        self._still_ns = 0  # for how long it has stood
        self._still_since = -1

    def now(self) -> int:
        """Returns its time."""
        now = self.world.now if self._still_since < 0 else self._still_since
        return EPOCH + self._skew_ns + (now - EPOCH - self._still_ns) * self.rate_ppm // MILLION

    def begin_above(self, floor_ns: int) -> None:
        """Sets the clock above `floor_ns`."""
        self._skew_ns += max(0, floor_ns + 1 - self.now())
        self.stood_still = False

    def stand(self) -> None:
        """Stops the clock until `go_on`."""
        self.stood_still = True
        self._still_since = self.world.now

    def go_on(self) -> None:
        """Lets the clock run, if it stands."""
        if self._still_since >= 0:
            self._still_ns += self.world.now - self._still_since
            self._still_since = -1
