"""Messages that come late over a link get their place among those of it: whatever else is in the queue, or happens."""

from __future__ import annotations

import pytest

from atalanta.kernel import housekeeping, records
from atalanta.kernel.arrival import OWN, Placer, place_of
from atalanta.kernel.config import BrokerConfig
from atalanta.kernel.message import Message
from atalanta.kernel.paging_view import everything
from atalanta.kernel.placing import add_to_batch
from atalanta.kernel.plan import Plan
from atalanta.kernel.returning import Return
from atalanta.kernel.router import Route
from atalanta.kernel.settings import AddressSettingsRepository
from atalanta.kernel.spots import Looked, has_places
from atalanta.kernel.xa import Branch
from atalanta.kernel.xa_records import encode_prepared
from tests.kernel.bench import Bench, consume, endpoint
from tests.kernel.test_arrival import LINK, OTHER, arrivals, arrive, forward_id
from tests.kernel.test_returning import go, held, send

LATE = "late"


class ToLate(Placer):
    """All to the queue from which `place_late` takes them."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def routes(self, now: int, message: Message, routes: list[Route]) -> list[Route]:
        names = b" ".join(route.queue.name.encode() for route in routes)
        return [Route(self.bench.broker.queues[LATE], names)]


def late_bench(limit: int = 0, *more: str, ids_max: int = 20_000) -> Bench:
    """Queue `here`; `limit`: bytes of an address from which it pages."""
    settings = AddressSettingsRepository()
    if limit:
        settings.add("here", {"max_size_bytes": limit, "page_size_bytes": limit // 2})
    bench = Bench(BrokerConfig(id_cache_size=ids_max), settings, paging=True)
    bench.trace.on = False
    for name in ("here", LATE, *more):
        bench.queue(name)
    bench.broker.arrivals.placer = ToLate(bench)
    bench.settle()
    return bench


def again(bench: Bench, ending: str) -> None:
    """After a restart, of a journal that was compacted before."""
    if ending == "compaction":
        bench.compact(bench.journal.last)
    if ending:
        bench.restart()
        bench.broker.arrivals.placer = ToLate(bench)
        housekeeping.validate(bench.broker)


def place_late(bench: Bench, spare: int = 100, most: int = 1_000_000) -> int:
    """All of the queue for late ones whose place is in memory; how many those were."""
    moved = 0
    looked: dict[tuple[int, int], Looked] = {}
    for reference in bench.broker.queues[LATE].live():
        if moved == most:
            break
        names = reference.route_to.decode().split()
        targets = [bench.broker.queues[name] for name in names]
        back = Return(bench.broker, reference, targets, looked, late=True)
        assert back.keeps_its_place()
        if back.waits_for() is not None:
            break
        go(back, spare)
        moved += 1
    bench.settle()
    housekeeping.validate(bench.broker)
    return moved


def ids(bench: Bench, name: str = "here", link: bytes = LINK) -> list[int]:
    return [number for known, number in arrivals(bench, name) if known == link]


@pytest.mark.parametrize("ending", ["", "restart", "compaction"])
def test_in_front_of_what_its_sender_sent_later_and_behind_what_it_sent_before(ending: str) -> None:
    bench = late_bench()
    for number in (3, 6, 10, 12):
        send(bench, "here", number + 1_000)
        arrive(bench, number)
        arrive(bench, number, link=OTHER)
    for number in (5, 11, 13):
        arrive(bench, number + 15, place=number)
    bench.settle()
    send(bench, "here", 2_000)
    again(bench, ending)
    assert place_late(bench) == 3
    expected = [1_003, 3, 3, 1_006, 5, 6, 6, 1_010, 10, 10, 1_012, 11, 12, 12, 13, 2_000]
    assert held(bench) == expected
    assert ids(bench) == [3, 5, 6, 10, 11, 12, 13]
    marks = [reference.placed for reference in everything(bench.broker.queues["here"])]
    assert [expected[at] for at, placed in enumerate(marks) if placed] == [5, 11]
    again(bench, ending)
    assert held(bench) == expected
    assert marks == [reference.placed for reference in everything(bench.broker.queues["here"])]
    arrive(bench, 50, place=4)
    bench.settle()
    place_late(bench)
    assert held(bench) == [1_003, 3, 3, 1_006, 4, *expected[4:]]


def test_the_arrival_outlives_the_id_against_repeats() -> None:
    """Ids are forgotten one by one; the records of their messages are written again without them."""
    bench = late_bench(ids_max=2)
    for number in (3, 6, 10, 12):
        arrive(bench, number)
    bench.settle()
    for _ in range(2):
        again(bench, "compaction")
        assert ids(bench) == [3, 6, 10, 12]
    arrive(bench, 20, place=5)
    bench.settle()
    assert place_late(bench) == 1
    again(bench, "compaction")
    assert held(bench) == [3, 5, 6, 10, 12]


def test_a_branch_in_doubt_keeps_it() -> None:
    bench = late_bench()
    message = arrive(bench, 7)
    branch = Branch(b"xid", bench.now, -1)
    plan = Plan(message)
    plan.routes = [Route(bench.broker.queues["here"], b"")]
    branch.plans.append(plan)
    payload = encode_prepared(branch, bench.broker.arrivals)
    bench.journal.append(records.XA_PREPARED, payload)
    bench.settle()
    again(bench, "restart")
    restored = bench.broker.branches.by_xid[b"xid"].plans[0].message
    assert bench.broker.arrivals.encoded(restored) == forward_id(LINK, 7)


def test_in_each_queue_of_several_it_has_a_place_of_its_own() -> None:
    bench = late_bench(0, "there")
    arrive(bench, 4, "there")
    arrive(bench, 8, "here")
    arrive(bench, 20, "here there", place=6)
    bench.settle()
    assert place_late(bench) == 1
    for _ in range(2):
        assert held(bench) == [6, 8] and held(bench, "there") == [4, 6]
        assert bench.broker.queues["here"].references[0].placed
        assert not bench.broker.queues["there"].references[1].placed
        again(bench, "compaction")


def test_in_front_of_what_waits_for_the_disk() -> None:
    bench = late_bench()
    arrive(bench, 4)
    arrive(bench, 20, place=6)
    bench.settle()
    send_later = [arrive(bench, 8), arrive(bench, 9)]
    queue = bench.broker.queues["here"]
    assert queue.pending == len(send_later)
    assert place_late(bench) == 1
    assert held(bench) == [4, 6, 8, 9]
    again(bench, "restart")
    assert held(bench) == [4, 6, 8, 9]


def test_it_is_nobodys_where_its_queue_has_no_places() -> None:
    bench = late_bench()
    assert has_places(bench.broker.queues["here"])
    bench.queue("last", last_value_key="k")
    bench.queue("kept", non_destructive=True)
    bench.queue("inner", internal=True)
    for name in ("last", "kept", "inner"):
        assert not has_places(bench.broker.queues[name])


def come_back(bench: Bench, index: int) -> None:
    """From `away` into `here`, like what was parked."""
    reference = bench.broker.queues["away"].live()[index]
    back = Return(bench.broker, reference, [bench.broker.queues["here"]], {})
    assert back.waits_for() is None
    go(back)
    bench.settle()


@pytest.mark.parametrize("ending", ["", "restart", "compaction"])
def test_what_comes_back_by_its_id_here_goes_past_what_lies_in_front_of_lower_ids(
    ending: str,
) -> None:
    bench = late_bench(0, "away")
    arrive(bench, 10)
    arrive(bench, 11)
    send(bench, "away", 100)
    arrive(bench, 20, place=5)
    bench.settle()
    place_late(bench)
    assert held(bench) == [5, 10, 11]
    again(bench, ending)
    come_back(bench, 0)
    assert held(bench) == [5, 10, 11, 100]


@pytest.mark.parametrize("ending", ["", "restart", "compaction"])
def test_a_copy_that_comes_back_itself_has_the_place_of_its_first_id(ending: str) -> None:
    bench = late_bench(0, "away")
    send(bench, "away", 1)
    send(bench, "here", 2)
    send(bench, "away", 3)
    send(bench, "here", 4)
    queue = bench.broker.queues["away"]
    for reference in queue.live():
        batch = records.Batch()
        copy = Plan(reference.message.copy(0))
        copy.message.arrival_link = OWN
        copy.message.arrival = place_of(reference.message)
        copy.routes = [Route(queue, b"")]
        references = add_to_batch(bench.broker, copy, batch)
        bench.broker.append_batch(batch, [copy], references, None, 0)
    bench.settle()
    again(bench, ending)
    assert held(bench, "away") == [1, 3, 1, 3]
    come_back(bench, 3)
    come_back(bench, 2)
    again(bench, ending)
    assert held(bench) == [1, 2, 3, 4]
    come_back(bench, 1)
    assert held(bench) == [1, 2, 3, 3, 4]


def test_many_that_come_back_look_through_the_queue_once() -> None:
    """What was looked at is where the next begins: the place of each lies at or behind that of the one before."""
    bench = late_bench()
    for number in range(0, 2_000, 2):
        arrive(bench, number)
    for number in range(1, 401, 2):
        arrive(bench, 10_000 + number, place=number)
    bench.settle()
    queue = bench.broker.queues["here"]
    looked: dict[tuple[int, int], Looked] = {}
    for reference in bench.broker.queues[LATE].live():
        back = Return(bench.broker, reference, [queue], looked, late=True)
        assert back.waits_for() is None
        go(back, 200)
        key = (queue.id, int(reference.message.arrival_link))
        assert looked[key].reference.message is reference.message
        assert looked[key].serves(back.standing)
    bench.settle()
    assert ids(bench)[:401] == list(range(401))


def shown(bench: Bench) -> list[int]:
    session = bench.session()
    consume(session, bench, "here", None, credits=1_000_000)
    bench.settle()
    found = [int.from_bytes(body[:4], "big") for body in endpoint(session).bodies()]
    session.close_consumer(bench.now, 0)
    bench.settle()
    return found


def test_a_consumer_gets_it_at_its_place_and_a_rollback_brings_it_back_there() -> None:
    bench = late_bench()
    for number in range(10, 20, 2):
        arrive(bench, number)
    arrive(bench, 50, place=13)
    bench.settle()
    place_late(bench)
    for _ in range(2):
        assert shown(bench) == [10, 12, 13, 14, 16, 18]
