"""One small scenario, crashed at each of its commits in turn: nothing about commits and crashes is left to chance."""

from __future__ import annotations

from collections.abc import Iterator

from atalanta.sim.checks.ledger import Violation
from atalanta.sim.clients.mover import OrderMover
from atalanta.sim.scenario import Scenario, history_of

SECONDS = 4.0
SMALLEST_BLOCK_BYTES = 64
LITTLE_MEMORY_BYTES = 2_000  # where nearly every message goes through a page file


def small_world(nodes: int, pages: bool, telling: bool = False) -> Scenario:
    """Without faults of its own; every record is a commit, and orders are moved in transactions."""
    for seed in range(1, 1_000):
        scenario = Scenario(seed, nodes, SECONDS, faults=False, telling=telling)
        moves = any(isinstance(client, OrderMover) for client in scenario.consumers)
        small = (
            scenario.shape.block_bytes == SMALLEST_BLOCK_BYTES
            and scenario.shape.segment_bytes == 4_096
        )
        if pages != (scenario.shape.memory_bytes < LITTLE_MEMORY_BYTES):
            continue
        if small and moves and not scenario.late:
            return scenario
    raise AssertionError("no seed has that shape")


def commits_of(nodes: int, pages: bool) -> int:
    """Commits of the first node in a run without a crash."""
    scenario = small_world(nodes, pages)
    scenario.run()
    return scenario.hosts[0].disk.commits


def crash_at(nodes: int, pages: bool, commit: int, telling: bool = False) -> Scenario:
    scenario = small_world(nodes, pages, telling)
    host = scenario.hosts[0]
    host.disk.strike_at_commit(commit, lambda: scenario.faults.crash(host))
    return scenario


def violations(nodes: int, pages: bool, step: int) -> Iterator[str]:
    """Reports of the crash points (every `step`-th) that break a promise, one after the other."""
    for commit in range(1, commits_of(nodes, pages) + 1, step):
        try:
            crash_at(nodes, pages, commit).run()
        except AssertionError as violation:
            yield f"crash at commit {commit}: {violation}\n{_history(nodes, pages, commit)}"


def _history(nodes: int, pages: bool, commit: int) -> str:
    scenario = crash_at(nodes, pages, commit, telling=True)
    try:
        scenario.run()
    except AssertionError as violation:
        key = violation.key if isinstance(violation, Violation) else ""
        return "\n".join(history_of(scenario, key))
    return "the second run kept its promises: the world is not deterministic"
