"""Pairs with a shared folder in the virtual world keep every promise."""

from __future__ import annotations

import pytest

from atalanta.sim.scenario import Scenario
from tests.share import in_one_build
from tests.sim.rehearsals import SECONDS, rehearse_all
from tests.sim.worlds import seeds_with_pairs, world_with_pauses_in_commits

WORLDS = 6
CHUNKS = [1000, *(pytest.param(first, marks=pytest.mark.soak) for first in range(1100, 2000, 100))]


@in_one_build
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", CHUNKS)
def test_no_promise_is_broken_in_worlds_with_pairs(first: int) -> None:
    outcomes = rehearse_all(seeds_with_pairs(first, WORLDS), 3, SECONDS)
    # The runs are worth something: machines took over, and others found that they had lost their epoch.
    assert sum(outcome.confirmed for outcome in outcomes) > 100 * WORLDS
    assert sum(outcome.failovers for outcome in outcomes) > WORLDS
    assert sum(outcome.lost_epochs for outcome in outcomes) > 0


def test_a_seed_with_a_pair_has_one_digest() -> None:
    seed = next(iter(seeds_with_pairs(1, 1)))
    first = Scenario(seed, 3, 6.0).run()
    assert first.failovers >= 0
    assert first.digest == Scenario(seed, 3, 6.0, telling=True).run().digest


def test_pauses_in_the_middle_of_commits_lose_nothing() -> None:
    for seed in seeds_with_pairs(4, 2):
        outcome = world_with_pauses_in_commits(seed).run()
        assert (outcome.failovers, outcome.lost_epochs) == (2, 2)


def test_a_pair_needs_no_faults() -> None:
    for seed in seeds_with_pairs(400, 2):
        outcome = Scenario(seed, 3, 4.0, faults=False).run()
        assert (outcome.failovers, outcome.lost_epochs) == (0, 0)
        assert outcome.confirmed > 0
