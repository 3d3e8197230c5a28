"""Waits for the world outside of the test's process, whose time is real."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

# Generous: two slow cores may be running Spark at the same time.
DEADLINE_S = 60.0


def until(
    holds: Callable[[], object], why: str | Callable[[], str] = "", seconds: float = DEADLINE_S
) -> None:
    """Returns as soon as it holds; AssertionError with `why`, a text or what it returns, when it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, why() if callable(why) else why
        time.sleep(0.02)


async def reached(holds: Callable[[], object], why: str | Callable[[], str] = "") -> None:
    """`until` for coroutines."""
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, why() if callable(why) else why
        await asyncio.sleep(0.005)


def until_stopped(process: int) -> None:
    """Returns when every thread of a process that got a SIGSTOP stands still. The signal alone does not wait for it."""

    def stands() -> bool:
        try:
            found = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/stat")]
        except (FileNotFoundError, ProcessLookupError):  # a thread has ended meanwhile
            return False
        return all(text.rpartition(") ")[2].startswith("T") for text in found)

    until(stands, "the process does not stop")
