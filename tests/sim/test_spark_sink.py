"""The Spark sink in simulated worlds: every promise is kept, and planted bugs are found."""

from __future__ import annotations

import pytest

from atalanta.runtime.process.build import compiled_modules
from tests.sim.mutants import spark_sinks
from tests.sim.mutants.patching import Mutant
from tests.sim.spark.seeds import check_digest, check_mutant, check_seed
from tests.sim.spark.sink_load import SparkSinks

pytestmark = [
    pytest.mark.skipif(bool(compiled_modules()), reason="the sink is not compiled"),
    pytest.mark.timeout(600),
]
SOAK = pytest.mark.soak
# Seeds 23 and 33 once lost rows: Spark's abort after a failed commit rolled decided branches back.
SEEDS = [2, 5, 23, *(pytest.param(seed, marks=SOAK) for seed in [33, *range(100, 160)])]
# Mutant, first seed, number of seeds.
PLANTED = [
    (spark_sinks.decision_after_commit, 3, 2),
    (spark_sinks.decision_forgets_a_branch, 3, 2),
    (spark_sinks.repeat_commits_its_own_branches, 5, 3),
    pytest.param(spark_sinks.decided_batch_is_not_finished, 1, 4, marks=SOAK),
    pytest.param(spark_sinks.leftovers_stay, 1, 2, marks=SOAK),
    pytest.param(spark_sinks.moved_branch_counts_as_committed, 1, 3, marks=SOAK),
    pytest.param(spark_sinks.abort_rolls_back_what_is_decided, 20, 20, marks=SOAK),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_of_a_finished_batch_arrives_once(seed: int) -> None:
    check_seed(seed, SparkSinks)


def test_a_seed_has_one_digest() -> None:
    check_digest(SparkSinks)


@pytest.mark.parametrize(("mutant", "first", "seeds"), PLANTED)
def test_seeds_find_the_mutant(
    mutant: Mutant, first: int, seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_mutant(mutant, monkeypatch, SparkSinks, first, seeds)
