"""The watch over a disk: a disk that hangs costs an active member its service, if another one can take it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from atalanta.runtime.ha.group.disk_watch import DiskWatch
from atalanta.runtime.process.exit_codes import DISK_FAILED

TIMEOUT_S = 0.1


def watched(busy_since: Callable[[], float], has_successor: Callable[[], bool], look_s: float) -> list[object]:
    """Returns what a watch did within a time: the reason of the resignation, and the exit status."""

    async def main() -> list[object]:
        done: list[object] = []
        watch = DiskWatch(
            asyncio.get_running_loop(), TIMEOUT_S, busy_since, has_successor, done.append, done.append
        )
        watch.start()
        end = time.monotonic() + look_s
        while DISK_FAILED not in done and time.monotonic() < end:
            await asyncio.sleep(0.01)
        watch.stop()
        return done

    return asyncio.run(main())


def test_a_disk_that_hangs_costs_the_member_its_service_and_its_process() -> None:
    began = time.monotonic()
    assert watched(lambda: began, lambda: True, 30) == ["the disk has hung for 0.1 s", DISK_FAILED]


def test_nobody_resigns_without_a_successor_but_as_soon_as_there_is_one() -> None:
    began = time.monotonic()
    assert watched(lambda: began, lambda: False, 3 * TIMEOUT_S) == []
    assert DISK_FAILED in watched(lambda: began, lambda: time.monotonic() > began + 1, 30)


def test_many_short_jobs_are_no_hang() -> None:
    assert watched(time.monotonic, lambda: True, 3 * TIMEOUT_S) == []
    assert watched(lambda: 0.0, lambda: True, 3 * TIMEOUT_S) == []
