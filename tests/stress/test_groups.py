"""Replicated groups of two under the faults of test_pairs.py: each process has a disk of its own, and the backup has
what the primary has confirmed.
"""

from __future__ import annotations

import pytest

from tests.stress.faults import KILL, KILL_AFTER, STOP, STOP_AFTER, TEAR, Plan
from tests.stress.killed_node import Points, spread
from tests.stress.killed_pair import Pairs, PoweredPrimary, ReplicatedPair
from tests.stress.node_process import Launcher
from tests.stress.power import PowerDisk

# The short form is tests/app/test_replication.py.
pytestmark = [pytest.mark.process, pytest.mark.soak, pytest.mark.timeout(3600)]

# Calls of a backup from its start to a long time behind its takeover: it writes from the beginning.
BEGUN_CALLS = 60
BACKUP_CALLS = 700


@pytest.fixture(scope="module")
def groups(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    return Pairs(launcher, tmp_path_factory.mktemp("groups"), kind=ReplicatedPair)


def test_200_killed_primaries(groups: Pairs) -> None:
    points = Points()
    for plan in spread(groups.calls, 200):
        groups.kill(plan, points)
    print(points.report())
    assert points.missed <= 20, points.report()


def test_50_primaries_that_stood_still_until_the_replica_served(groups: Pairs) -> None:
    points = Points()
    for index in range(50):
        groups.pause(Plan(index * groups.calls // 50, (STOP, STOP_AFTER)[index % 2]), points)
    print(points.report())
    assert points.missed <= 5, points.report()


def test_pauses_of_a_primary_from_1_to_60_seconds(
    launcher: Launcher, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With the lease as it is without configuration: after a short pause the primary goes on."""
    points = Points()
    groups = Pairs(launcher, tmp_path_factory.mktemp("pauses"), lease_ms=2_000, kind=ReplicatedPair)
    for index, pause_s in enumerate((1, 2, 3, 5, 8, 13, 20, 30, 45, 60)):
        groups.pause(Plan((index + 1) * groups.calls // 12, STOP), points, pause_s, taken_over=pause_s >= 5)
    print(points.report())


@pytest.mark.parametrize("kind", [ReplicatedPair, PoweredPrimary], ids=["both", "primary"])
def test_50_power_losses(
    launcher: Launcher, disk: PowerDisk, tmp_path_factory: pytest.TempPathFactory, kind: type[ReplicatedPair]
) -> None:
    """Power losses of both members at once; of the primary, which comes back and serves when the backup is killed."""
    points = Points()
    groups = Pairs(launcher, tmp_path_factory.mktemp("power"), 2_000, disk, kind)
    for index in range(50):
        groups.lose_power(Plan(index * groups.calls // 50), points)
    print(points.report())
    assert points.missed <= 5, points.report()


def test_50_kills_of_both(groups: Pairs) -> None:
    """The backup is killed while it follows, or after it took over; both start again."""
    points = Points()
    for index in range(50):
        at = BEGUN_CALLS + index * (BACKUP_CALLS - BEGUN_CALLS) // 50
        action = (KILL, TEAR, KILL_AFTER)[index % 3]
        groups.kill_both(Plan(groups.calls * (index % 7 + 1) // 8), Plan(at, action), points)
    print(points.report())
