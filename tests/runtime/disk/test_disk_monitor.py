"""The shell tells the node how full the disk is."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from atalanta.cluster.inputs import NodeInputs
from atalanta.runtime.disk.disk_monitor import DiskMonitor
from atalanta.runtime.disk.reserve import DiskReserve
from tests.runtime.disk.limited import LimitedRoom
from tests.runtime.driven import driver_of


class Told(NodeInputs):
    def __init__(self) -> None:
        self.found: list[tuple[float, int]] = []
        self.rooms: list[bool] = []
        self.enough = asyncio.Event()

    def on_room(self, now: int, room: bool, name: str = "") -> None:
        assert name == ""
        self.rooms.append(room)

    def on_disk_usage(self, now: int, used_fraction: float, free_bytes: int) -> None:
        self.found.append((used_fraction, free_bytes))
        if len(self.found) == 2:
            self.enough.set()


def test_the_disk_is_looked_at_from_the_start_and_again(tmp_path: Path) -> None:
    async def run() -> list[tuple[float, int]]:
        told = Told()
        monitor = DiskMonitor(asyncio.get_running_loop(), driver_of(told), tmp_path, 0.01)
        monitor.start()
        assert len(told.found) == 1
        await asyncio.wait_for(told.enough.wait(), 5)
        monitor.stop()
        return told.found

    for used, free in asyncio.run(run()):
        assert 0 < used < 1
        assert free > 0


def test_a_node_learns_whether_there_is_a_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> list[bool]:
        room = LimitedRoom(monkeypatch, tmp_path, 1_000)
        told = Told()
        reserve = DiskReserve(tmp_path, 1_000)
        monitor = DiskMonitor(asyncio.get_running_loop(), driver_of(told), tmp_path, 0.01, reserve)
        monitor.start()
        room.bytes = 1 << 30
        await asyncio.wait_for(told.enough.wait(), 5)
        monitor.stop()
        return told.rooms

    assert asyncio.run(run())[:2] == [False, True]


def test_a_file_system_that_cannot_reserve_room_is_checked_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(file: int, offset: int, size: int) -> None:
        raise OSError(errno.EINVAL, "not on this file system")

    async def run() -> Told:
        monkeypatch.setattr("os.posix_fallocate", refused)
        told = Told()
        reserve = DiskReserve(tmp_path, 1_000)
        monitor = DiskMonitor(asyncio.get_running_loop(), driver_of(told), tmp_path, 0.01, reserve)
        monitor.start()
        monitor.stop()
        return told

    told = asyncio.run(run())
    assert told.rooms == [True] and len(told.found) == 1
    assert [path.stat().st_size > 1_000 for path in tmp_path.iterdir()] == [True, True]
