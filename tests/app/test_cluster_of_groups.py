"""A cluster of replicated groups whose members are killed in turn, while messages cross from one group to another."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.app.cluster_of_groups import FORWARDING, ClusterOfGroups, active, crossing, left
from tests.app.group import Group

pytestmark = pytest.mark.process


async def kill_the_active(group: Group) -> None:
    """Kills the broker that serves, once another member would serve; afterwards it comes back and is in sync."""
    member = await asyncio.to_thread(active, group)
    other = next(each for each in group.members if each is not member)
    await asyncio.to_thread(member.until_followed, other)
    await asyncio.to_thread(member.kill_broker)
    member.start()
    await asyncio.to_thread(other.until_role, "active")


@pytest.mark.parametrize(
    ("count", "rounds"),
    [(2, 1), pytest.param(3, 10, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])],
)
def test_each_message_arrives_once_at_the_other_group(tmp_path: Path, count: int, rounds: int) -> None:
    async def main(cluster: ClusterOfGroups) -> None:
        async with crossing(cluster) as load:
            await load.past(50)
            for _ in range(rounds):
                for group in cluster.groups:
                    await kill_the_active(group)
                    await load.past(50)
        print(f"{len(load.load.confirmed)} confirmed, {len(load.arrived) - len(set(load.arrived))} came again")
        for group in cluster.groups:
            found = await left(group)
            assert len([name for name in found if name.startswith(FORWARDING)]) == count - 1, found

    with ClusterOfGroups(tmp_path, count) as cluster:
        asyncio.run(main(cluster))
