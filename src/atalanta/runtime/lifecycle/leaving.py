"""A node that gives its messages to another before it ends: what the shell waits for at a stop.

The waiting has no limit of its own here: the node has one (scale-down-timeout). A second signal ends it at once.
"""

from __future__ import annotations

from typing import Protocol


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
