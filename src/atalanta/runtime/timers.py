"""The Timers port on the event loop: one pending timer per key, in the node's own nanoseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from atalanta.kernel.ports import Timers
from atalanta.node.clock import Clock

# An event loop rounds to milliseconds: a timer that woke early waits at least this long again.
SLEEP_S_MIN = 0.001
# Longer waits are split, so that a step of the clock is noticed.
SLEEP_S_MAX = 3600.0


class LoopTimers(Timers):
    """Calls `fire(key)` at or after the time that was set; never before, nor within `set`."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, fire: Callable[[str], None]
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._fire = fire
        self._pending: dict[str, tuple[int, asyncio.Handle]] = {}

    def set(self, key: str, at_ns: int) -> None:
        """Sets or moves the timer `key`; a time in the past means the next event-loop iteration."""
        before = self._pending.get(key)
        if before is not None:
            if before[0] == at_ns:
                return
            before[1].cancel()
        self._arm(key, at_ns, 0.0)

    def cancel(self, key: str) -> None:
        """Removes the timer `key`, if it is set."""
        before = self._pending.pop(key, None)
        if before is not None:
            before[1].cancel()

    def clear(self) -> None:
        """Removes all timers."""
        for _, handle in self._pending.values():
            handle.cancel()
        self._pending.clear()

    def rearm(self) -> None:
        """Arms every timer again after a step of the clock."""
        for key, (at_ns, handle) in list(self._pending.items()):
            handle.cancel()
            self._arm(key, at_ns, 0.0)

    def _arm(self, key: str, at_ns: int, sleep_s_min: float) -> None:
        left_ns = self._clock.wait_ns(at_ns)
        handle: asyncio.Handle
        if left_ns <= 0:
            handle = self._loop.call_soon(self._wake, key)
        else:
            sleep_s = min(max(left_ns / 1e9, sleep_s_min), SLEEP_S_MAX)
            handle = self._loop.call_later(sleep_s, self._wake, key)
        self._pending[key] = (at_ns, handle)

    def _wake(self, key: str) -> None:
        at_ns, _ = self._pending[key]
        if self._clock.now() < at_ns:
            self._arm(key, at_ns, SLEEP_S_MIN)
            return
        del self._pending[key]
        self._fire(key)
