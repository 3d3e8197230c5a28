"""The critical analyzer: checks the node's event loop and its disk from a thread of its own, like Artemis'
analyzer.

A write that hangs cannot be cancelled. If the worker does it, the node continues to serve; only answers that
need durability wait. If the event loop does it (runtime/disk/inline_commit.py), everything waits. That happens
only with the first write that hangs, and never with `commits-in-loop = false`.

In both cases this thread logs it after a few seconds. After `critical-analyzer-timeout` it applies
`critical-analyzer-policy` (CriticalAnalyzerImpl, ActiveMQServerImpl.initializeCriticalAnalyzer). LOG logs it
again. SHUTDOWN asks for a stop, and ends the process if the node has not stopped after the same time again. HALT
ends the process at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Final

from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event

logger = logging.getLogger("atalanta.runtime")

CHECK_S: Final = 1.0
FIRST_LOG_S: Final = 5.0  # delay of the first log line
# If this thread itself was delayed for so long, the machine or the process was suspended: nothing hangs.
SUSPENDED_S: Final = 3.0
LOG_TIMEOUT_S: Final = 1.0  # time limit for one log line, since the log may hang too
FRAMES: Final = 3
HALT: Final = "HALT"
SHUTDOWN: Final = "SHUTDOWN"


class WatchedComponent:
    """A component under observation. `since` is its last sign of life while one is expected, else 0.0."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.since = 0.0
        self.reported = False
        self.acted_at = 0.0


class CriticalAnalyzer:
    """Observes loop and disk. `start` it when the node serves, `stop` it when its files are closed.

    `busy_since` returns the time.monotonic() at which the current disk job began, 0.0 without a job.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        busy_since: Callable[[], float],
        timeout_s: float,
        period_s: float,
        policy: str,
        request_stop: Callable[[str], None],
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._loop = loop
        self._busy_since = busy_since
        self._timeout_s = timeout_s
        self._check_s = min(CHECK_S, period_s) if period_s > 0 else min(CHECK_S, timeout_s / 2)
        self._first_log_s = min(FIRST_LOG_S, timeout_s)
        self._policy = policy
        self._request_stop = request_stop
        self._end = end
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop_thread = threading.get_ident()
        self._loop_state = WatchedComponent("loop")
        self._disk_state = WatchedComponent("disk")
        self._resumed_at = 0.0  # time of the last suspension: components count from then on

    def start(self) -> None:
        """Starts the thread; called on the loop's thread."""
        self._loop_thread = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="critical-analyzer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread and waits for its end."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._over.wait(self._check_s):
            now = time.monotonic()
            suspended = now - last - self._check_s > SUSPENDED_S
            self._check(now, suspended)
            last = time.monotonic()

    def _check(self, now: float, suspended: bool) -> None:
        """Checks all components. `suspended`: each gets its full time again."""
        if suspended:
            self._resumed_at = now
        loop = self._loop_state
        if loop.since == 0.0:
            loop.since = now
            try:
                self._loop.call_soon_threadsafe(self._beat)
            except RuntimeError:
                return  # the loop is closed: the node ends
        disk = self._disk_state
        disk.since = self._busy_since()
        for watched in (disk, loop):
            self._judge(watched, now)

    def _beat(self) -> None:
        """Records that the loop answers."""
        self._loop_state.since = 0.0

    def _judge(self, watched: WatchedComponent, now: float) -> None:
        since = watched.since  # read once: the loop's thread sets it too
        if since:
            since = max(since, self._resumed_at)
        hangs_s = now - since if since else 0.0
        if hangs_s < self._first_log_s:
            if watched.reported:
                watched.reported = False
                watched.acted_at = 0.0
                name = watched.name
                on_other_thread(
                    lambda: log_event(logger, "critical_component_resumed", {"component": name})
                )
            return
        name, seconds, stack = watched.name, round(hangs_s, 1), self._stack(watched)
        if not watched.reported:
            watched.reported = True
            on_other_thread(
                lambda: log_event(
                    logger,
                    "critical_component_slow",
                    {"component": name, "seconds": seconds, "at": stack},
                )
            )
        if now - max(since, watched.acted_at) >= self._timeout_s:
            again = watched.acted_at > 0.0
            watched.acted_at = now
            on_other_thread(
                lambda: log_event(
                    logger,
                    "critical_component_hangs",
                    {"component": name, "seconds": seconds, "policy": self._policy, "at": stack},
                )
            )
            self._act(watched, again)

    def _stack(self, watched: WatchedComponent) -> str:
        """Returns the stack of the loop's thread, innermost frame first."""
        if watched is not self._loop_state:
            return ""
        frame = sys._current_frames().get(self._loop_thread)
        if frame is None:
            return ""
        frames = traceback.extract_stack(frame)[-FRAMES:]
        return " < ".join(
            f"{os.path.basename(each.filename)}:{each.lineno} {each.name}" for each in reversed(frames)
        )

    def _act(self, watched: WatchedComponent, again: bool) -> None:
        if self._policy == HALT or (self._policy == SHUTDOWN and again):
            on_other_thread(logging.shutdown)
            self._end(exit_codes.BUG)
        elif self._policy == SHUTDOWN:
            why = f"the {watched.name} hangs (critical-analyzer-policy)"
            self._loop.call_soon_threadsafe(self._request_stop, why)


def critical_analyzer(
    loop: asyncio.AbstractEventLoop,
    request_stop: Callable[[str], None],
    broker: BrokerConfig,
    busy_since: Callable[[], float],
) -> CriticalAnalyzer | None:
    """Creates the analyzer that broker.xml configures; None if it is switched off."""
    if not broker.critical_analyzer:
        return None
    return CriticalAnalyzer(
        loop,
        busy_since,
        broker.critical_analyzer_timeout_ms / 1_000,
        broker.critical_analyzer_check_period_ms / 1_000,
        broker.critical_analyzer_policy,
        request_stop,
    )


def on_other_thread(call: Callable[[], None]) -> None:
    """Runs `call` on another thread: the log may hang, or its lock may be held by the thread that hangs."""
    thread = threading.Thread(target=call, name="critical-analyzer-log", daemon=True)
    thread.start()
    thread.join(LOG_TIMEOUT_S)
