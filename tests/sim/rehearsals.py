"""Seeds that are rehearsed one after the other, with one report of all that fail."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from atalanta.sim.scenario import Scenario, ScenarioOutcome
from atalanta.sim.seed_run import ERRORS, Failure, run_seed
from atalanta.sim.subject import Load
from tests.sim.mutants.patching import Mutant

SECONDS = 12.0


def rehearse_all(
    seeds: Iterable[int], nodes: int, seconds: float, grouped: bool = False, networked: bool = False
) -> list[ScenarioOutcome]:
    """The outcomes; fails the test with the reports of all seeds that broke a promise."""
    outcomes: list[ScenarioOutcome] = []
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


def breaks(
    seed: int, nodes: int, load: Load | None = None, grouped: bool = False, networked: bool = False
) -> bool:
    """Returns whether the seed breaks a promise: as `run_seed`, without the second run for the report."""
    try:
        Scenario(seed, nodes, SECONDS, load=load, grouped=grouped, networked=networked).run()
    except ERRORS:
        return True
    return False


def check_found(
    mutant: Mutant,
    patch: pytest.MonkeyPatch,
    seeds: Iterable[int],
    nodes: int,
    load: Load | None = None,
    grouped: bool = False,
    networked: bool = False,
) -> None:
    """Plants the fault, and fails if none of the seeds breaks a promise."""
    mutant(patch)
    if not any(breaks(seed, nodes, load, grouped, networked) for seed in seeds):
        pytest.fail(f"no seed sees {mutant.__name__}")
