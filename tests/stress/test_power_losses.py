"""Power losses at every n-th change of a file: a real ext4 drops what was not synced, and nothing confirmed is lost.

Needs root, mkfs.ext4 and a loop device. `make soak` has 1,000 of them.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
from pathlib import Path

import pytest

from atalanta.runtime.process.build import build_name
from tests.stress.faults import POWER, SLOW, Plan
from tests.stress.killed_node import START_CALLS, Points, SingleNode, through
from tests.stress.killed_pair import Pairs, ReplicatedPair
from tests.stress.node_process import Launcher
from tests.stress.power import PowerDisk
from tests.stress.slow_backup import SLOW_CALL, WAITS
from tests.waiting import until

pytestmark = pytest.mark.process


class Losses:
    """Nodes one after the other on one disk, whose power is lost at a planned call of each."""

    def __init__(self, launcher: Launcher, disk: PowerDisk, folder: Path) -> None:
        self._launcher = launcher
        self._disk = disk
        self._folder = folder
        self._numbers = itertools.count()
        self.calls = 0
        node = self.node()
        self.calls = node.measure()
        node.close()

    def node(self) -> SingleNode:
        """Returns a node with an empty disk."""
        self._disk.empty()
        name = f"{next(self._numbers)}"
        return SingleNode(self._launcher, self._folder / name, self._disk.folder / name)

    def lose(self, count: int, plan: Plan) -> Points:
        """Loses the power at `count` calls of the load. AssertionError for a lost message."""
        plans = [
            Plan(1 + index * self.calls // count, POWER, unsynced=plan.unsynced) for index in range(count)
        ]
        return through(plans, lambda index: self.node(), self._lose_again)

    def _lose_again(self, node: SingleNode, index: int) -> None:
        """Brings the disk back; every fourth time the power is lost again during the next start."""
        self._disk.power_cycle()
        if index % 4 == 0:
            node.live(Plan(1 + index // 4 % START_CALLS, POWER))
            self._disk.power_cycle()


def test_power_losses_at_any_call_lose_nothing(launcher: Launcher, disk: PowerDisk, tmp_path: Path) -> None:
    points = Losses(launcher, disk, tmp_path).lose(5, Plan())
    assert points.missed <= 1, points.report()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_1000_power_losses_lose_nothing(launcher: Launcher, disk: PowerDisk, tmp_path: Path) -> None:
    points = Losses(launcher, disk, tmp_path).lose(1_000, Plan())
    print(points.report())
    assert points.missed <= 50, points.report()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_100_power_losses_of_a_pair_lose_nothing(launcher: Launcher, disk: PowerDisk, tmp_path: Path) -> None:
    """Both processes and the shared store at once."""
    pairs = Pairs(launcher, tmp_path, disk=disk)
    points = Points()
    for index in range(100):
        pairs.lose_power(Plan(index * pairs.calls // 100), points)
    print(points.report())
    assert points.missed <= 5, points.report()


@pytest.mark.parametrize(
    "unsynced", ["journal-", *(pytest.param(word, marks=pytest.mark.soak) for word in ("page-", ".msg", "/"))]
)
def test_a_sync_that_is_left_out_is_found(
    launcher: Launcher, disk: PowerDisk, tmp_path: Path, unsynced: str
) -> None:
    """The planted fault: files of the journal, of pages, of large messages, or folders are not synced."""
    with pytest.raises(AssertionError, match="is lost, it was confirmed|came back|ended with 65"):
        Losses(launcher, disk, tmp_path).lose(40, Plan(unsynced=(unsynced,)))


@pytest.fixture(scope="module")
def groups(launcher: Launcher, disk: PowerDisk, tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    """Replicated groups whose members are on one disk: a cut of its power is one of both hosts."""
    return Pairs(launcher, tmp_path_factory.mktemp("groups"), 1_000, disk, ReplicatedPair)


def lost_by_backup(groups: Pairs, disk: PowerDisk, at: int, backup: Plan) -> str:
    """Cuts the power of both members at a call of the load, and starts the backup only, which serves.

    Returns what it has lost, or that it does not serve; "" if nothing is wrong.
    """
    pair = groups.next()
    try:
        pair.start(Plan(groups.begin + 8 + at, POWER), backup)
        asyncio.run(pair.play())
        for each in (pair.primary, pair.backup):
            each.end(signal.SIGKILL)
        disk.power_cycle()
        pair.backup.start()
        until(lambda: "role=active" in pair.backup.words() or WAITS in pair.backup.log(), pair.log)
        if "role=active" not in pair.backup.words():
            return f"it does not serve\n{pair.log()}"
        try:
            asyncio.run(pair.asked(pair.urls[1]))
        except AssertionError as error:
            return str(error)
        return ""
    finally:
        pair.close()


def test_a_backup_has_everything_that_was_confirmed_when_both_lose_their_power(groups: Pairs, disk: PowerDisk) -> None:
    for index in range(2):
        assert lost_by_backup(groups, disk, groups.calls * (index + 1) // 3, Plan()) == ""


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_50_backups_that_come_back_alone(groups: Pairs, disk: PowerDisk) -> None:
    for index in range(50):
        assert lost_by_backup(groups, disk, groups.calls * index // 50, Plan()) == "", index


UNWRITTEN = Plan(SLOW_CALL, SLOW, slow_s=0.02, unwritten=True)


@pytest.mark.skipif(build_name() == "compiled", reason="methods of a compiled class cannot be replaced")
def test_a_follower_that_answers_before_its_disk_is_found(groups: Pairs, disk: PowerDisk) -> None:
    """The planted fault: it answers when it has received a block, and its disk takes its time."""

    def found(index: int) -> bool:
        lost = lost_by_backup(groups, disk, groups.calls * index // 6, UNWRITTEN)
        return "is lost, it was" in lost or "came back" in lost

    assert any(found(index) for index in range(2, 6))
