"""Timers by key and the clock they follow."""

from __future__ import annotations

import asyncio

import pytest

from atalanta.runtime.clock import STEP_NS_MIN, Clock
from atalanta.runtime.process.event_loop import new_loop
from atalanta.runtime.timers import LoopTimers

SECOND = 1_000_000_000


class Hands:
    """Two clocks that a test moves."""

    def __init__(self) -> None:
        self.monotonic = 500
        self.wall = 1_700_000_000 * SECOND

    def clock(self) -> Clock:
        """A clock on these hands."""
        return Clock(lambda: self.monotonic, lambda: self.wall)


def test_clock_starts_at_the_wall_clock_and_runs_on_the_monotonic_one() -> None:
    hands = Hands()
    clock = hands.clock()
    assert clock.now() == hands.wall
    hands.monotonic += 3 * SECOND
    assert clock.now() == hands.wall + 3 * SECOND


def test_clock_never_goes_back_and_follows_steps_ahead() -> None:
    hands = Hands()
    clock = hands.clock()
    before = clock.now()
    hands.wall -= 3600 * SECOND
    assert clock.follow_wall() == 0
    assert clock.now() == before
    hands.wall += 3600 * SECOND + STEP_NS_MIN - 1
    assert clock.follow_wall() == 0
    hands.wall += 10 * SECOND
    assert clock.follow_wall() == 10 * SECOND + STEP_NS_MIN - 1
    assert clock.now() == hands.wall


@pytest.mark.parametrize("plain", [False, True], ids=["uvloop", "asyncio"])
def test_timers_fire_by_key_never_early_and_only_once(plain: bool) -> None:
    loop = new_loop(plain)
    clock = Clock()
    fired: list[tuple[str, int]] = []
    timers = LoopTimers(loop, clock, lambda key: fired.append((key, clock.now())))
    start = clock.now()
    due = {"past": start - SECOND, "soon": start + 1_300_000, "later": start + 30_000_000}
    for key, at_ns in due.items():
        timers.set(key, at_ns)
    timers.set("moved", start + 3600 * SECOND)
    timers.set("moved", start + 20_000_000)
    timers.set("never", start + 5_000_000)
    timers.cancel("never")
    timers.cancel("unknown")
    timers.set("next year", start + 400 * 24 * 3600 * SECOND)
    assert fired == [], "never from within set"

    async def until_all() -> None:
        async with asyncio.timeout(10):
            while len(fired) < 4:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.01)

    try:
        loop.run_until_complete(until_all())
        timers.clear()
    finally:
        loop.close()
    assert [key for key, _ in fired] == ["past", "soon", "moved", "later"]
    assert all(at >= due.get(key, start + 20_000_000) for key, at in fired)


def test_timers_look_again_after_a_step_of_the_clock() -> None:
    hands = Hands()
    clock = hands.clock()
    loop = new_loop()
    fired: list[str] = []
    timers = LoopTimers(loop, clock, fired.append)
    timers.set("tomorrow", clock.now() + 24 * 3600 * SECOND)
    hands.wall += 48 * 3600 * SECOND
    assert clock.follow_wall() > 0
    timers.rearm()
    try:
        loop.run_until_complete(asyncio.sleep(0.01))
    finally:
        loop.close()
    assert fired == ["tomorrow"]


def test_a_clock_begins_above_a_floor_and_does_not_go_back() -> None:
    clock = Clock(lambda: 5, lambda: 1_000)
    clock.begin_above(900)
    assert clock.now() == 1_000
    clock.begin_above(2_000)
    assert clock.now() == 2_001
