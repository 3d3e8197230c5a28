"""The pace of the airports."""

from __future__ import annotations

import asyncio

from examples.flights.pace import Pace
from examples.flights.progress import Progress

DAY_MS = 86_400_000


def make(ahead_rows: int = 1_000) -> tuple[Progress, Pace]:
    progress = Progress(["EWR", "JFK", "LGA"])
    return progress, Pace(progress, DAY_MS, ahead_rows, 0)


def test_nobody_runs_ahead_of_an_airport_that_stands_still() -> None:
    _, pace = make()
    pace.confirmed("EWR", 10, DAY_MS)
    pace.confirmed("LGA", 10, DAY_MS)
    assert pace.allows("EWR", DAY_MS)
    assert not pace.allows("EWR", DAY_MS + 1)
    assert pace.allows("JFK", 2 * DAY_MS)
    pace.confirmed("JFK", 1, 5)
    assert pace.allows("EWR", DAY_MS + 5)


def test_nobody_waits_for_an_airport_that_has_finished() -> None:
    _, pace = make()
    pace.finished("JFK")
    pace.finished("LGA")
    assert pace.allows("EWR", 51 * DAY_MS)
    pace.confirmed("JFK", 10, 5)
    assert pace.allows("EWR", 99 * DAY_MS)


def test_the_airports_wait_for_the_archive() -> None:
    progress, pace = make(ahead_rows=100)
    pace.confirmed("EWR", 101, 1)
    assert not pace.allows("EWR", 2)
    progress.archived = 1
    assert pace.allows("EWR", 2)


def test_a_turn_comes_when_the_slowest_moves() -> None:
    async def scenario() -> None:
        _, pace = make()
        pace.confirmed("EWR", 10, 100)
        pace.confirmed("LGA", 10, 100)
        turns = [asyncio.create_task(pace.turn(code, DAY_MS + 1)) for code in ("EWR", "LGA")]
        await asyncio.sleep(0)
        assert not any(turn.done() for turn in turns)
        assert pace.holds("EWR", "LGA")
        assert not pace.holds("EWR", "JFK")
        pace.confirmed("JFK", 1, 1)
        assert not pace.holds("EWR", "LGA")
        await asyncio.wait_for(asyncio.gather(*turns), 5)

    asyncio.run(scenario())


def test_who_waits_goes_on_when_more_is_allowed() -> None:
    """With a node away nothing else may ever change: the demo stood still."""
    progress, pace = make(ahead_rows=100)
    pace.confirmed("EWR", 101, 0)

    async def main() -> None:
        waiting = asyncio.create_task(pace.turn("EWR", 1))
        await asyncio.sleep(0)
        assert pace.holds("EWR")
        pace.let_ahead(50)
        async with asyncio.timeout(5):
            await waiting

    asyncio.run(main())
    assert pace.ahead_rows == 151 and progress.published_rows == 101
