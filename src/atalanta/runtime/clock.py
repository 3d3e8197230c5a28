"""The clocks of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from atalanta.node.clock import Clock

# For leases. Where the system has it, this clock counts while the machine is suspended.
STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_ns() -> int:
    """Returns nanoseconds of a clock that follows no change of the wall clock, and counts while the machine sleeps."""
    return time.clock_gettime_ns(STEADY)


def system_clock(monotonic_ns: Callable[[], int] = time.monotonic_ns) -> Clock:
    """Returns a clock for a node, which begins at the wall clock."""
    return Clock(monotonic_ns, time.time_ns)


def utc_text(at_ns: int) -> str:
    """Returns an instant in ns since 1970 as text, to milliseconds."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at_ns // 10**9))}.{at_ns // 10**6 % 1000:03d}Z"
