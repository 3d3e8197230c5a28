"""Whole clusters in the virtual world keep every promise: 64 seeds in `make test`, 96 more in `make soak`.

A failing seed prints the command that replays it and the history of the message concerned.
"""

from __future__ import annotations

import pytest

from atalanta.sim.scenario import Scenario
from atalanta.wire.jgroups_discovery import DNS, FOLDER, HOSTS, MULTICAST
from tests.share import in_one_build
from tests.sim.rehearsals import SECONDS, rehearse_all

CHUNK_SEEDS = 16
CHUNKS = [*range(4), *(pytest.param(chunk, marks=pytest.mark.soak) for chunk in range(4, 10))]


@in_one_build
@pytest.mark.timeout(600)  # For machines that have other things to do.
@pytest.mark.parametrize("chunk", CHUNKS)
def test_no_promise_is_broken(chunk: int) -> None:
    size = CHUNK_SEEDS
    outcomes = rehearse_all(range(1 + chunk * size, 1 + (chunk + 1) * size), 3, SECONDS)
    # The runs are worth something: there were crashes, transactions, forwarding and compaction.
    assert sum(outcome.confirmed for outcome in outcomes) > 100 * size
    assert sum(outcome.crashes for outcome in outcomes) > size
    assert sum(outcome.moved for outcome in outcomes) > 10 * size
    assert sum(outcome.forwarded for outcome in outcomes) > 10 * size
    assert sum(outcome.segments_cleaned for outcome in outcomes) > 5 * size
    assert sum(outcome.departures for outcome in outcomes) >= size // 16
    assert sum(outcome.resumed for outcome in outcomes) > 5 * size
    assert sum(outcome.reattached for outcome in outcomes) >= size // 16
    assert sum(outcome.replays for outcome in outcomes) > 2 * size


@in_one_build
@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_other_sizes_of_cluster(nodes: int) -> None:
    rehearse_all(range(300, 304), nodes, 8.0)


@in_one_build
def test_without_faults_nothing_is_delivered_twice() -> None:
    for seed in range(400, 404):
        scenario = Scenario(seed, 3, 6.0, faults=False)
        outcome = scenario.run()
        # Movers roll back on purpose: only what they had in hand may come again.
        doubled = [key for (queue, key), n in scenario.ledger.delivered.items() if n > 1]
        assert not doubled or outcome.moved, f"seed {seed}: {doubled}"


@pytest.mark.parametrize("kind", ["", MULTICAST, HOSTS, DNS, FOLDER])
def test_clusters_that_meet_at_each_kind_of_place_keep_every_promise(kind: str) -> None:
    scenario = Scenario(3, 3, 6.0)
    scenario.shape.discovery = True
    scenario.shape.stack = kind
    assert scenario.run().confirmed > 0
