"""Consumers of a queue at all members of a cluster, for a virtual hour: nothing lost, doubled, or left at the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.cluster import OFF, ON_DEMAND
from atalanta.sim.loads.members import MembersLoad
from atalanta.sim.scenario import Scenario
from tests.share import in_one_build
from tests.sim.rehearsals import SECONDS, rehearse_all
from tests.sim.worlds import seeds_that

HOUR_SECONDS = 3600.0
NODES = 3


def with_members(fit: Callable[[Scenario], bool]) -> Callable[[int], bool]:
    """Returns the seeds that have such consumers, and fit."""

    def fits(seed: int) -> bool:
        scenario = Scenario(seed, NODES, SECONDS)
        return any(type(each) is MembersLoad for each in scenario.subjects) and fit(scenario)

    return fits


def drained(scenario: Scenario, mode: str) -> bool:
    return scenario.shape.mode == mode and scenario.shape.departures


def taken_over(scenario: Scenario) -> bool:
    return scenario.pair is not None


@in_one_build
@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "fit",
    [
        pytest.param(lambda scenario: drained(scenario, OFF), id="scale-down at OFF"),
        pytest.param(lambda scenario: drained(scenario, ON_DEMAND), id="scale-down at ON_DEMAND"),
        pytest.param(taken_over, id="takeovers"),
    ],
)
def test_an_hour_of_consumers_at_all_members(fit: Callable[[Scenario], bool]) -> None:
    worlds = int(HOUR_SECONDS / SECONDS / 3)
    outcomes = rehearse_all(seeds_that(with_members(fit), 1, worlds), NODES, SECONDS)
    assert sum(outcome.crashes for outcome in outcomes) > worlds
