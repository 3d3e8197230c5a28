"""What comes late over a link, among arrivals, consumers, restarts and compaction in any order."""

from __future__ import annotations

import random

import pytest

from atalanta.kernel.arrival import place_of
from atalanta.kernel.paging_view import everything
from atalanta.kernel.reference import READY
from tests.kernel.bench import Bench, consume, endpoint
from tests.kernel.test_arrival import LINK, OTHER, arrivals, arrive
from tests.kernel.test_late import LATE, again, late_bench, place_late
from tests.kernel.test_returning import bring_back, held, send


class Model:
    """What lies in the queue: (link, arrival, place here, placed) in order."""

    def __init__(self) -> None:
        self.items: list[tuple[bytes, int, int, bool]] = []

    def place(self, link: bytes, arrival: int, place: int) -> None:
        for at, item in enumerate(self.items):
            other, its_arrival, its_place, placed = item
            if other == link and its_arrival > arrival:
                early = placed or its_place < place
                self.items.insert(at, (link, arrival, place, early))
                return
            if not placed and its_place > place:
                self.items.insert(at, (link, arrival, place, False))
                return
        self.items.append((link, arrival, place, False))


@pytest.mark.parametrize("seed", range(1, 11))
def test_random_play_each_is_where_the_rule_says(seed: int) -> None:
    rng = random.Random(seed)
    bench = late_bench(ids_max=30)
    model = Model()
    clocks = {LINK: 0, OTHER: 0}
    parked: list[tuple[bytes, int]] = []
    for _ in range(80):
        deed = rng.randrange(9)
        link = rng.choice((LINK, OTHER))
        if deed < 4:
            for _ in range(rng.randrange(1, 8)):
                clocks[link] += 1
                if rng.random() < 0.4:
                    parked.append((link, clocks[link]))
                else:
                    message = arrive(bench, clocks[link], link=link)
                    model.items.append((link, clocks[link], int(message.id), False))
        elif deed < 6 and parked:
            start = rng.randrange(len(parked))
            some = parked[start : start + rng.randrange(1, 20)]
            del parked[start : start + len(some)]
            waiting: list[tuple[bytes, int, int]] = []
            for link, arrival in some:
                clocks[link] += 1
                late = arrive(bench, clocks[link], link=link, place=arrival)
                waiting.append((link, arrival, int(late.id)))
            bench.settle()
            if rng.random() < 0.5:
                again(bench, rng.choice(("restart", "compaction")))
            if rng.random() < 0.5:
                clocks[OTHER] += 1
                after = arrive(bench, clocks[OTHER], link=OTHER)
                bench.settle()
                model.items.append((OTHER, clocks[OTHER], int(after.id), False))
            for item in waiting:
                model.place(*item)
            assert place_late(bench, rng.choice((0, 3, 100))) == len(waiting)
        elif deed == 6:
            taken = 0
            session = bench.session()
            consume(session, bench, "here", None, credits=rng.choice((400, 2_000)))
            bench.settle()
            for message_id in endpoint(session).message_ids:
                session.acknowledge(bench.now, 0, message_id, False, 0)
                taken += 1
            session.close_consumer(bench.now, 0)
            del model.items[:taken]
        else:
            again(bench, rng.choice(("restart", "compaction")))
        bench.settle()
        wanted = [(link, arrival) for link, arrival, _, _ in model.items]
        assert arrivals(bench) == wanted, f"after deed {deed}"
        marks = [each.placed for each in everything(bench.broker.queues["here"])]
        assert marks == [placed for _, _, _, placed in model.items]
    assert all(each.state == READY for each in bench.broker.queues["here"].live())


def in_order(bench: Bench) -> bool:
    """Among those of each link by its ids, among the others by those of this node."""
    orders: dict[int, list[int]] = {}
    for reference in everything(bench.broker.queues["here"]):
        message = reference.message
        if message.arrival_link > 0:
            orders.setdefault(int(message.arrival_link), []).append(int(message.arrival))
        if not reference.placed:
            orders.setdefault(0, []).append(int(place_of(message)))
    return all(found == sorted(found) for found in orders.values())


@pytest.mark.parametrize("limit", [0, 6_000])
@pytest.mark.parametrize("seed", range(1, 11))
def test_random_play_with_page_files_and_what_comes_back_itself(seed: int, limit: int) -> None:
    rng = random.Random(seed)
    bench = late_bench(limit, "away")
    clocks = {LINK: 0, OTHER: 0}
    parked: list[tuple[bytes, int]] = []
    for _ in range(70):
        deed = rng.randrange(10)
        link = rng.choice((LINK, OTHER))
        if deed < 4:
            for _ in range(rng.randrange(1, 12)):
                clocks[link] += 1
                if rng.random() < 0.3:
                    parked.append((link, clocks[link]))
                elif rng.random() < 0.5:
                    arrive(bench, clocks[link], link=link, size=rng.choice((0, 100, 400)))
                else:
                    send(bench, rng.choice(("here", "away")), clocks[link], size=100)
        elif deed < 6 and parked:
            start = rng.randrange(len(parked))
            some = parked[start : start + rng.randrange(1, 20)]
            del parked[start : start + len(some)]
            for link, arrival in some:
                clocks[link] += 1
                arrive(bench, clocks[link], link=link, place=arrival, size=100)
            bench.settle()
            place_late(bench, rng.choice((0, 3, 100)))
        elif deed == 6:
            take_some(bench, rng)
        elif deed == 7:
            bring_back(bench, rng.choice((1, 3, 100)), rng.choice((0, 3, 100)))
        else:
            again(bench, rng.choice(("restart", "compaction")))
        bench.settle()
        place_late(bench)
        assert in_order(bench), f"after deed {deed}"
    for _ in range(300):
        if not held(bench, LATE) and not held(bench, "away"):
            break
        take_some(bench, rng)
        place_late(bench)
        bring_back(bench)
        assert in_order(bench)
    assert held(bench, LATE) == [] and held(bench, "away") == []


def take_some(bench: Bench, rng: random.Random) -> None:
    """A consumer takes the first messages, acknowledges some of them, and leaves."""
    session = bench.session()
    consume(session, bench, "here", None, credits=rng.choice((500, 3_000, 100_000)))
    bench.settle()
    for message_id in endpoint(session).message_ids[: rng.randrange(60)]:
        session.acknowledge(bench.now, 0, message_id, False, 0)
    session.close_consumer(bench.now, 0)
    bench.settle()
