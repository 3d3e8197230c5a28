"""The runs of seeds with a load of Spark."""

from __future__ import annotations

import pytest

from atalanta.sim.scenario import Scenario
from atalanta.sim.seed_run import Failure, run_seed
from atalanta.sim.subject import Subject
from tests.sim.mutants.patching import Mutant
from tests.sim.rehearsals import SECONDS, check_found

NODES = 3


def check_seed(seed: int, load: type[Subject]) -> None:
    """Fails with the report of a broken promise."""
    found = run_seed(seed, NODES, SECONDS, load=load)
    assert not isinstance(found, Failure), found.report


def check_digest(load: type[Subject]) -> None:
    """Fails if a seed does not give the same run twice."""
    assert len({Scenario(5, NODES, 4.0, load=load).run().digest for _ in range(2)}) == 1


def check_mutant(
    mutant: Mutant, patch: pytest.MonkeyPatch, load: type[Subject], first: int, seeds: int
) -> None:
    """Fails if none of the seeds finds the planted fault."""
    check_found(mutant, patch, range(first, first + seeds), NODES, load)
