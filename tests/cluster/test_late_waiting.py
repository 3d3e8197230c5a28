"""What has come late and waits for page files, in the part itself: it holds up nobody else, and costs little."""

from __future__ import annotations

import pytest

from atalanta.cluster import late, meanings
from atalanta.kernel.config import BrokerConfig
from atalanta.kernel.queue import Queue
from atalanta.kernel.settings import AddressSettingsRepository
from tests.kernel.bench import Bench, consume, endpoint
from tests.kernel.test_arrival import OTHER, arrive
from tests.kernel.test_returning import held


class Waiting:
    """Queue `here` pages from `limit` bytes of its address; `there` does not."""

    def __init__(self, limit: int = 6_000, late_limit: int = 0) -> None:
        settings = AddressSettingsRepository()
        if late_limit:
            few = {"max_size_bytes": late_limit, "page_size_bytes": late_limit // 2}
            settings.add("$.artemis.internal.late", {**few, "max_read_page_bytes": late_limit})
        settings.add("here", {"max_size_bytes": limit, "page_size_bytes": limit // 2})
        self.bench = Bench(BrokerConfig(), settings, paging=True)
        self.bench.trace.on = False
        for name in ("here", "there"):
            self.bench.queue(name)
        self.part = late.LateArrivals(self.bench.broker)
        self.part.start(self.bench.now)
        self.turns = 0

    def restart(self) -> None:
        self.bench.restart()
        self.part = late.LateArrivals(self.bench.broker)
        self.part.start(self.bench.now)

    def settle(self) -> None:
        """Until no timer of the part is due."""
        due = self.bench.timers.due
        self.bench.settle()
        for _ in range(5_000):
            keys = [key for key in (late.LOOK, late.WAKE) if due.get(key, 1 << 62) <= self.bench.now]
            if not keys:
                return
            for key in keys:
                del due[key]
                self.part.on_timer(self.bench.now, key)
                self.turns += 1
            self.bench.settle()
        raise AssertionError("the part does not come to rest")

    def pages(self, numbers: range) -> Queue:
        for number in numbers:
            arrive(self.bench, number, size=300)
            self.bench.settle()
        queue = self.bench.broker.queues["here"]
        assert queue.paged is not None and queue.paged.pages
        return queue

    def waiting(self) -> int:
        queue = self.part.queue()
        return 0 if queue is None else queue.message_count + queue.pending


@pytest.mark.parametrize("ending", ["", "restart"])
def test_one_for_two_queues_does_not_wait_in_that_which_has_its_place(ending: str) -> None:
    """Else who reads `there` would wait for whoever reads `here`, maybe for ever."""
    play = Waiting()
    bench = play.bench
    play.pages(range(100, 200, 2))
    for number in (101, 190):
        arrive(bench, number, "there")
    arrive(bench, 300, "here there", place=181)
    arrive(bench, 301, "here there", place=183)
    play.settle()
    session = bench.session()
    consume(session, bench, "there")
    play.settle()
    taken = [int.from_bytes(body[:4], "big") for body in endpoint(session).bodies()]
    assert taken == [101, 181, 183, 190]
    assert play.waiting() == 2
    if ending:
        play.restart()
    play.settle()
    bench = play.bench
    assert bench.broker.queues["there"].held is None
    for _ in range(100):
        if bench.broker.queues["here"].paged is None:
            break
        bench.broker.paging.bring(bench.now, bench.broker.queues["here"])
        bench.now += late.WATCH_NS
        bench.timers.set(late.WAKE, bench.now)
        play.settle()
    assert held(bench) == sorted([*range(100, 200, 2), 181, 183])
    assert play.waiting() == 0


def test_it_stays_in_front_of_what_came_late_after_it() -> None:
    """Whatever has come to this node before it was looked at."""
    play = Waiting()
    bench = play.bench
    queue = bench.broker.queues["here"]
    number = 100
    while queue.paged is None or not queue.paged.tail:
        arrive(bench, number, size=300)
        bench.settle()
        number += 1
    assert not queue.paged.pages
    arrive(bench, 300, "here there", place=250)
    arrive(bench, 301, "here", place=251)
    arrive(bench, 1_000, link=OTHER)
    play.settle()
    bench.broker.paging.bring(bench.now, queue)
    bench.timers.set(late.WAKE, bench.now)
    play.settle()
    assert play.waiting() == 0
    assert [number for number in held(bench) if 250 <= number <= 251] == [250, 251]


def test_those_that_fill_the_memory_do_not_hold_up_another_queue_for_ever() -> None:
    """Nobody reads `here`; what is for `there` lies in page files of the internal queue, behind what waits for it."""
    play = Waiting(6_000, 8_000)
    bench = play.bench
    play.pages(range(100, 200, 2))
    for number in range(200):
        arrive(bench, 1_000 + number, place=201 + number, size=300)
        play.settle()
    arrive(bench, 5_000, "there")
    arrive(bench, 5_001, "there", place=4_000)
    play.settle()
    session = bench.session()
    consume(session, bench, "there")
    for _ in range(2_000):
        bench.now += late.ROOM_NS
        play.settle()
        if len(endpoint(session).bodies()) == 2:
            break
    assert [int.from_bytes(body[:4], "big") for body in endpoint(session).bodies()] == [4_000, 5_000]
    assert bench.broker.queues["there"].held is None
    assert sorted(held(bench) + held(bench, play.part.name)) == sorted(
        [*range(100, 200, 2), *range(201, 401)]
    )


def test_what_somebody_sends_to_the_internal_queue_itself_does_not_keep_a_node_from_leaving() -> None:
    play = Waiting()
    arrive(play.bench, 1)
    arrive(play.bench, 2, place=1)
    play.settle()
    play.bench.broker.publish(play.bench.now, play.bench.message(play.part.name), None, 0)
    play.bench.settle()
    assert play.waiting() == 1
    play.part.leave(play.bench.now)
    play.settle()
    assert play.part.leave(play.bench.now)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the part looked at."""
    found: list[bytes] = []
    ids_of = meanings.ids_of

    def noted(route_to: bytes) -> list[int]:
        found.append(route_to)
        return ids_of(route_to)

    monkeypatch.setattr(late, "ids_of", noted)
    return found


def test_many_that_wait_are_not_looked_at_again_and_again(looks: list[bytes]) -> None:
    play = Waiting()
    bench = play.bench
    play.pages(range(1_000, 1_400, 2))
    for number in range(400):
        arrive(bench, 5_000 + number, place=1_301 + 2 * number)
        play.settle()
    for _ in range(20):
        bench.now += late.WATCH_NS
        play.settle()
    assert play.waiting() == 400
    assert len(looks) < 2_000
    looks.clear()
    session = bench.session()
    consume(session, bench, "here", credits=0)
    taken = endpoint(session).message_ids
    while len(taken) < 600:
        before = len(taken)
        session.add_credits(0, 1_000)
        bench.now += late.WATCH_NS
        play.settle()
        for message_id in taken[before:]:
            session.acknowledge(bench.now, 0, message_id, False, 0)
        play.settle()
    numbers = [int.from_bytes(body[:4], "big") for body in endpoint(session).bodies()]
    assert numbers == sorted([*range(1_000, 1_400, 2), *range(1_301, 2_101, 2)])
    assert play.waiting() == 0 and bench.broker.queues["here"].held is None
    assert len(looks) < 4_000
