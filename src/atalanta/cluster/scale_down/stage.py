"""One step of what a leaving node does (cluster/scale_down/stages.py)."""

from __future__ import annotations


class Stage:
    def step(self, now: int) -> bool:
        """Do what can be done now; True when there is nothing left to do."""
        raise NotImplementedError

    def stuck(self) -> bool:
        """Not done, since the target has no room for what comes next; other stages of its kind may go on meanwhile."""
        return False
