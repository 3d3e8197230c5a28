"""The event loop: uvloop where it is installed, asyncio's own otherwise."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from collections.abc import Coroutine
from importlib.metadata import version
from typing import Any, TypeVar

try:
    import uvloop
except ImportError:  # no wheel for this platform: an ordinary loop serves as well, slower
    UVLOOP_VERSION = ""
else:
    UVLOOP_VERSION = version("uvloop")

Result = TypeVar("Result")

# mallopt(3): parameters of glibc's allocator.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
KEPT_BYTES = 32 << 20


def loop_name() -> str:
    """What `new_loop` gives, for people: "uvloop 0.23.0" or "asyncio"."""
    return f"uvloop {UVLOOP_VERSION}" if UVLOOP_VERSION else "asyncio"


def new_loop(plain: bool = False) -> asyncio.AbstractEventLoop:
    """A new event loop; `plain` asks for asyncio's own even where uvloop is installed."""
    if UVLOOP_VERSION and not plain:
        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


def run(main: Coroutine[Any, Any, Result], plain: bool = False) -> Result:
    """Runs `main` to its end on a loop of its own, and cancels what it left behind."""
    with asyncio.Runner(loop_factory=lambda: new_loop(plain)) as runner:
        return runner.run(main)


def settle_allocator() -> None:
    """Lets glibc keep freed memory up to 32 MiB, instead of giving every large buffer back to the system at once.

    Each turn reads and writes pieces of some 100 KiB: page faults for them took a tenth of the time. Other C
    libraries are left alone.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


def rest_collector() -> None:
    """Until `settle_collector`: a recovery builds objects that stay, and takes twice as long where they are walked."""
    gc.disable()


def settle_collector() -> None:
    """Takes everything loaded so far out of the garbage collector's sight, and lets it run rarely.

    Called once, after recovery: queues of long-lived messages would otherwise be walked through
    again and again (facts/hot-path.md, the measured server).
    """
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)
    gc.enable()
