"""Message groups while the service of a replicated group moves: their order, one consumer at a time, nothing lost.

The service goes to and fro by kills, planned handovers, stops in good order, and failbacks. The clients see lost
connections and no other error.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.group import Group, Member
from tests.app.grouped_load import Arrival, GroupedLoad, group_problems, grouped
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.process

FAILBACK = "<allow-failback>true</allow-failback>"


def hand_over(member: Member) -> None:
    """`atalanta ha handover`."""
    line = [sys.executable, "-m", "atalanta", "ha", "handover", str(member.instance)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    member.until_role("passive")


def kill_broker(member: Member) -> None:
    """Kills the broker, and starts the member again."""
    member.kill_broker()
    member.start()


def stop(member: Member) -> None:
    """Stops the member in good order, and starts it again."""
    assert member.end(signal.SIGTERM) == 0
    member.start()


async def in_turn(group: Group, load: GroupedLoad, ends: list[Callable[[Member], None]]) -> None:
    """Lets the active member end its service in each of these ways; the other one serves, until it is its turn."""
    one, other = group.primary, group.backup
    await load.served(one.port)
    for end in ends:
        load.generation += 1
        await asyncio.to_thread(one.until_followed, other)
        await asyncio.to_thread(end, one)
        await asyncio.to_thread(other.until_role, "active")
        await load.served(other.port)
        one, other = other, one


def test_groups_go_on_in_order_at_one_consumer_after_a_failover(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        async with grouped(group.url) as load:
            await in_turn(group, load, [kill_broker, hand_over])
            # Others get the groups of a consumer that closes, from its first message without an acknowledgement on.
            await load.close_owner("all-0")
            await load.served(group.primary.port)
        assert load.owners() > 2 * len(group.members), "each member has several consumers"

    with Group(tmp_path) as group:
        group.start()
        asyncio.run(main(group))


LONG = (pytest.mark.soak, pytest.mark.timeout(1800))


@pytest.mark.parametrize(
    ("end", "count"),
    [(hand_over, 4), pytest.param(hand_over, 20, marks=LONG), pytest.param(stop, 20, marks=LONG)],
)
def test_service_that_goes_to_and_fro_under_load(
    tmp_path: Path, end: Callable[[Member], None], count: int
) -> None:
    async def main(group: Group) -> None:
        async with grouped(group.url) as load:
            await in_turn(group, load, [end] * count)
        print(load.report())
        assert load.turns()[-1] == count

    with Group(tmp_path) as group:
        group.start()
        asyncio.run(main(group))


@pytest.mark.parametrize("count", [2, pytest.param(20, marks=LONG)])
def test_stops_and_failbacks_under_load(tmp_path: Path, count: int) -> None:
    """A stop of the primary in good order, its return, and the failback: two moves of the service each time."""

    async def main(group: Group) -> None:
        primary, backup = group.primary, group.backup
        async with grouped(group.url) as load:
            for _ in range(count):
                await load.served(primary.port)
                await asyncio.to_thread(primary.until_followed, backup)
                assert await asyncio.to_thread(primary.end, signal.SIGTERM) == 0
                await load.served(backup.port)
                primary.start()
                await asyncio.to_thread(primary.until_role, "active")
                await asyncio.to_thread(backup.until_role, "passive")
            await load.served(primary.port)
        print(load.report())
        assert load.turns()[-1] == 2 * count

    with Group(tmp_path, backup_policy=FAILBACK, own="[ha]\nfailback_after_s = 1\n") as group:
        group.start()
        asyncio.run(main(group))


def arrivals(*found: tuple[int, int, int, bool]) -> list[Arrival]:
    """Returns arrivals of one group: number, port, consumer, whether its acknowledgement was confirmed."""
    return [Arrival("a", *each) for each in found]


def test_the_check_finds_a_changed_order_two_owners_and_repeats() -> None:
    def problems(*found: tuple[int, int, int, bool], closed: frozenset[tuple[int, int]] = frozenset()) -> str:
        return " ".join(group_problems("a", arrivals(*found), set(closed)))

    first = (0, 1, 0, True)
    assert problems(first, (1, 1, 0, False), (1, 2, 1, True), (2, 2, 1, True)) == ""
    assert problems(first, (1, 1, 1, True), closed=frozenset({(1, 0)})) == ""
    assert "of one member have it" in problems(first, (1, 1, 1, True))
    assert "2 of consumer 0 is not in" in problems(first, (2, 1, 0, True))
    assert "2 of consumer 1 is not in" in problems(first, (2, 2, 1, True))
    assert "came again" in problems(first, (0, 2, 1, True))
