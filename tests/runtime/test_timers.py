"""Timers by key and the clock they follow."""

from __future__ import annotations

import asyncio

import pytest

from atalanta.node.clock import AHEAD_NS_MAX, STEP_NS_MIN, Clock
from atalanta.runtime.clock import system_clock
from atalanta.runtime.process.event_loop import new_loop
from atalanta.runtime.timers import LoopTimers
from tests.waiting import reached

SECOND = 1_000_000_000


class Hands:
    """Two clocks that a test moves."""

    def __init__(self) -> None:
        self.monotonic = 500
        self.wall = 1_700_000_000 * SECOND

    def pass_time(self, seconds: float) -> None:
        """Moves both."""
        self.monotonic += int(seconds * SECOND)
        self.wall += int(seconds * SECOND)

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
    assert clock.follow_wall() == -3600 * SECOND
    assert clock.now() == before
    hands.pass_time(10)
    assert clock.now() == before + 10 * SECOND, "what is too much is not given back while the node runs"
    hands.wall += 3600 * SECOND + STEP_NS_MIN - 1
    assert clock.follow_wall() == 0
    hands.wall += 10 * SECOND
    assert clock.follow_wall() == 10 * SECOND + STEP_NS_MIN - 1
    assert clock.now() == hands.wall


@pytest.mark.parametrize("plain", [False, True], ids=["uvloop", "asyncio"])
def test_timers_fire_by_key_never_early_and_only_once(plain: bool) -> None:
    loop = new_loop(plain)
    clock = system_clock()
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
        await reached(lambda: len(fired) >= 4)
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


def test_a_clock_begins_at_the_wall_clock_if_its_predecessor_was_not_ahead() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.monotonic += 7 * SECOND  # a process that was suspended while it was passive
    for last_ns in (0, hands.wall - SECOND, hands.wall):
        assert clock.begin(last_ns) == 0
        assert clock.now() == hands.wall
        assert clock.wait_ns(hands.wall + SECOND) == SECOND


def test_a_clock_that_begins_ahead_runs_at_half_speed_until_it_meets_the_wall_clock() -> None:
    hands = Hands()
    clock = hands.clock()
    assert clock.begin(hands.wall + 4 * SECOND) == 0
    last = clock.now()
    assert last == hands.wall + 4 * SECOND
    for passed in range(1, 8):
        at_ns = last + SECOND // 2
        assert clock.wait_ns(at_ns) == SECOND
        hands.pass_time(1)
        assert last + SECOND // 2 == clock.now()
        last = clock.now()
        assert last - hands.wall == 4 * SECOND - passed * SECOND // 2
    assert clock.wait_ns(last + 2 * SECOND) == int(2.5 * SECOND), "partly at half speed"
    hands.pass_time(1)
    assert clock.now() == hands.wall
    hands.pass_time(1)
    assert clock.now() == hands.wall


def test_a_clock_does_not_begin_more_than_a_minute_ahead() -> None:
    hands = Hands()
    clock = hands.clock()
    assert clock.begin(hands.wall + AHEAD_NS_MAX) == 0
    assert clock.now() == hands.wall + AHEAD_NS_MAX
    assert clock.begin(hands.wall + AHEAD_NS_MAX + 1) == AHEAD_NS_MAX + 1
    assert clock.now() == hands.wall


def test_a_clock_gives_back_what_the_wall_clock_was_set_back() -> None:
    hands = Hands()
    clock = hands.clock()
    before = clock.now()
    hands.wall -= 10 * SECOND
    assert clock.follow_wall() == 0
    assert clock.now() == before
    for _ in range(10):
        hands.pass_time(1)
        assert clock.follow_wall() == 0
    assert clock.now() == before + 5 * SECOND
    hands.pass_time(10)
    assert clock.now() == hands.wall


def test_timers_wait_for_a_clock_at_half_speed() -> None:
    clock = system_clock()
    clock.begin(clock.now() + 40_000_000)
    loop = new_loop()
    fired: list[int] = []
    timers = LoopTimers(loop, clock, lambda key: fired.append(clock.now()))
    at_ns = clock.now() + 30_000_000
    timers.set("soon", at_ns)

    try:
        loop.run_until_complete(reached(lambda: fired))
    finally:
        loop.close()
    assert fired[0] >= at_ns
