"""The event loop: uvloop where it is installed, asyncio's own otherwise."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

try:
    import uvloop
except ImportError:  # no wheel for this platform: an ordinary loop serves as well, slower
    UVLOOP_VERSION = ""
else:
    # It is there, unlike its declaration; importlib.metadata costs 1.7 MB.
    UVLOOP_VERSION = uvloop.__version__  # type: ignore[attr-defined]

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
    mallopt = _c_function("mallopt")
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


def trim_allocator() -> None:
    """Gives back what the start freed: text of modules and of broker.xml, buffers of the recovery.

    Called once, after them: 3.5 MB for 0.4 ms in an empty node (bench/README.md).
    """
    malloc_trim = _c_function("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


def _c_function(name: str) -> Callable[..., int] | None:
    """A function of Linux' C library, None where it has none of that name."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


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


def unsettle_collector() -> None:
    """When all that was loaded is gone, and a node starts anew in this process (runtime/network_check/guard.py)."""
    gc.unfreeze()
    gc.collect()
