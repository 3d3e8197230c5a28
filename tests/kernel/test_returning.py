"""Messages that come back to a queue of their node take the place of their arrival: whatever else is in it."""

from __future__ import annotations

import random

import pytest

from atalanta.kernel import housekeeping, logview, moves
from atalanta.kernel.holding import hold, let_go
from atalanta.kernel.paging_view import everything
from atalanta.kernel.queue import Queue
from atalanta.kernel.reference import READY, Reference
from atalanta.kernel.returning import SLICE_MAX, Return, Room
from atalanta.kernel.scheduled import SCHEDULED_TIMER
from atalanta.kernel.settings import AddressSettingsRepository
from atalanta.kernel.spots import Looked
from tests.kernel.bench import Bench, consume, endpoint


def bench_with(limit: int = 0) -> Bench:
    """Queues `here` and `away`; `limit`: bytes of an address from which it pages."""
    settings = AddressSettingsRepository()
    if limit:
        settings.add("#", {"max_size_bytes": limit, "page_size_bytes": limit // 2})
    bench = Bench(None, settings, paging=True)
    bench.trace.on = False
    bench.queue("here")
    bench.queue("away")
    return bench


def send(bench: Bench, address: str, *numbers: int, durable: bool = True, size: int = 0) -> None:
    session = bench.session()
    for number in numbers:
        body = number.to_bytes(4, "big") + bytes(size)
        session.send(bench.now, bench.message(address, body, durable), number)
    bench.settle()


def number_of(reference: Reference) -> int:
    return int.from_bytes(reference.message.body[:4], "big")


def held(bench: Bench, name: str = "here") -> list[int]:
    return [number_of(reference) for reference in everything(bench.broker.queues[name])]


def go(back: Return, spare: int = 100) -> None:
    """However many turns it takes."""
    room = Room()
    while not back.makes_room(spare, room):
        room.left = SLICE_MAX
    back.go()


def bring_back(bench: Bench, most: int = 1_000_000, spare: int = 100) -> int:
    """What of `away` has a place in memory goes to `here`; returns how many that were."""
    here, away = bench.broker.queues["here"], bench.broker.queues["away"]
    looked: dict[tuple[int, int], Looked] = {}
    moved = 0
    bench.broker.paging.refill(bench.now, away, True)
    for reference in away.live():
        if reference.state == READY and moved < most:
            back = Return(bench.broker, reference, [here], looked)
            assert back.keeps_its_place()
            if back.waits_for() is None:
                go(back, spare)
                moved += 1
    bench.settle()
    housekeeping.validate(bench.broker)
    return moved


def restarted(bench: Bench) -> list[int]:
    bench.restart()
    housekeeping.validate(bench.broker)
    return held(bench)


def test_in_front_of_what_came_later_and_behind_what_came_before() -> None:
    bench = bench_with()
    for number in range(20):
        send(bench, "away" if number % 3 == 0 else "here", number)
    assert bring_back(bench) == 7
    assert held(bench) == list(range(20)) and held(bench, "away") == []
    assert restarted(bench) == list(range(20))
    bench.compact(bench.journal.last - 1)
    assert restarted(bench) == list(range(20))


def test_what_comes_next_is_behind_it_and_a_consumer_gets_all_in_order() -> None:
    bench = bench_with()
    send(bench, "away", *range(10))
    send(bench, "here", *range(10, 20))
    session = bench.session()
    consume(session, bench, "here", None, credits=0)
    bring_back(bench)
    send(bench, "here", *range(20, 30))
    session.add_credits(0, 1_000_000)
    bench.settle()
    bodies = endpoint(session).bodies()
    assert [int.from_bytes(body[:4], "big") for body in bodies] == list(range(30))


def test_a_browser_half_way_sees_each_message_once() -> None:
    bench = bench_with()
    send(bench, "here", *range(0, 10, 2))
    send(bench, "away", 11)
    send(bench, "here", *range(12, 20, 2))
    session = bench.session()
    consume(session, bench, "here", None, credits=0, browse=True)
    session.add_credits(0, 120)
    bench.settle()
    assert 0 < len(endpoint(session).bodies()) < 5
    bring_back(bench)
    session.add_credits(0, 1_000_000)
    bench.settle()
    bodies = endpoint(session).bodies()
    found = [int.from_bytes(body[:4], "big") for body in bodies]
    assert found == [0, 2, 4, 6, 8, 11, 12, 14, 16, 18]


def test_what_arrived_later_waits_while_more_is_to_come() -> None:
    bench = bench_with()
    send(bench, "away", *range(10))
    send(bench, "here", *range(10, 15))
    queue = bench.broker.queues["here"]
    last = bench.broker.queues["away"].references[9].message.id
    hold(bench.broker, queue, "more", last)
    session = bench.session()
    consume(session, bench, "here", None, credits=1_000_000)
    bench.settle()
    assert endpoint(session).bodies() == [] and "more" in bench.timers.due
    bring_back(bench, 6)
    assert len(endpoint(session).bodies()) == 6
    bring_back(bench)
    assert len(endpoint(session).bodies()) == 10
    let_go(bench.broker, queue, "more")
    bench.settle()
    bodies = endpoint(session).bodies()
    assert [int.from_bytes(body[:4], "big") for body in bodies] == list(range(15))


def test_a_reader_of_the_log_finds_them_all() -> None:
    bench = bench_with()
    send(bench, "away", *range(3))
    send(bench, "here", *range(3, 6))
    bring_back(bench)
    assert bench.broker.queues["here"].references[0].sequence < 0
    assert logview.position(bench.broker, "here").first > 0
    bench.settle()
    incarnation = bench.broker.queues["here"].incarnation
    chunk = logview.read(bench.broker, "here", incarnation, 0, 100, -1, None)
    assert [number_of(each) for each in chunk.references] == [3, 4, 5, 0, 1, 2]


def send_undurable_yet(bench: Bench, number: int, later_ms: int = 0) -> None:
    """To `here`; its record is not on disk yet. `later_ms`: it is for that much later."""
    message = bench.message("here", number.to_bytes(4, "big"))
    if later_ms:
        message.put_property("_AMQ_SCHED_DELIVERY", bench.now // 1_000_000 + later_ms)
    bench.session().send(bench.now, message, number)


def test_in_front_of_what_waits_for_the_disk_also_if_its_first_is_for_later() -> None:
    bench = bench_with()
    send(bench, "here", *range(50))
    moves.purge(bench.broker, bench.broker.queues["here"], "test")  # sequences above 0 are free
    send(bench, "away", 0, 1, 2)
    send_undurable_yet(bench, 100, later_ms=1_000)
    for number in range(3, 6):
        send_undurable_yet(bench, number)
    assert bring_back(bench, spare=2) == 3
    assert held(bench) == [0, 1, 2, 3, 4, 5]
    assert restarted(bench) == [0, 1, 2, 3, 4, 5]


def test_not_in_front_of_what_came_back_just_before_and_waits_for_the_disk() -> None:
    bench = bench_with()
    send(bench, "away", 0, 1)
    queue = bench.broker.queues["here"]
    first = Return(bench.broker, bench.broker.queues["away"].live()[0], [queue], {})
    assert first.waits_for() is None
    go(first)
    send_undurable_yet(bench, 2)
    assert queue.pending == 2
    assert bring_back(bench) == 0, "its place is between those two"
    assert bring_back(bench) == 1
    assert held(bench) == [0, 1, 2]
    assert restarted(bench) == [0, 1, 2]


def test_in_front_of_what_waits_for_the_disk_also_if_its_last_was_sent_for_now_before() -> None:
    bench = bench_with()
    send_undurable_yet(bench, 100, later_ms=1_000)
    send(bench, "away", 0, 1, 2)
    for number in range(3, 6):
        send_undurable_yet(bench, number)
    bench.now += 1_000_000_000
    housekeeping.on_timer(bench.broker, bench.now, SCHEDULED_TIMER)
    assert bench.broker.queues["here"].pending == 4
    assert bring_back(bench) == 3
    assert held(bench) == [0, 1, 2, 3, 4, 5, 100]
    assert restarted(bench) == [0, 1, 2, 3, 4, 5, 100]


def test_in_front_of_what_is_not_in_memory_also_if_its_last_was_sent_for_now_before() -> None:
    bench = bench_with(6_000)
    send_undurable_yet(bench, 100, later_ms=1_000)
    send(bench, "here", *range(20), size=400)
    send(bench, "away", 20, 21, 22)
    send(bench, "here", 23, 24)
    bench.now += 1_000_000_000
    housekeeping.on_timer(bench.broker, bench.now, SCHEDULED_TIMER)
    bench.settle()
    paged = bench.broker.queues["here"].paged
    assert paged is not None and number_of(paged.tail[-1]) == 100
    assert bring_back(bench) == 0
    take_some(bench, random.Random(2))
    for _ in range(20):
        if held(bench, "away"):
            take_some(bench, random.Random(2))
            bring_back(bench)
    assert held(bench)[-6:] == [20, 21, 22, 23, 24, 100]


@pytest.mark.parametrize("limit", [0, 6_000])
@pytest.mark.parametrize("seed", range(1, 9))
def test_random_play_order_holds_among_all_that_is_not_consumed(limit: int, seed: int) -> None:
    """Arrivals at both, returns in parts, consumers that roll back, restarts and compaction, in any order."""
    rng = random.Random(seed)
    bench = bench_with(limit)
    number = 0
    away_for_long = False
    for _ in range(60):
        deed = rng.randrange(8)
        if deed < 3:
            for _ in range(rng.randrange(1, 12)):
                address = "away" if away_for_long or rng.random() < 0.3 else "here"
                send(bench, address, number, size=rng.choice((0, 100, 400)))
                number += 1
        elif deed == 3:
            away_for_long = not away_for_long
        elif deed == 4:
            bring_back(bench, rng.choice((1, 3, 100)), rng.choice((0, 3, 100)))
        elif deed == 5:
            take_some(bench, rng)
        elif deed == 6:
            bench.restart()
        else:
            bench.compact(bench.journal.last - 1)
        found = held(bench)
        assert found == sorted(found), f"after deed {deed}"
    for _ in range(200):
        bring_back(bench)
        if not held(bench, "away"):
            break
        take_some(bench, rng)
    assert held(bench, "away") == []
    before = held(bench)
    assert before == sorted(before) and restarted(bench) == before


def take_some(bench: Bench, rng: random.Random) -> None:
    """A consumer takes the first messages, acknowledges some of them, and leaves."""
    queue: Queue = bench.broker.queues["here"]
    session = bench.session()
    consume(session, bench, "here", None, credits=rng.choice((500, 3_000, 100_000)))
    bench.settle()
    taken = endpoint(session)
    bodies = [int.from_bytes(body[:4], "big") for _, _, body in taken.delivered]
    assert bodies == sorted(bodies)
    if bodies:
        last = taken.message_ids[rng.randrange(len(bodies))]
        session.acknowledge(bench.now, 0, last, False, 0)
    session.close_consumer(bench.now, 0)
    bench.settle()
    assert queue.consumer_count() == 0
