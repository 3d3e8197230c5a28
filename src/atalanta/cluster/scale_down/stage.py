"""A stage of a scale-down (cluster/scale_down/stages.py)."""

from __future__ import annotations


class Stage:
    def step(self, now: int) -> bool:
        """Does the work that is possible now. Returns True when nothing is left to do."""
        raise NotImplementedError

    def stuck(self) -> bool:
        """Returns True if the target has no room for the next message. Other stages of the same class may run
        meanwhile."""
        return False
