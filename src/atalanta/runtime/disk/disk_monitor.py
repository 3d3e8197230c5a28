"""Checks the disk every disk-scan-period and reports its usage to the node (max-disk-usage, min-disk-free).

It also keeps the reserve of the disk complete, and reports when there is no room for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from atalanta.cluster.inputs import NodeInputs
from atalanta.runtime.disk.reserve import DiskReserve
from atalanta.runtime.driver import Driver
from atalanta.runtime.process.logs import log_event

logger = logging.getLogger("atalanta.runtime")


class DiskMonitor:
    """Checks the disk periodically. A folder that cannot be checked is logged and tried again."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        driver: Driver,
        folder: Path,
        period_s: float,
        reserve: DiskReserve | None = None,
    ) -> None:
        self._reserve = reserve
        self._loop = loop
        self._driver = driver
        self._folder = folder
        self._period_s = period_s
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Checks now, and again every period."""
        self._timer = self._loop.call_later(self._period_s, self.start)
        try:
            room = self._reserve is None or self._reserve.fill()
            found = os.statvfs(self._folder)
        except OSError as error:
            log_event(logger, "disk_usage_unknown", {"folder": self._folder, "why": error})
            return
        self._driver.post(NodeInputs.on_room, room)
        total = found.f_blocks * found.f_frsize
        free = found.f_bavail * found.f_frsize
        self._driver.post(NodeInputs.on_disk_usage, 1 - free / total if total else 0.0, free)

    def stop(self) -> None:
        """Stops the checks."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
