"""A figure of ours beside Artemis', and what it has to reach."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from statistics import median
from typing import Any


class Goal(Enum):
    """How `Figure.target` is meant."""

    NONE = "none"
    RATIO = "ratio"  # at least so many times better than Artemis
    NO_WORSE = "no_worse"  # our median is not worse than Artemis' worst run (noise)
    AT_MOST = "at_most"  # the median itself
    AT_MOST_AND_BETTER = "at_most_and_better"  # and better than Artemis


@dataclass
class Figure:
    """Run i of `ours` was beside run i of `theirs`; `theirs` is empty where only we are measured."""

    scenario: str
    name: str
    unit: str
    goal: Goal = Goal.NONE
    target: float = 0.0
    lower_is_better: bool = False
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    note: str = ""
    when: str = ""  # UTC

    def ratios(self) -> list[float]:
        """How many times better each run was, whichever direction is better."""
        pairs = zip(self.ours, self.theirs, strict=False)
        if self.lower_is_better:
            return [theirs / ours for ours, theirs in pairs if ours > 0]
        return [ours / theirs for ours, theirs in pairs if theirs > 0]

    def reached(self) -> bool | None:
        """None: there is no target, or no figure to hold against it."""
        if self.goal is Goal.NONE or not self.ours:
            return None
        if self.goal is Goal.AT_MOST:
            return median(self.ours) <= self.target
        ratios = self.ratios()
        if not ratios:
            return None
        if self.goal is Goal.RATIO:
            return median(ratios) >= self.target
        if self.goal is Goal.NO_WORSE:
            if self.lower_is_better:
                return median(self.ours) <= max(self.theirs)
            return median(self.ours) >= min(self.theirs)
        return median(self.ours) <= self.target and median(ratios) > 1

    def wanted(self) -> str:
        """The target in words."""
        if self.goal is Goal.RATIO:
            return f"≥ {self.target:g} ×"
        if self.goal is Goal.NO_WORSE:
            return "not worse"
        if self.goal is Goal.AT_MOST:
            return f"≤ {self.target:g} {self.unit}".strip()
        if self.goal is Goal.AT_MOST_AND_BETTER:
            return f"≤ {self.target:g} {self.unit}, better"
        return "–"

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "goal": self.goal.value, "reached": self.reached()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Figure:
        """What `as_json` made."""
        known = {name: value for name, value in values.items() if name != "reached"}
        return cls(**{**known, "goal": Goal(values["goal"])})


def spread(values: list[float]) -> str:
    """Median, and from where to where the runs went."""
    if not values:
        return "–"
    middle = shown(median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({shown(min(values))}–{shown(max(values))})"


def shown(value: float) -> str:
    """Three digits that matter, thousands apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
