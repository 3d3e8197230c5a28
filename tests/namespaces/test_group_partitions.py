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


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(0, 100, 25))
def test_100_schedules(tmp_path: Path, first: int) -> None:
    schedules = [drawn(seed) for seed in range(first, first + 25)]
    assert {each.what for schedule in schedules for each in schedule.partitions} == set(FAULTS)
    play(GroupNetwork(tmp_path, FAILBACK), schedules)
