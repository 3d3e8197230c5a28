"""One step of what a leaving node does (scale_down_stages.py)."""

from __future__ import annotations


class Stage:
    def step(self, now: int) -> bool:
        """Do what can be done now; True when there is nothing left to do."""
        raise NotImplementedError
