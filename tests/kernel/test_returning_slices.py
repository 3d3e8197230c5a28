"""Where many messages must move for one that comes back: in slices, over several turns, in order after each."""

from __future__ import annotations

import pytest

from atalanta.kernel import housekeeping
from atalanta.kernel.holding import hold, let_go
from atalanta.kernel.queue import Queue
from atalanta.kernel.returning import SLICE_MAX, Return, Room
from tests.kernel.bench import Bench, consume, endpoint
from tests.kernel.test_returning import bench_with, bring_back, held, restarted, send

OLDER = 3_500


def dense() -> tuple[Bench, list[int]]:
    """`here` has no sequence free before the place of what is `away`."""
    bench = bench_with()
    send(bench, "here", *range(OLDER))
    send(bench, "away", *range(OLDER, OLDER + 5))
    send(bench, "here", *range(OLDER + 5, OLDER + 10))
    return bench, list(range(OLDER + 10))


def first_away(bench: Bench) -> Return:
    here, away = bench.broker.queues["here"], bench.broker.queues["away"]
    back = Return(bench.broker, away.live()[0], [here], {})
    assert back.keeps_its_place() and back.waits_for() is None
    return back


def places(queue: Queue) -> dict[int, int]:
    return {int(each.message.id): int(each.sequence) for each in queue.live()}


@pytest.mark.parametrize("crash_after", [0, 1, 2, 3])
def test_each_turn_moves_few_and_keeps_the_order_also_over_a_crash(crash_after: int) -> None:
    bench, everything = dense()
    here_before = [number for number in everything if not OLDER <= number < OLDER + 5]
    room = Room()
    turns = 0
    while True:
        before = places(bench.broker.queues["here"])
        room.left = SLICE_MAX
        if first_away(bench).makes_room(100, room):
            break
        turns += 1
        bench.settle()
        after = places(bench.broker.queues["here"])
        assert 0 < sum(before[each] != after[each] for each in before) <= SLICE_MAX
        assert held(bench) == here_before
        housekeeping.validate(bench.broker)
        if turns == crash_after:
            assert restarted(bench) == here_before
            room = Room()
    assert turns == 3
    assert bring_back(bench) == 5
    assert held(bench) == everything
    assert restarted(bench) == everything


def test_consumers_that_take_what_is_older_meanwhile_get_all_in_order() -> None:
    bench, everything = dense()
    here = bench.broker.queues["here"]
    session = bench.session()
    consume(session, bench, "here", None, credits=0)
    hold(bench.broker, here, "test", here.live()[OLDER].message.id - 1)
    room = Room()
    for _ in range(3):
        session.add_credits(0, 20_000)
        bench.settle()
        room.left = SLICE_MAX
        first_away(bench).makes_room(100, room)
    assert bring_back(bench) == 5
    let_go(bench.broker, here, "test")
    session.add_credits(0, 100_000_000)
    bench.settle()
    bodies = endpoint(session).bodies()
    assert [int.from_bytes(body[:4], "big") for body in bodies] == everything


def test_a_browser_beside_a_consumer_of_a_held_queue_takes_nothing() -> None:
    bench = bench_with()
    send(bench, "here", *range(10))
    here = bench.broker.queues["here"]
    hold(bench.broker, here, "test", int(here.live()[4].message.id))
    session, browsing = bench.session(), bench.session()
    consume(session, bench, "here")
    consume(browsing, bench, "here", browse=True)
    bench.settle()
    assert [body[3] for body in endpoint(session).bodies()] == [0, 1, 2, 3, 4]
    assert [body[3] for body in endpoint(browsing).bodies()] == list(range(10))
    let_go(bench.broker, here, "test")
    bench.settle()
    assert [body[3] for body in endpoint(session).bodies()] == list(range(10))
    assert here.delivering_count == 10
