"""A replicated group whose manager is a real etcd or ZooKeeper on a machine of its own, in a network that breaks.

Nothing is lost or doubled, and one member delivers. Needs root and `ip`. `make interop-soak` has 100 schedules.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.interop.harness.register_servers import LINES, RegisterMachine
from tests.namespaces.group import MANAGER, GroupNetwork
from tests.namespaces.manager_schedule import drawn_with_manager
from tests.namespaces.network import NEEDS_NAMESPACES, until
from tests.namespaces.partition_schedule import FAULTS, MANAGER_FAULTS, Partition, Schedule, play

pytestmark = [pytest.mark.interop, NEEDS_NAMESPACES, pytest.mark.parametrize("kind", LINES)]
FAILBACK = "<allow-failback>true</allow-failback>"
# Many times as long as a lease, which is 1 s.
AWAY_SECONDS = 6.0
# Longer than the time-outs of a read and a write of the register.
GIVEN_UP_SECONDS = 15.0
ALONE = ("manager",)


def group_of(size: int, kind: str, folder: Path, policy: str = "") -> GroupNetwork:
    return GroupNetwork(folder, policy, size, RegisterMachine(kind, folder))


@pytest.mark.timeout(300)
def test_partitions_of_the_manager(tmp_path: Path, kind: str) -> None:
    partitions = [
        Partition("no packets either way", "active", ALONE, 0.0, 3.0),
        Partition("resets", "follower", ALONE, 0.0, 3.0),
        Partition("flapping packets", "manager", ("members",), 0.0, 2.0),
        Partition("no packets either way", "active", ("members",), 0.0, 3.0),
        Partition("lost answers to writes", "follower", ALONE, 0.0, 8.0, killed="active"),
        Partition("lost writes", "follower", ALONE, 0.0, 13.0, killed="active"),
        Partition("no packets out", "manager", ("members",), 0.0, 3.0, killed="follower"),
    ]
    play(group_of(2, kind, tmp_path), [Schedule(at, "serving", (each,)) for at, each in enumerate(partitions)])


@pytest.mark.timeout(300)
def test_a_manager_that_is_away_while_both_members_are_lost(tmp_path: Path, kind: str) -> None:
    """The pair serves without it, then confirms nothing, then is not taken over; all is back when the manager is."""
    with group_of(2, kind, tmp_path) as group, group.loaded() as load:
        load.past(20)
        active = group.active()
        follower = next(name for name in group.names if name != active)
        group.network.pull(MANAGER)
        end = time.monotonic() + AWAY_SECONDS
        while time.monotonic() < end:
            load.past(20)
        assert group.active() == active
        group.kill(follower)
        confirmed = len(load.confirmed)
        time.sleep(GIVEN_UP_SECONDS)
        # The follower may have had one whose answer came late.
        assert len(load.confirmed) <= confirmed + 1, "it confirms what a member in sync has not got"
        confirmed, delivered = len(load.confirmed), len(load.deliveries)
        group.kill(active)
        for name in (follower, active):
            group.start(name)
            until(f"{name} is there", lambda name=name: group.status(name) is not None)  # type: ignore[misc]
        time.sleep(AWAY_SECONDS)
        assert group.active() == "", "it took over without its manager"
        assert (len(load.confirmed), len(load.deliveries)) == (confirmed, delivered), "it is served"
        group.network.plug(MANAGER)
        group.until_synced()


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("size", "first"), [(2, 0), (3, 25)])
def test_100_schedules(tmp_path: Path, kind: str, size: int, first: int) -> None:
    schedules = [drawn_with_manager(seed) for seed in range(first, first + 25)]
    assert {each.what for schedule in schedules for each in schedule.partitions} == {*FAULTS, *MANAGER_FAULTS}
    play(group_of(size, kind, tmp_path, FAILBACK), schedules)
