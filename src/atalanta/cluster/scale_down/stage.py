"""A stage of a scale-down (cluster/scale_down/stages.py)."""

from __future__ import annotations


class Stage:
    def step(self, now: int) -> bool:
        """Does the work that is possible now. Returns True when nothing is left to do."""
        raise NotImplementedError
