"""A group of three with voters, on machines whose network breaks: nothing is lost or doubled, and one member delivers.

Needs root and `ip`. `make soak` has 100 schedules.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.namespaces.group import GroupNetwork
from tests.namespaces.network import NEEDS_NAMESPACES
from tests.namespaces.partition_schedule import FAULTS, Partition, Schedule, drawn, play

pytestmark = [pytest.mark.process, NEEDS_NAMESPACES]
FAILBACK = "<allow-failback>true</allow-failback>"


def partition(what: str, seconds: float) -> Partition:
    return Partition(what, "active", ("members",), 0.0, seconds)


@pytest.mark.timeout(120)
def test_partitions_of_the_active_member(tmp_path: Path) -> None:
    play(
        GroupNetwork(tmp_path, FAILBACK),
        [
            Schedule(0, "serving", (partition("no packets either way", 1.6),)),
            Schedule(1, "serving", (partition("no packets out", 1.6),)),
            Schedule(2, "serving", (partition("resets", 1.6),)),
        ],
    )


def lost_behind_slow_links(tmp_path: Path, rate: str, count: int) -> None:
    """Loses the active member, `count` times, while the links to the others are slow, and with them what is queued."""
    with GroupNetwork(tmp_path) as group:
        network = group.network
        with group.loaded() as load:
            for _ in range(count):
                load.past(50)
                active = group.until_active()
                others = [name for name in group.names if name != active]
                for other in others:
                    network.slow(active, other, rate)
                load.past(200)  # they are waited for, or removed
                group.kill(active)
                for other in others:
                    network.slow_no_more(active, other)
                group.start(active)
                group.until_synced()
                load.check()
        print(f"{rate}: {len(load.confirmed)} confirmed, {group.removals()} removals")


@pytest.mark.timeout(120)
def test_an_active_member_that_is_lost_behind_slow_links(tmp_path: Path) -> None:
    lost_behind_slow_links(tmp_path, "64kbit", 1)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("rate", ["4kbit", "64kbit", "1mbit"])
def test_5_active_members_that_are_lost_behind_slow_links(tmp_path: Path, rate: str) -> None:
    lost_behind_slow_links(tmp_path, rate, 5)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(0, 100, 25))
def test_100_schedules(tmp_path: Path, first: int) -> None:
    schedules = [drawn(seed) for seed in range(first, first + 25)]
    assert {each.what for schedule in schedules for each in schedule.partitions} == set(FAULTS)
    play(GroupNetwork(tmp_path, FAILBACK), schedules)
