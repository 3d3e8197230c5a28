"""Whole clusters in the virtual world: 160 seeds keep every promise, and one seed tells one story.

A failing seed prints the command that replays it and the story of the message concerned.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.rehearsal import Failure, rehearse
from atalanta.sim.scenario import Outcome, Scenario
from atalanta.wire.jgroups_discovery import DNS, FOLDER, HOSTS, MULTICAST
from tests.sim.share import share
from tests.source_tree import ROOT

SEEDS = 160
CHUNKS = 10
SECONDS = 12.0
LISTED = Path(__file__).with_name("seeds.txt")
LISTED_AT_ONCE = 10


def rehearse_all(seeds: range, nodes: int, seconds: float) -> list[Outcome]:
    """The outcomes; fails the test with the reports of all seeds that broke a promise."""
    outcomes: list[Outcome] = []
    reports: list[str] = []
    for seed in seeds:
        found = rehearse(seed, nodes, seconds)
        if isinstance(found, Failure):
            reports.append(found.report)
        else:
            outcomes.append(found)
    if reports:
        pytest.fail("\n\n".join(reports), pytrace=False)
    return outcomes


@pytest.mark.timeout(600)  # For machines that have other things to do.
@pytest.mark.parametrize("chunk", share(range(CHUNKS)))
def test_no_promise_is_broken(chunk: int) -> None:
    size = SEEDS // CHUNKS
    outcomes = rehearse_all(range(1 + chunk * size, 1 + (chunk + 1) * size), 3, SECONDS)
    # The runs are worth something: there were crashes, transactions, forwarding and compaction.
    assert sum(outcome.confirmed for outcome in outcomes) > 100 * size
    assert sum(outcome.crashes for outcome in outcomes) > size
    assert sum(outcome.moved for outcome in outcomes) > 10 * size
    assert sum(outcome.forwarded for outcome in outcomes) > 10 * size
    assert sum(outcome.segments_cleaned for outcome in outcomes) > 5 * size
    assert sum(outcome.departures for outcome in outcomes) > size // 8
    assert sum(outcome.resumed for outcome in outcomes) > 5 * size
    assert sum(outcome.reattached for outcome in outcomes) > size // 8
    assert sum(outcome.replays for outcome in outcomes) > 2 * size


def listed_seeds() -> list[tuple[int, int, float]]:
    """(seed, nodes, seconds) of every line of seeds.txt."""
    found = []
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if words:
            nodes = int(words[1]) if len(words) > 1 else 3
            found.append((int(words[0]), nodes, float(words[2]) if len(words) > 2 else SECONDS))
    return found


@pytest.mark.parametrize("first", range(0, len(listed_seeds()), LISTED_AT_ONCE))
def test_seeds_that_once_failed(first: int) -> None:
    for seed, nodes, seconds in listed_seeds()[first : first + LISTED_AT_ONCE]:
        rehearse_all(range(seed, seed + 1), nodes, seconds)


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_other_sizes_of_cluster(nodes: int) -> None:
    rehearse_all(range(300, 304), nodes, 8.0)


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
    scenario.shape.meeting = kind
    assert scenario.run().confirmed > 0


# -- one seed, one digest -------------------------------------------------------------------------
def test_a_seed_has_one_digest() -> None:
    assert Scenario(7, 3, 6.0).run().digest == Scenario(7, 3, 6.0).run().digest
    assert Scenario(7, 3, 6.0).run().digest != Scenario(8, 3, 6.0).run().digest


@pytest.mark.parametrize("hash_seed", ["1", "77"])
def test_a_seed_has_one_digest_in_every_build_and_under_every_hash_seed(hash_seed: str) -> None:
    """The child runs the interpreted sources; `make test` runs this test in the compiled build as well.

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


# -- a failure explains itself --------------------------------------------------------------------
def test_telling_the_story_changes_nothing() -> None:
    silent = Scenario(5, 3, 6.0)
    telling = Scenario(5, 3, 6.0, telling=True)
    assert silent.run().digest == telling.run().digest
    assert not any(line.key for line in silent.world.story)


def test_a_failure_tells_the_message_and_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(ledger: Ledger) -> None:
        raise Violation("p0/1 is lost", "p0/1")

    monkeypatch.setattr(Ledger, "check", lose)
    found = rehearse(5, 3, 6.0)
    assert isinstance(found, Failure)
    assert "replay: python -m atalanta.sim --seed 5 --nodes 3 --seconds 6" in found.report
    story = found.report[found.report.index("story of p0/1") :]
    for step in ("p0 sends p0/1 to n0", "n0: routed orders#", "is confirmed to its sender"):
        assert step in story
    assert "differs" not in found.report
