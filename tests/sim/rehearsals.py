"""Seeds that are rehearsed one after the other, with one report of all that fail."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from atalanta.sim.scenario import Outcome
from atalanta.sim.seed_run import Failure, run_seed

SECONDS = 12.0


def rehearse_all(
    seeds: Iterable[int], nodes: int, seconds: float, grouped: bool = False, networked: bool = False
) -> list[Outcome]:
    """The outcomes; fails the test with the reports of all seeds that broke a promise."""
    outcomes: list[Outcome] = []
    reports: list[str] = []
    for seed in seeds:
        found = run_seed(seed, nodes, seconds, grouped=grouped, networked=networked)
        if isinstance(found, Failure):
            reports.append(found.report)
        else:
            outcomes.append(found)
    if reports:
        pytest.fail("\n\n".join(reports), pytrace=False)
    return outcomes
