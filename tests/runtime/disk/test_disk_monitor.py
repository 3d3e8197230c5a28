"""The shell tells the node how full the disk is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from atalanta.runtime.disk.disk_monitor import DiskMonitor
from atalanta.runtime.driver import Driver


class Told(Driver):
    def __init__(self) -> None:
        self.found: list[tuple[float, int]] = []
        self.enough = asyncio.Event()

    def disk_usage(self, used_fraction: float, free_bytes: int) -> None:
        self.found.append((used_fraction, free_bytes))
        if len(self.found) == 2:
            self.enough.set()


def test_the_disk_is_looked_at_from_the_start_and_again(tmp_path: Path) -> None:
    async def run() -> list[tuple[float, int]]:
        told = Told()
        monitor = DiskMonitor(asyncio.get_running_loop(), told, tmp_path, 0.01)
        monitor.start()
        assert len(told.found) == 1
        await asyncio.wait_for(told.enough.wait(), 5)
        monitor.stop()
        return told.found

    for used, free in asyncio.run(run()):
        assert 0 < used < 1
        assert free > 0
