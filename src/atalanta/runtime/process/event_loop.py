"""The event loop: uvloop if it is installed, else asyncio's own."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

try:
    import uvloop
except ImportError:  # no wheel for this platform: asyncio's loop works as well, slower
    UVLOOP_VERSION = ""
else:
    # The attribute exists, but its type is not declared; importlib.metadata costs 1.7 MB.
    UVLOOP_VERSION = uvloop.__version__  # type: ignore[attr-defined]

Result = TypeVar("Result")

# Objects between two collections of a passive process: one takes some 5 ms. And a threshold that is never reached.
YOUNG_MAX = 50_000
NEVER = 1 << 30


def loop_name() -> str:
    """Returns the name of the loop from `new_loop`: "uvloop 0.23.0" or "asyncio"."""
    return f"uvloop {UVLOOP_VERSION}" if UVLOOP_VERSION else "asyncio"


def new_loop(plain: bool = False) -> asyncio.AbstractEventLoop:
    """Creates an event loop; `plain` requires asyncio's own even if uvloop is installed."""
    if UVLOOP_VERSION and not plain:
        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


def run(main: Coroutine[Any, Any, Result], plain: bool = False) -> Result:
    """Runs `main` to its end on a new loop, and cancels remaining tasks."""
    with asyncio.Runner(loop_factory=lambda: new_loop(plain)) as runner:
        return runner.run(main)


def rest_collector() -> None:
    """Switches garbage collection off until `settle_collector`: recovery builds permanent objects, and scanning
    them doubles its time."""
    gc.disable()


def collect_young_only() -> None:
    """Makes collections look at new objects only, in a passive process: what it replays stays, and grows.

    Each attempt to connect leaves some garbage: 1 GB a day while no member is active, without collections.
    """
    gc.set_threshold(YOUNG_MAX, NEVER, NEVER)
    gc.enable()


def settle_collector() -> None:
    """Exempts all existing objects from garbage collection, and makes collections rare.

    Called once, after recovery: otherwise queues of long-lived messages would be scanned again and again.
    """
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)
    gc.enable()


def unsettle_collector() -> None:
    """Undoes `settle_collector` when a node has ended and starts again in this process
    (runtime/network_check/network_watch.py)."""
    gc.unfreeze()
    gc.collect()
