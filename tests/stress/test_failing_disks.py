"""Disks that fail, fill up, become read-only or hang under a fixed load: nothing is confirmed afterwards, the node ends
with a message or its backup takes over, and everything confirmed is there when the disk works again.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from atalanta.runtime.process.exit_codes import DISK_FAILED
from tests.stress.faults import ERROR, GONE, HANG, Plan
from tests.stress.killed_node import SingleNode
from tests.stress.killed_pair import ReplicatedPair, StressedPair
from tests.stress.node_process import Launcher
from tests.stress.power import PowerDisk
from tests.stress.workload import connected

pytestmark = pytest.mark.process

ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS)
# A takeover that waits for it is seen.
LONG_LEASE_MS = 12_000


def failing(launcher: Launcher, folder: Path, count: int) -> None:
    """Lets the disk fail for good at `count` calls of the life of a node; the three errors in turn."""
    only = (str(folder),)  # files, not sockets
    measured = SingleNode(launcher, folder / "measured")
    calls = measured.measure(only)
    measured.close()
    for index in range(count):
        plan = Plan(1 + index * calls // count, ERROR, error=ERRORS[index % 3], only=only)
        node = SingleNode(launcher, folder / f"{index}")
        try:
            status = node.fail(plan)
            assert status in (0, DISK_FAILED), f"{status}\n{node.process.log()}"
            log = node.process.log()
            # The event of a large message has the words alone.
            assert errno_text(plan.error) in log or os.strerror(plan.error) in log
            node.check()
        except AssertionError as error:
            raise AssertionError(f"{plan}, {node.process.calls()}: {error}") from None
        finally:
            node.close()
        shutil.rmtree(folder / f"{index}")


def errno_text(number: int) -> str:
    """Returns what the log says of an error."""
    return f"[Errno {number}]"


def test_a_disk_that_fails_at_any_call_loses_nothing(launcher: Launcher, tmp_path: Path) -> None:
    failing(launcher, tmp_path, 3)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_disk_that_fails_at_300_calls_loses_nothing(launcher: Launcher, tmp_path: Path) -> None:
    failing(launcher, tmp_path, 300)


@pytest.mark.parametrize("at", [40, pytest.param(150, marks=pytest.mark.soak)])
def test_a_disk_that_is_pulled_out_ends_the_node(launcher: Launcher, disk: PowerDisk, tmp_path: Path, at: int) -> None:
    """The process lives: every later call gets the real error of the system."""
    disk.empty()
    node = SingleNode(launcher, tmp_path, disk.folder / f"{at}")
    try:
        assert node.fail(Plan(at, GONE, only=(str(disk.folder),))) == DISK_FAILED
        assert errno_text(errno.EIO) in node.process.log()
        disk.power_cycle()
        node.check()
    finally:
        node.close()


def test_a_full_disk_takes_no_messages_but_takes_acknowledgements(
    launcher: Launcher, disk: PowerDisk, tmp_path: Path
) -> None:
    async def fill() -> Path:
        playing = asyncio.create_task(node.play())
        while node.load.confirmed() < 150:
            await asyncio.sleep(0.002)
        path = disk.fill()
        await still(playing)
        assert not node.load.finished and not node.process.ended(), node.process.log()
        await take("news.b")
        return path

    async def still(playing: asyncio.Task[None]) -> None:
        """Waits until a message is refused, or waits for credits."""
        confirmed = -1
        while not playing.done() and node.load.confirmed() > confirmed:
            confirmed = node.load.confirmed()
            await asyncio.sleep(1.5)
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)

    async def take(queue: str) -> None:
        async with connected(node.url) as connection:
            await node.load.take(connection, queue, 4)

    disk.empty()
    node = SingleNode(launcher, tmp_path, disk.folder / "full")
    try:
        node.process.start()
        node.process.until_ready()
        filler = asyncio.run(fill())
        assert "[Errno 28]" in node.process.log() or "disk_exhausted" in node.process.log()
        node.process.end(signal.SIGKILL)
        node.process.start()  # on the full disk
        node.process.until_ready()
        asyncio.run(take("piped"))
        node.process.end(signal.SIGKILL)
        filler.unlink()
        node.check()
    finally:
        node.close()


def test_nothing_is_confirmed_while_the_disk_hangs(launcher: Launcher, tmp_path: Path) -> None:
    async def main() -> None:
        playing = asyncio.create_task(node.play())
        while not node.process.hangs():
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)
        confirmed = node.load.confirmed()
        await asyncio.sleep(0.6)
        assert node.load.confirmed() == confirmed
        node.process.hang_no_more()
        await playing
        assert node.load.finished

    node = SingleNode(launcher, tmp_path)
    try:
        node.process.start(Plan(150, HANG, only=(str(tmp_path),)))
        node.process.until_ready()
        asyncio.run(main())
        assert node.process.end(signal.SIGKILL) == -signal.SIGKILL
        node.check()
    finally:
        node.close()


@pytest.mark.soak
def test_a_frozen_file_system_is_told(launcher: Launcher, disk: PowerDisk, tmp_path: Path) -> None:
    async def main() -> None:
        playing = asyncio.create_task(node.play())
        while node.load.confirmed() < 100:
            await asyncio.sleep(0.002)
        disk.freeze()
        try:
            await asyncio.sleep(0.1)
            confirmed = node.load.confirmed()
            until = time.monotonic() + 30
            while "critical_component_slow" not in node.process.log():
                assert time.monotonic() < until
                await asyncio.sleep(0.1)
            assert node.load.confirmed() == confirmed
        finally:
            disk.thaw()
        await playing
        assert node.load.finished and "critical_component_resumed" in node.process.log()

    disk.empty()
    node = SingleNode(launcher, tmp_path, disk.folder / "frozen")
    try:
        node.process.start()
        node.process.until_ready()
        asyncio.run(main())
        node.process.end(signal.SIGKILL)
        disk.power_cycle()
        node.check()
    finally:
        node.close()


@pytest.mark.parametrize("action", [ERROR, HANG])
def test_the_backup_takes_over_from_a_primary_whose_disk_fails(
    launcher: Launcher, tmp_path: Path, action: str
) -> None:
    """The disk of the primary's machine: that of the backup's still works. With a hang, the lease is not renewed."""

    async def hanging() -> None:
        playing = asyncio.create_task(pair.play())
        assert await asyncio.to_thread(pair.backup.until_printed, "role=active"), pair.log()
        assert not playing.done()  # the client waits
        pair.primary.hang_no_more()
        await playing

    pair = StressedPair(launcher, tmp_path)
    try:
        pair.start(Plan(250, action, only=(str(tmp_path),)))
        if action == HANG:
            asyncio.run(hanging())
            assert not pair.load.finished
        else:
            asyncio.run(pair.play())
            assert pair.primary.wait() == DISK_FAILED
            assert pair.backup.until_printed("role=active"), pair.log()
        pair.check()
    finally:
        pair.close()


def group_failing(launcher: Launcher, folder: Path, plan: Plan, guard: bool) -> None:
    """Lets the disk of the active node of a group fail or hang: a member in sync serves, long before the lease ends."""
    own = f"disk_timeout_ms = {2_000 if plan.action == HANG else 0}\n"
    group = ReplicatedPair(launcher, folder, lease_ms=LONG_LEASE_MS, guard=guard, own=own)
    try:
        group.start(plan)
        asyncio.run(group.play())
        failed = time.monotonic()
        assert not group.load.finished, group.log()
        assert group.backup.until_printed("role=active"), group.log()
        assert time.monotonic() - failed < LONG_LEASE_MS / 2_000, "it waited for the lease"
        assert group.primary.wait() == DISK_FAILED, group.log()
        told = "disk_hung" if plan.action == HANG else errno_text(plan.error)
        assert told in group.primary.log()
        group.check()
    except AssertionError as error:
        raise AssertionError(f"{plan}, {group.primary.calls()}: {error}") from None
    finally:
        group.close()


def test_a_member_serves_at_once_when_the_disk_of_the_active_one_fails(launcher: Launcher, tmp_path: Path) -> None:
    group_failing(launcher, tmp_path, Plan(200, ERROR, error=errno.EROFS, only=("data/journal",)), guard=False)


def test_a_member_serves_at_once_when_the_disk_of_the_active_one_hangs(launcher: Launcher, tmp_path: Path) -> None:
    """The write hangs in the loop or in a thread. The former process ends, although its disk never answers."""
    group_failing(launcher, tmp_path, Plan(200, HANG, only=("data/journal",)), guard=True)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_disks_of_60_active_members_fail_or_hang(launcher: Launcher, tmp_path: Path) -> None:
    for index in range(60):
        action = (ERROR, HANG)[index % 2]
        plan = Plan(80 + index * 5, action, error=ERRORS[index // 2 % 3], only=("data/journal",))
        group_failing(launcher, tmp_path / f"{index}", plan, guard=action == HANG)
        shutil.rmtree(tmp_path / f"{index}")
