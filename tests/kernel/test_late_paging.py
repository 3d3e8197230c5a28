"""What comes late over a link to a queue that lies in page files: it waits until its place is in memory."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue import Queue
from atalanta.kernel.reference import PagedReference
from tests.kernel.bench import Bench, consume, endpoint
from tests.kernel.test_arrival import arrive
from tests.kernel.test_late import LATE, again, come_back, ids, late_bench, place_late
from tests.kernel.test_returning import held, send


def pages(bench: Bench, numbers: range) -> Queue:
    """So many are in `here`, most of them in page files."""
    for number in numbers:
        arrive(bench, number, size=300)
        bench.settle()
    queue = bench.broker.queues["here"]
    assert queue.paged is not None and queue.paged.pages
    return queue


@pytest.mark.parametrize("ending", ["", "restart", "compaction"])
def test_page_files_keep_the_arrival(ending: str) -> None:
    bench = late_bench(6_000)
    pages(bench, range(10, 60, 2))
    again(bench, ending)
    assert ids(bench) == list(range(10, 60, 2))


@pytest.mark.parametrize("ending", ["", "restart", "compaction"])
@pytest.mark.parametrize("place", [9, 11, 31, 51])
def test_while_its_place_may_be_in_page_files_it_waits(place: int, ending: str) -> None:
    bench = late_bench(6_000)
    queue = pages(bench, range(10, 60, 2))
    arrive(bench, 100, place=place)
    bench.settle()
    send(bench, "here", 500)
    again(bench, ending)
    queue = bench.broker.queues["here"]
    for _ in range(50):
        in_memory = [each for each in queue.live() if each.message.arrival > place]
        assert bool(in_memory) == (place_late(bench, most=1) == 1)
        if not held(bench, LATE):
            break
        bench.broker.paging.bring(bench.now, queue)
    expected = sorted([*range(10, 60, 2), place])
    assert held(bench) == [*expected, 500]
    again(bench, "restart")
    assert held(bench) == [*expected, 500]


def bring_all(bench: Bench) -> Queue:
    queue = bench.broker.queues["here"]
    while queue.paged is not None:
        assert bench.broker.paging.bring(bench.now, queue)
    return queue


def test_one_in_front_of_lower_ids_says_so_in_a_page_file_too() -> None:
    """It comes into one after a restart, when it lies behind all of the page files of before."""
    bench = late_bench(6_000, "away")
    pages(bench, range(10, 30))
    bring_all(bench)
    arrive(bench, 40)
    session = bench.session()
    for _ in range(20):
        session.send(bench.now, bench.message("here", b"", passing=1), 0)
    arrive(bench, 42)
    consume(session, bench, "here", "passing = 1", credits=100_000)
    bench.settle()
    for message_id in endpoint(session).message_ids:
        session.acknowledge(bench.now, 0, message_id, False, 0)
    session.close_consumer(bench.now, 0)
    send(bench, "away", 1_000)
    arrive(bench, 100, place=41)
    bench.settle()
    assert place_late(bench, spare=0) == 1
    again(bench, "restart")
    for number in range(200, 240):
        arrive(bench, number, size=300)
        bench.settle()
    expected = [*range(10, 30), 40, 41, 42, *range(200, 240)]
    assert held(bench) == expected
    again(bench, "restart")
    found = [reference for reference in bring_all(bench).live() if reference.placed]
    assert len(found) == 1 and isinstance(found[0], PagedReference)
    assert found[0].message.arrival == 41
    come_back(bench, 0)
    assert held(bench) == [*expected[:23], 1_000, *expected[23:]]


def test_in_front_of_page_files_whose_messages_all_came_after_it() -> None:
    bench = late_bench(6_000)
    for number in range(10, 14):
        arrive(bench, number)
    arrive(bench, 100, place=50)
    bench.settle()
    pages(bench, range(200, 260))
    queue = bench.broker.queues["here"]
    while queue.live()[-1].message.arrival < 200 and queue.paged is not None:
        bench.broker.paging.bring(bench.now, queue)
    assert place_late(bench) == 1
    assert held(bench)[:6] == [10, 11, 12, 13, 50, 200]
