"""graceful-shutdown-enabled: a stop accepts nobody any more and waits until the clients have left on their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class ClientsLeaving:
    """`clients` counts those that are still there, without peers; `timeout_ms` -1 waits for ever, as in Artemis.

    A second signal ends the wait and the node at once.
    """

    timeout_ms: int
    clients: Callable[[], int]

    def deadline(self, now_s: float) -> float:
        """When the wait ends at the latest, by the clock of `now_s`."""
        return math.inf if self.timeout_ms < 0 else now_s + self.timeout_ms / 1_000

    def all_gone(self) -> bool:
        return self.clients() == 0
