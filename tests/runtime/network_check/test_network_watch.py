"""A node whose network comes and goes: when it lives, when it ends, and who hears of a stop."""

from __future__ import annotations

import asyncio
import os
import signal

from atalanta.runtime.network_check.network_watch import NetworkWatch
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.event_loop import run
from tests.runtime.net.echo import DEADLINE_S
from tests.waiting import reached


class Check:
    """The network is there while `why` is empty."""

    def __init__(self, why: str = "") -> None:
        self.why = why
        self.asked = 0
        self.closed = False

    async def why_lost(self) -> str:
        self.asked += 1
        return self.why

    def close(self) -> None:
        self.closed = True


class Life:
    """A shell that does what it is told."""

    def __init__(self) -> None:
        self.paused = False
        self.leaves = False
        self.reloads: list[str] = []
        self.over: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def pause(self, why: str) -> bool:
        if self.leaves or self.over.done():
            return False
        self.paused = True
        self.over.set_result(exit_codes.STOPPED)
        return True

    def request_stop(self, why: str) -> None:
        if not self.over.done():
            self.over.set_result(exit_codes.STOPPED)

    def request_reload(self, why: str) -> None:
        self.reloads.append(why)


class Bench:
    """A watch that runs, with every life it begins."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.lives: list[Life] = []
        self.refused = 0
        self.watch = NetworkWatch(asyncio.get_running_loop(), check, 0.002)
        self.task = asyncio.get_running_loop().create_task(self.watch.run(self.live))

    async def live(self) -> int | None:
        if self.refused:
            self.refused -= 1
            return None
        life = Life()
        self.lives.append(life)
        self.watch.begun(life)
        return await life.over

    async def until(self, lives: int) -> None:
        await reached(lambda: len(self.lives) >= lives)

    async def until_asked(self) -> None:
        """Twice more, so that one answer at least is of after this call."""
        target = self.check.asked + 2
        await reached(lambda: self.check.asked >= target)

    async def ended(self) -> int:
        async with asyncio.timeout(DEADLINE_S):
            status = await self.task
        assert self.check.closed
        return status


def test_a_node_without_network_does_not_start_and_heeds_a_stop() -> None:
    async def whole() -> int:
        bench = Bench(Check("a: silent"))
        await bench.until_asked()
        assert not bench.lives
        os.kill(os.getpid(), signal.SIGHUP)  # nothing to do, and no end
        await bench.until_asked()
        os.kill(os.getpid(), signal.SIGTERM)
        return await bench.ended()

    assert run(whole()) == exit_codes.STOPPED


def test_signals_go_to_the_life_of_the_moment() -> None:
    async def whole() -> int:
        bench = Bench(Check())
        await bench.until(1)
        os.kill(os.getpid(), signal.SIGHUP)
        async with asyncio.timeout(DEADLINE_S):
            while not bench.lives[0].reloads:
                await asyncio.sleep(0.001)
        os.kill(os.getpid(), signal.SIGTERM)
        return await bench.ended()

    assert run(whole()) == exit_codes.STOPPED


def test_a_node_that_leaves_goes_on_and_one_that_fails_ends() -> None:
    async def whole() -> int:
        check = Check()
        bench = Bench(check)
        await bench.until(1)
        bench.lives[0].leaves = True
        check.why = "a: silent"
        await bench.until_asked()
        assert not bench.lives[0].over.done()
        bench.lives[0].paused = True
        bench.lives[0].over.set_result(exit_codes.DISK_FAILED)
        return await bench.ended()

    assert run(whole()) == exit_codes.DISK_FAILED
