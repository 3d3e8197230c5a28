"""graceful-shutdown-enabled: a stop accepts nobody any more and waits until the clients have left on their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


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


class Departing(Protocol):
    """The node's part that leaves (cluster/scale_down/scale_down.py)."""

    frozen: bool  # clients have been sent away

    def wanted_at_stop(self) -> bool:
        """Whether a stop means to leave for good."""

    def under_way(self) -> bool:
        """Whether it has begun, and has not come to an end."""

    def over(self) -> bool:
        """Whether it has come to an end."""

    def left(self) -> int:
        """Messages that are still here."""
