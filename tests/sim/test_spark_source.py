"""The Spark source in simulated worlds: every message is a row once, and planted bugs are found."""

from __future__ import annotations

import pytest

from atalanta.runtime.process.build import compiled_modules
from tests.sim.mutants import spark_sources
from tests.sim.mutants.patching import Mutant
from tests.sim.spark.fibers import install
from tests.sim.spark.seeds import check_digest, check_mutant, check_seed
from tests.sim.spark.source_load import SparkSource

pytestmark = [
    pytest.mark.skipif(bool(compiled_modules()), reason="the source is not compiled"),
    pytest.mark.timeout(600),
]
SOAK = pytest.mark.soak
# Seed 19 once told a fenced driver of lost data.
SEEDS = [2, 8, *(pytest.param(seed, marks=SOAK) for seed in [19, *range(100, 160)])]
# Mutant, first seed, number of seeds.
PLANTED = [
    (spark_sources.batch_is_acknowledged_when_it_is_planned, 1, 2),
    (spark_sources.lost_range_is_not_looked_at, 113, 1),
    pytest.param(spark_sources.fenced_driver_is_told_of_lost_data, 1, 4, marks=SOAK),
]


@pytest.fixture(autouse=True)
def virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_confirmed_message_is_a_row_once(seed: int) -> None:
    check_seed(seed, SparkSource)


def test_a_seed_has_one_digest() -> None:
    check_digest(SparkSource)


@pytest.mark.parametrize(("mutant", "first", "seeds"), PLANTED)
def test_seeds_find_the_mutant(
    mutant: Mutant, first: int, seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_mutant(mutant, monkeypatch, SparkSource, first, seeds)
