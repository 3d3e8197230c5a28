"""Replicated groups in the virtual world keep every promise."""

from __future__ import annotations

import pytest

from atalanta.sim.scenario import Scenario
from tests.share import in_one_build
from tests.sim.rehearsals import SECONDS, rehearse_all
from tests.sim.worlds import (
    group_that_loses_power_at_deletions,
    pair_whose_connection_breaks,
    pair_whose_started_processes_end,
)

WORLDS = 20
CHUNKS = [1, *(pytest.param(first, marks=pytest.mark.soak) for first in range(1001, 2000, 100))]
CLUSTERS = [1, *(pytest.param(first, marks=pytest.mark.soak) for first in range(101, 200, 20))]


@in_one_build
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", CHUNKS)
def test_no_promise_is_broken_in_a_group(first: int) -> None:
    seeds = range(first, first + (WORLDS if first == 1 else 100))
    outcomes = rehearse_all(seeds, 1, SECONDS, True)
    # The runs are worth something: members took over, and others found that they were deposed.
    assert sum(outcome.confirmed for outcome in outcomes) > 20 * WORLDS
    assert sum(outcome.failovers for outcome in outcomes) > WORLDS
    assert sum(outcome.lost_epochs for outcome in outcomes) > 0


@in_one_build
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", CLUSTERS)
def test_no_promise_is_broken_in_a_cluster_with_a_group(first: int) -> None:
    seeds = range(first, first + (4 if first == 1 else 20))
    outcomes = rehearse_all(seeds, 3, SECONDS, True)
    assert sum(outcome.failovers for outcome in outcomes) > 0


def test_a_seed_with_a_group_has_one_digest() -> None:
    first = Scenario(3, 1, 6.0, grouped=True).run()
    assert first.digest == Scenario(3, 1, 6.0, telling=True, grouped=True).run().digest


def test_a_group_needs_no_faults() -> None:
    for seed in (1, 2, 4):
        outcome = Scenario(seed, 1, 4.0, faults=False, grouped=True).run()
        assert (outcome.failovers, outcome.lost_epochs) == (0, 0)
        assert outcome.confirmed > 0


def test_clients_wait_at_a_passive_member_while_it_may_soon_serve() -> None:
    scenario = pair_whose_connection_breaks(1)
    assert scenario.run().failovers == 0
    [group] = scenario.groups
    assert sum(machine.backlog.waits for machine in group.machines) > 0


@pytest.mark.parametrize("seed", [3, 8, 11])
def test_after_the_end_of_what_was_started_nobody_waits_for_the_lease(seed: int) -> None:
    outcome = pair_whose_started_processes_end(seed).run()
    assert outcome.failovers == 4 and outcome.confirmed > 20


def test_power_losses_at_deletions_lose_nothing() -> None:
    assert group_that_loses_power_at_deletions(4).run().failovers > 4


def test_a_torn_page_file_that_nobody_needs_is_deleted() -> None:
    """It was not among the files that the follower told, and so stayed for ever."""
    rehearse_all([1254], 1, SECONDS, True)
