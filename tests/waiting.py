"""Waits for the world outside of the test's process, whose time is real."""

from __future__ import annotations

import time
from collections.abc import Callable

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
