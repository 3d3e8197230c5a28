"""A seed has one digest: in every build, under every hash seed, with the history recorded or not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.scenario import Scenario
from atalanta.sim.seed_run import Failure, run_seed
from tests.share import in_one_build
from tests.source_tree import ROOT


def test_a_seed_has_one_digest() -> None:
    assert Scenario(7, 3, 6.0).run().digest == Scenario(7, 3, 6.0).run().digest
    assert Scenario(7, 3, 6.0).run().digest != Scenario(8, 3, 6.0).run().digest


@in_one_build
@pytest.mark.parametrize("hash_seed", ["77", pytest.param("1", marks=pytest.mark.soak)])
def test_a_seed_has_one_digest_in_every_build_and_under_every_hash_seed(hash_seed: str) -> None:
    """The child runs the interpreted sources, this process the compiled build where there is one.

    Nodes may leave in the first two worlds; the third has most subjects, the fourth members that are away for long.
    Who iterates a set of strings gets another order under another hash seed, and the digest shows it.
    """
    program = (
        "from atalanta.runtime.process.build import compiled_modules\n"
        "from atalanta.sim.scenario import Scenario\n"
        "assert not compiled_modules()\n"
        "for seed in (1, 3, 75, 59): print(Scenario(seed, 3, 6.0).run().digest)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": hash_seed}
    found = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert found.stdout.split() == [Scenario(seed, 3, 6.0).run().digest for seed in (1, 3, 75, 59)]


def test_recording_the_history_changes_nothing() -> None:
    silent = Scenario(5, 3, 6.0)
    telling = Scenario(5, 3, 6.0, telling=True)
    assert silent.run().digest == telling.run().digest
    assert not any(line.key for line in silent.world.history)


def test_a_failure_tells_the_message_and_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(ledger: Ledger) -> None:
        raise Violation("p0/1 is lost", "p0/1")

    monkeypatch.setattr(Ledger, "check", lose)
    found = run_seed(5, 3, 6.0)
    assert isinstance(found, Failure)
    assert "replay: python -m atalanta.sim --seed 5 --nodes 3 --seconds 6" in found.report
    history = found.report[found.report.index("history of p0/1") :]
    for step in ("p0 sends p0/1 to n0", "n0: routed orders#", "is confirmed to its sender"):
        assert step in history
    assert "differs" not in found.report
