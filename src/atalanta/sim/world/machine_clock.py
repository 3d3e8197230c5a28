"""The clocks of a simulated machine: they have a rate of their own, are ahead of the world or behind, and may stand."""

from __future__ import annotations

import random
from typing import Final

from atalanta.ha import LastInstant
from atalanta.node import Clock
from atalanta.sim.world.world import EPOCH, SECOND, World

DRIFT_PPM: Final = 50_000
SKEWS_NS: Final = (0, 0, -5 * SECOND, 3 * SECOND)
MILLION: Final = 1_000_000


class MachineClock:
    """The clocks. `node` is that of the node. `stood_still`: they have, since `begin`."""

    def __init__(self, world: World, draw: random.Random) -> None:
        self.world = world
        self.rate_ppm = MILLION + draw.randint(-DRIFT_PPM, DRIFT_PPM)
        self.stood_still = False
        self.unheard_ns = 0  # how long before `begin` the predecessor's clock was heard of
        self.skew_ns = draw.choice(SKEWS_NS)
        self._still_ns = 0  # for how long they have stood
        self._still_since = -1
        self.node = Clock(self.monotonic, self.wall)

    def monotonic(self) -> int:
        """Returns the time of the clock that nobody sets."""
        now = self.world.now if self._still_since < 0 else self._still_since
        return (now - EPOCH - self._still_ns) * self.rate_ppm // MILLION

    def wall(self) -> int:
        """Returns the time that the machine believes."""
        return EPOCH + self.skew_ns + self.monotonic()

    def wait_ns(self, at_ns: int) -> int:
        """Returns how long it takes until the node's clock has reached `at_ns`, in the world's time."""
        return -(-self.node.wait_ns(at_ns) * MILLION // self.rate_ppm)

    def begin(self, last: LastInstant) -> None:
        """Begins the clock of a life of the node; `last` is the last instant of its predecessor's, by `monotonic`."""
        now = self.monotonic()
        self.unheard_ns = now - last.seen_ns if last.seen_ns >= 0 else 0
        self.node.begin(last.at(now))

    def stand(self) -> None:
        """Stops the clocks until `go_on`."""
        self.stood_still = True
        self._still_since = self.world.now

    def go_on(self) -> None:
        """Lets the clocks run, if they stand."""
        if self._still_since >= 0:
            self._still_ns += self.world.now - self._still_since
            self._still_since = -1
