"""graceful-shutdown-enabled: a stop accepts no new clients and waits until the existing ones have disconnected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class GracefulShutdown:
    """The wait for clients. `clients` counts connected clients, without cluster peers. `timeout_ms` -1 waits for
    ever, as in Artemis.

    A second signal ends the wait and the node at once.
    """

    timeout_ms: int
    clients: Callable[[], int]

    def deadline(self, now_s: float) -> float:
        """Returns the latest end of the wait, on the clock of `now_s`."""
        return math.inf if self.timeout_ms < 0 else now_s + self.timeout_ms / 1_000

    def all_gone(self) -> bool:
        return self.clients() == 0


class ScaleDownAtStop(Protocol):
    """The scale-down of the node (cluster/scale_down/scale_down.py)."""

    frozen: bool  # clients were redirected to other nodes

    def wanted_at_stop(self) -> bool:
        """Returns whether a stop includes scale-down."""

    def under_way(self) -> bool:
        """Returns whether scale-down has begun and has not ended."""

    def over(self) -> bool:
        """Returns whether scale-down has ended."""

    def left(self) -> int:
        """Returns the number of messages that are still on this node."""
