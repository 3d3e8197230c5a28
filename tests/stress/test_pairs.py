"""A primary of a shared store is killed, or stands still, at any call of a fixed load; its backup has what was
confirmed.

The pause comes inside of the process: before or behind a write, a sync, or an answer to a client. When the late
primary goes on, it must not confirm anything that its backup lacks. `make soak` has the long forms.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.stress.faults import KILL, KILL_AFTER, STOP, STOP_AFTER, TEAR, Plan
from tests.stress.killed_node import Points, spread
from tests.stress.killed_pair import Pairs
from tests.stress.node_process import Launcher

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def pairs(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    return Pairs(launcher, tmp_path_factory.mktemp("pairs"))


def test_the_backup_has_what_a_killed_primary_has_confirmed(pairs: Pairs) -> None:
    points = Points()
    for plan in spread(pairs.calls, 2):
        pairs.kill(plan, points)
    assert points.missed == 0, points.report()


def test_a_backup_that_is_killed_while_it_takes_over_leaves_everything(pairs: Pairs) -> None:
    points = Points()
    pairs.kill_both(Plan(pairs.calls // 2), Plan(12), points)
    assert points.missed == 0, points.report()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_100_backups_that_are_killed_while_they_take_over(pairs: Pairs) -> None:
    points = Points()
    actions = (KILL, TEAR, KILL_AFTER)
    for index in range(100):
        pairs.kill_both(Plan(pairs.calls * (index % 7 + 1) // 8), Plan(1 + index // 2, actions[index % 3]), points)
    print(points.report())
    assert points.missed <= 30, points.report()


def test_a_primary_that_stood_still_confirms_nothing_that_its_backup_lacks(pairs: Pairs) -> None:
    points = Points()
    for index, action in enumerate((STOP, STOP_AFTER)):
        pairs.pause(Plan(pairs.calls * (index + 1) // 3, action), points)
    assert points.missed == 0, points.report()


def test_a_primary_that_goes_on_after_its_successor_is_found(pairs: Pairs) -> None:
    """The planted fault: it does not look for the next epoch. It may end by itself: its files are gone."""
    assert any(found_lost(pairs, pairs.begin + pairs.calls * index // 6) for index in range(1, 6))


def found_lost(pairs: Pairs, at: int) -> bool:
    """Returns whether the planted fault made the pair lose something that it had confirmed."""
    pair = pairs.next()
    try:
        pair.start(Plan(at, STOP, blind=True))
        pair.paused(0.0)
        asyncio.run(pair.asked(pair.urls[1]))
    except AssertionError as error:
        return "is lost, it was confirmed" in str(error)
    finally:
        pair.close()
    return False


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_300_killed_primaries(pairs: Pairs) -> None:
    points = Points()
    for plan in spread(pairs.calls, 300):
        pairs.kill(plan, points)
    print(points.report())
    assert points.missed <= 15, points.report()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_100_primaries_that_stood_still_until_the_backup_served(pairs: Pairs) -> None:
    points = Points()
    for index in range(100):
        pairs.pause(Plan(index * pairs.calls // 100, (STOP, STOP_AFTER)[index % 2]), points)
    print(points.report())
    assert points.missed <= 5, points.report()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_pauses_from_1_to_60_seconds(launcher: Launcher, tmp_path: Path) -> None:
    """With the lease as it is without configuration: after a short pause the primary goes on."""
    points = Points()
    pairs = Pairs(launcher, tmp_path, lease_ms=2_000)
    for index, pause_s in enumerate((1, 2, 3, 5, 8, 13, 20, 30, 45, 60)):
        pairs.pause(Plan((index + 1) * pairs.calls // 12, STOP), points, pause_s, taken_over=pause_s >= 5)
    print(points.report())


