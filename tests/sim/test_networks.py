"""Networks of brokers with failover clients in the virtual world keep every promise."""

from __future__ import annotations

import pytest

from atalanta.sim.scenario import Scenario
from tests.share import in_one_build
from tests.sim.rehearsals import SECONDS, rehearse_all

WORLDS = 4
CHUNKS = [1, *(pytest.param(first, marks=pytest.mark.soak) for first in range(1001, 1300, 50))]


@in_one_build
@pytest.mark.timeout(600)
@pytest.mark.parametrize("nodes", [2, 3, pytest.param(4, marks=pytest.mark.soak)])
@pytest.mark.parametrize("first", CHUNKS)
def test_no_promise_is_broken_in_a_network(first: int, nodes: int) -> None:
    seeds = range(first, first + (WORLDS if first == 1 else 50))
    outcomes = rehearse_all(seeds, nodes, SECONDS, networked=True)
    # The runs are worth something: messages crossed bridges, clients failed over, transactions were committed.
    assert sum(outcome.forwarded for outcome in outcomes) > 3 * WORLDS
    assert sum(outcome.followed for outcome in outcomes) > 3 * WORLDS
    assert sum(outcome.crashes for outcome in outcomes) > 0


def test_a_network_without_faults_doubles_nothing() -> None:
    for seed in (2, 3, 5):
        outcome = Scenario(seed, 3, 6.0, faults=False, networked=True).run()
        assert outcome.doubled == 0
        assert outcome.forwarded > 0


def test_a_seed_with_a_network_has_one_digest() -> None:
    first = Scenario(3, 3, 6.0, networked=True).run()
    assert first.digest == Scenario(3, 3, 6.0, telling=True, networked=True).run().digest
