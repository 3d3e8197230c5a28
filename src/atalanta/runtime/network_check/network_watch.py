"""The watch of the network: runs the node only while the network is available (network-check-list,
network-check-URL-list).

When no address answers, the node stops. Its journal stays, it accepts no connections, clients and peers are
disconnected. When an address answers again, the node starts again in the same process. This follows Artemis'
NetworkHealthCheck.run, which stops and starts its server.

Differences: the first check precedes the first start. A failed start is tried again. A node that stops does not
wait for its clients and does not scale down, since it will start again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.allocator import trim_allocator
from atalanta.runtime.process.event_loop import unsettle_collector
from atalanta.runtime.process.logs import log_event
from atalanta.runtime.process.signals import StopSignals

log = logging.getLogger("atalanta.runtime")


class ReachabilityCheck(Protocol):
    """The check, see runtime/network_check/check.py."""

    async def why_lost(self) -> str:
        """Returns the reason for a lost network; "" while it is available."""

    def close(self) -> None:
        """Ends all checks."""


class NodeRun(Protocol):
    """A run of the node: its shell."""

    @property
    def paused(self) -> bool:
        """Returns whether the node stops in order to start again."""

    def pause(self, why: str) -> bool:
        """Stops the node in order to start it again; False if it cannot stop so now."""

    def request_stop(self, why: str) -> None:
        """Stops the node for good."""

    def request_reload(self, why: str) -> None:
        """Reads the configuration again."""


class NetworkWatch:
    """Starts and stops the node with the network. Handles stop signals, whether the node runs or not."""

    def __init__(self, loop: asyncio.AbstractEventLoop, check: ReachabilityCheck, period_s: float) -> None:
        self._loop = loop
        self._check = check
        self._period_s = period_s
        self._living: NodeRun | None = None
        self._stopping = ""
        self._lost = False
        self.on_change: Callable[[bool], None] = lambda lost: (
            None
        )  # gets whether the network is lost now
        self._waiting: asyncio.Task[str] | None = None

    async def run(self, live: Callable[[], Awaitable[int | None]]) -> int:
        """Runs the node until it ends for good. Returns the exit status of the last run.

        `live` is one run of the node, from start to end. It calls `begun` as soon as it can be stopped. Its
        result is the exit status, or None: it could not start, and is tried again.
        """
        with StopSignals(self._loop, self._stop, self._hangup):
            try:
                return await self._lives(live)
            finally:
                self._check.close()

    def begun(self, living: NodeRun) -> None:
        """Records the run that has just begun."""
        self._living = living
        if self._stopping:
            living.request_stop(self._stopping)

    def ended(self) -> None:
        """Records that the run has ended for good, also if it was paused."""
        self._living = None

    async def _lives(self, live: Callable[[], Awaitable[int | None]]) -> int:
        wait_s = 0.0
        while True:
            why = await self._why_lost_after(wait_s)
            if self._stopping:
                log_event(log, "node_stopped", {"status": exit_codes.STOPPED})
                return exit_codes.STOPPED
            self._log_change(why)
            if not why:
                status = await self._live(live)
                if status is not None:
                    return status
                unsettle_collector()
                trim_allocator()
            wait_s = self._period_s

    async def _live(self, live: Callable[[], Awaitable[int | None]]) -> int | None:
        """Runs the node once. Returns None if it is to be started again."""
        watching = self._loop.create_task(self._watch())
        try:
            status = await live()
        finally:
            watching.cancel()
            living, self._living = self._living, None
        comes_back = living is not None and living.paused and not self._stopping
        return None if comes_back and status == exit_codes.STOPPED else status

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._period_s)
            why = await self._check.why_lost()
            living = self._living
            if why and living is not None and living.pause("the network is lost"):
                self._log_change(why)
                return

    def _log_change(self, why: str) -> None:
        """Logs a change."""
        if why and not self._lost:
            log_event(log, "network_lost", {"why": why})
        elif self._lost and not why:
            log_event(log, "network_found", {})
        self._lost = bool(why)
        self.on_change(self._lost)

    async def _why_lost_after(self, wait_s: float) -> str:
        """Checks after a pause; a stop ends the wait."""
        if self._stops():
            return ""
        self._waiting = self._loop.create_task(self._wait_and_check(wait_s))
        try:
            return await self._waiting
        except asyncio.CancelledError:
            if self._stops():
                return ""
            raise
        finally:
            self._waiting = None

    async def _wait_and_check(self, wait_s: float) -> str:
        await asyncio.sleep(wait_s)
        return await self._check.why_lost()

    def _stops(self) -> bool:
        return bool(self._stopping)

    def _stop(self, why: str) -> None:
        self._stopping = why
        if self._living is not None:
            self._living.request_stop(why)
        elif self._waiting is not None:
            log_event(log, "node_stopping", {"why": why})
            self._waiting.cancel()

    def _hangup(self, why: str) -> None:
        """Reloads the running node. A stopped node reads its files at the next start."""
        if self._living is not None:
            self._living.request_reload(why)
