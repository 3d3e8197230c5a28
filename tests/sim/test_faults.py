"""Faults last as long as the load, hit nodes that come back, and end when the world heals."""

from __future__ import annotations

import pytest

from atalanta.sim.checks.ledger import Violation
from atalanta.sim.faults import LONG_RUN_SECONDS, RESTART_NS_MAX
from atalanta.sim.scenario import Scenario
from atalanta.sim.world.world import EPOCH, SECOND

LONG_SECONDS = 1.5 * LONG_RUN_SECONDS


def calm_world(until_seconds: float) -> Scenario:
    """Nodes and clients that have worked for a while, without faults of their own accord."""
    scenario = Scenario(3, 3, 12.0, faults=False)
    for client in [*scenario.producers, *scenario.consumers]:
        scenario.world.at(0, client.start)
    for host in scenario.hosts:
        scenario.world.at(0, host.start)
    scenario.world.run_until(EPOCH + int(until_seconds * SECOND))
    return scenario


def test_a_node_whose_disk_failed_is_started_again() -> None:
    scenario = calm_world(3.0)
    host = scenario.hosts[1]
    host.disk.fail_next_sync()
    scenario.world.run_until(scenario.world.now + RESTART_NS_MAX + SECOND)
    assert scenario.faults.failed_disks == 1
    assert host.up and host.life == 3 and not host.disk.failed


def test_a_node_that_gives_up_on_a_working_disk_breaks_a_promise() -> None:
    scenario = calm_world(3.0)
    host = scenario.hosts[1]
    assert host.node is not None
    host.node.on_disk_failed(scenario.world.now, "nothing at all")
    with pytest.raises(Violation, match="n1 gave up on a disk that works"):
        scenario.world.run_until(scenario.world.now + SECOND)


def test_nothing_that_was_planted_happens_after_the_end() -> None:
    """Neither what waits in disks and timers, nor what was planted on a node that is down."""
    scenario = calm_world(3.0)
    first, second, third = scenario.hosts
    faults = scenario.faults
    first.disk.slow = 2_000
    first.disk.strike_at_commit(2, lambda: faults.crash(first))
    second.crash()
    second.disk.fail_next_sync()
    faults._crash_later(third)
    scenario.world.run_until(scenario.world.now + 1)
    faults.end()
    second.start()
    scenario.world.run_until(scenario.world.now + 5 * SECOND)
    assert (faults.crashes, faults.failed_disks) == (0, 0)
    assert [host.up for host in scenario.hosts] == [True, True, True]


@pytest.mark.soak
def test_faults_and_load_last_for_the_whole_of_a_long_run() -> None:
    scenario = Scenario(3, 3, LONG_SECONDS)
    planned = [producer.total for producer in scenario.producers]
    outcome = scenario.run()
    for begin_seconds in (0.0, LONG_SECONDS / 2):
        begin = EPOCH + int(begin_seconds * SECOND)
        end = begin + int(LONG_SECONDS / 2 * SECOND)
        lines = [line.text for line in scenario.world.history if begin <= line.when < end]
        crashed = [text for text in lines if text.endswith((" crashes", " stops"))]
        assert len(crashed) > 2, f"from {begin_seconds} s: {crashed}"
    for producer, total in zip(scenario.producers, planned, strict=True):
        # Only healing ended the load.
        assert LONG_SECONDS < producer.total < total
    assert outcome.confirmed > 3 * LONG_SECONDS
    assert outcome.replays >= 6
