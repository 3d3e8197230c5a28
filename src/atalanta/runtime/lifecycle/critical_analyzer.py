"""Watches the node's loop and its disk from a thread of its own, as Artemis' critical analyzer watches its threads.

A write that hangs cannot be taken back: if it is the worker's, the node goes on serving and only answers for what
must be durable wait; if it is the loop's own (runtime/disk/inline_commit.py; only ever the first, and never with
`commits-in-loop = false`) everything waits. Either way this thread says so after a few seconds, and does after
`critical-analyzer-timeout` what `critical-analyzer-policy` says (CriticalAnalyzerImpl,
ActiveMQServerImpl.initializeCriticalAnalyzer): LOG says it again, SHUTDOWN asks for a stop, and ends the process if
none comes about within the same time again, HALT ends it at once.
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
from typing import Final, Protocol

from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event

logger = logging.getLogger("atalanta.runtime")

LOOK_S: Final = 1.0
TELL_S: Final = 5.0  # after so long it is told for the first time
# This thread itself was not served for so long: the machine or the process stood still, and nothing hangs.
STILL_S: Final = 3.0
LOGGED_S: Final = 1.0  # for one line of the log, which may hang too
FRAMES: Final = 3
HALT: Final = "HALT"
SHUTDOWN: Final = "SHUTDOWN"


class Watched:
    """One component. `since`: when it last showed that it is alive, while something is expected of it; 0.0 while
    not.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.since = 0.0
        self.told = False
        self.acted_at = 0.0


class CriticalAnalyzer:
    """`start` it when the node serves, `stop` it when its files are closed.

    `busy_since` asks what writes files: time.monotonic() when what it does now began, 0.0 if it does nothing.
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
        self._look_s = min(LOOK_S, period_s) if period_s > 0 else min(LOOK_S, timeout_s / 2)
        self._tell_s = min(TELL_S, timeout_s)
        self._policy = policy
        self._request_stop = request_stop
        self._end = end
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop_thread = threading.get_ident()
        self._loop_state = Watched("loop")
        self._disk_state = Watched("disk")
        self._stood_still_at = 0.0  # until then nothing could be expected of anybody

    def start(self) -> None:
        """On the loop's thread."""
        self._loop_thread = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="critical-analyzer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns when nothing is watched any more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._over.wait(self._look_s):
            now = time.monotonic()
            stood_still = now - last - self._look_s > STILL_S
            self._look(now, stood_still)
            last = time.monotonic()

    def _look(self, now: float, stood_still: bool) -> None:
        """`stood_still`: whatever seems to hang has its time again from now on."""
        if stood_still:
            self._stood_still_at = now
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
        """The loop answers."""
        self._loop_state.since = 0.0

    def _judge(self, watched: Watched, now: float) -> None:
        since = watched.since  # once: the loop's thread sets it too
        if since:
            since = max(since, self._stood_still_at)
        hangs_s = now - since if since else 0.0
        if hangs_s < self._tell_s:
            if watched.told:
                watched.told = False
                watched.acted_at = 0.0
                name = watched.name
                beside(lambda: log_event(logger, "critical_component_resumed", {"component": name}))
            return
        name, seconds, place = watched.name, round(hangs_s, 1), self._place(watched)
        if not watched.told:
            watched.told = True
            beside(
                lambda: log_event(
                    logger,
                    "critical_component_slow",
                    {"component": name, "seconds": seconds, "at": place},
                )
            )
        if now - max(since, watched.acted_at) >= self._timeout_s:
            again = watched.acted_at > 0.0
            watched.acted_at = now
            beside(
                lambda: log_event(
                    logger,
                    "critical_component_hangs",
                    {"component": name, "seconds": seconds, "policy": self._policy, "at": place},
                )
            )
            self._act(watched, again)

    def _place(self, watched: Watched) -> str:
        """Where the loop's thread is, innermost first."""
        if watched is not self._loop_state:
            return ""
        frame = sys._current_frames().get(self._loop_thread)
        if frame is None:
            return ""
        places = traceback.extract_stack(frame)[-FRAMES:]
        return " < ".join(
            f"{os.path.basename(each.filename)}:{each.lineno} {each.name}" for each in reversed(places)
        )

    def _act(self, watched: Watched, again: bool) -> None:
        if self._policy == HALT or (self._policy == SHUTDOWN and again):
            beside(logging.shutdown)
            self._end(exit_codes.BUG)
        elif self._policy == SHUTDOWN:
            why = f"the {watched.name} hangs (critical-analyzer-policy)"
            self._loop.call_soon_threadsafe(self._request_stop, why)


class Watching(Protocol):
    """The shell, as far as it is watched."""

    loop: asyncio.AbstractEventLoop

    def request_stop(self, why: str) -> None:
        """Asks for a graceful end."""


def critical_analyzer(
    shell: Watching, broker: BrokerConfig, busy_since: Callable[[], float]
) -> CriticalAnalyzer | None:
    """As broker.xml has it; None if it wants none."""
    if not broker.critical_analyzer:
        return None
    return CriticalAnalyzer(
        shell.loop,
        busy_since,
        broker.critical_analyzer_timeout_ms / 1_000,
        broker.critical_analyzer_check_period_ms / 1_000,
        broker.critical_analyzer_policy,
        shell.request_stop,
    )


def beside(call: Callable[[], None]) -> None:
    """What hangs may be the log, and whoever hangs may hold it: neither keeps this thread from its work."""
    thread = threading.Thread(target=call, name="critical-analyzer-log", daemon=True)
    thread.start()
    thread.join(LOGGED_S)
