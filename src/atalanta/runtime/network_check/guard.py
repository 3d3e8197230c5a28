"""A node that serves only while the network is there (network-check-list, network-check-URL-list).

When no address answers any more the node stops: its journal stays, it accepts nobody, clients and peers are sent away.
When one answers again it starts anew, in the same process. Follows Artemis' NetworkHealthCheck.run, which stops and
starts its server; differences: the first check comes before the first start, a start that fails is tried again, and a
node that goes does neither wait for its clients nor leave for good (scale-down): it comes back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.event_loop import trim_allocator, unsettle_collector
from atalanta.runtime.process.logs import log_event
from atalanta.runtime.process.signals import StopSignals

log = logging.getLogger("atalanta.runtime")


class Check(Protocol):
    """See runtime/network_check/check.py."""

    async def why_lost(self) -> str:
        """Empty as long as the network is there."""

    def close(self) -> None:
        """No check goes on."""


class Living(Protocol):
    """One life of the node: its shell."""

    paused: bool
    heeds_signals: bool

    def pause(self, why: str) -> bool:
        """Ends it in good order, to come back; False if it does not go now."""

    def request_stop(self, why: str) -> None:
        """Ends it for good."""

    def request_reload(self, why: str) -> None:
        """Reads the configuration again."""


class NetworkGuard:
    """Stop signals are heard here, whether the node lives or not."""

    def __init__(self, loop: asyncio.AbstractEventLoop, check: Check, period_s: float) -> None:
        self._loop = loop
        self._check = check
        self._period_s = period_s
        self._living: Living | None = None
        self._stopping = ""
        self._lost = False
        self.on_change: Callable[[bool], None] = lambda lost: None  # whether the network is lost now
        self._waiting: asyncio.Task[str] | None = None

    async def run(self, live: Callable[[], Awaitable[int | None]]) -> int:
        """`live` is one life, from the start to the end, which calls `born` as soon as it can be ended; its exit
        status, or None: it could not begin, and is tried again. Returns the status of the last."""
        with StopSignals(self._loop, self._stop, self._hangup):
            try:
                return await self._lives(live)
            finally:
                self._check.close()

    def born(self, living: Living) -> None:
        """The life that has just begun."""
        living.heeds_signals = False
        self._living = living
        if self._stopping:
            living.request_stop(self._stopping)

    async def _lives(self, live: Callable[[], Awaitable[int | None]]) -> int:
        wait_s = 0.0
        while True:
            why = await self._why_lost_after(wait_s)
            if self._stopping:
                log_event(log, "node_stopped", {"status": exit_codes.STOPPED})
                return exit_codes.STOPPED
            self._tell(why)
            if not why:
                status = await self._live(live)
                if status is not None:
                    return status
                unsettle_collector()
                trim_allocator()
            wait_s = self._period_s

    async def _live(self, live: Callable[[], Awaitable[int | None]]) -> int | None:
        """None if there is to be another one."""
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
                self._tell(why)
                return

    def _tell(self, why: str) -> None:
        """What has changed."""
        if why and not self._lost:
            log_event(log, "network_lost", {"why": why})
        elif self._lost and not why:
            log_event(log, "network_found", {})
        self._lost = bool(why)
        self.on_change(self._lost)

    async def _why_lost_after(self, wait_s: float) -> str:
        """A stop ends the wait."""
        if self._stops():
            return ""
        self._waiting = self._loop.create_task(self._rest_and_look(wait_s))
        try:
            return await self._waiting
        except asyncio.CancelledError:
            if self._stops():
                return ""
            raise
        finally:
            self._waiting = None

    async def _rest_and_look(self, wait_s: float) -> str:
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
        """A node that is away reads its files when it comes back."""
        if self._living is not None:
            self._living.request_reload(why)
