"""A group of three with voters, on machines whose network breaks: nothing is lost or doubled, and one member delivers.

Needs root and `ip`. `make soak` has 100 schedules.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.namespaces.group import GroupNetwork, Load
from tests.namespaces.network import NEEDS_NAMESPACES
from tests.namespaces.partition_schedule import FAULTS, Partition, Schedule, drawn

pytestmark = [pytest.mark.process, NEEDS_NAMESPACES]
FAILBACK = "<allow-failback>true</allow-failback>"


def play(folder: Path, schedules: list[Schedule]) -> None:
    """Plays the schedules with one load, which is checked behind the last one."""
    with GroupNetwork(folder, FAILBACK) as group:
        load = Load(group.network, group.urls)
        try:
            for schedule in schedules:
                load.past(20)
                print(schedule)
                schedule.play(group)
                load.check()
            load.past(20)
            load.end()
            load.check()
        except BaseException:
            print(group.log())
            raise
        finally:
            load.stop()
        print(f"{len(load.confirmed)} confirmed, {len(load.deliveries)} deliveries: "
              f"{dict(Counter(each.node for each in load.deliveries))}")  # fmt: skip


def partition(what: str, seconds: float, with_client: bool = False) -> Partition:
    return Partition(what, "active", with_client, True, 0.0, seconds)


@pytest.mark.timeout(120)
def test_partitions_of_the_active_member(tmp_path: Path) -> None:
    play(
        tmp_path,
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
    play(tmp_path, schedules)
