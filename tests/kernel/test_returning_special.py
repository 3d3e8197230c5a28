"""What came back from parking, in queues of other kinds and under other deeds than usual."""

from __future__ import annotations

import pytest

from atalanta.kernel import housekeeping, logview, moves
from atalanta.kernel.reference import PagedReference
from atalanta.kernel.returning import Return
from atalanta.kernel.spots import Looked
from atalanta.kernel.tally import Tally, tally
from tests.kernel.bench import SECOND, Bench, RecordingEndpoint, consume, endpoint
from tests.kernel.test_returning import bench_with, bring_back, go, held, number_of, restarted, send
from tests.kernel.test_scheduled import later, wait


def in_front(redelivery_delay_ms: int = 0) -> Bench:
    """0 to 2 came back in front of 3 to 5, below the first sequence."""
    bench = bench_with()
    bench.settings.add("here", {"redelivery_delay_ms": redelivery_delay_ms})
    send(bench, "away", *range(3))
    send(bench, "here", *range(3, 6))
    bring_back(bench)
    assert bench.broker.queues["here"].references[0].sequence < 0
    return bench


@pytest.mark.parametrize("ending", ["", "restart", "compaction"])
def test_with_a_redelivery_delay_it_waits_at_its_place(ending: str) -> None:
    bench = in_front(redelivery_delay_ms=10_000)
    session = bench.session(transacted=True)
    consume(session, bench, "here", credits=250)
    bench.settle()
    taken = endpoint(session).message_ids
    assert len(taken) > 1
    session.acknowledge(bench.now, 0, taken[0], False, 2)
    session.rollback(bench.now, False, 3)
    session.close_consumer(bench.now, 0)
    bench.settle()
    housekeeping.validate(bench.broker)
    waiting = bench.broker.queues["here"].scheduled_count
    assert waiting > 0
    if ending == "compaction":
        bench.compact(bench.journal.last)
    if ending:
        bench.restart()
        bench.broker.scheduled.start()
    assert bench.broker.queues["here"].scheduled_count == waiting
    wait(bench, 11)
    housekeeping.validate(bench.broker)
    assert held(bench) == list(range(6))
    session = bench.session()
    consume(session, bench, "here")
    bench.settle()
    found = [int.from_bytes(body[:4], "big") for body in endpoint(session).bodies()]
    assert found == list(range(6))


def test_a_ring_is_cut_at_its_oldest_after_a_restart_too() -> None:
    bench = bench_with()
    bench.queue("ring", ring_size=4)
    send(bench, "away", *range(3))
    send(bench, "ring", 3)
    ring = bench.broker.queues["ring"]
    looked: dict[tuple[int, int], Looked] = {}
    for reference in bench.broker.queues["away"].live():
        back = Return(bench.broker, reference, [ring], looked)
        assert back.keeps_its_place() and back.waits_for() is None
        go(back)
    bench.settle()
    assert held(bench, "ring") == [0, 1, 2, 3]
    bench.restart()
    send(bench, "ring", 4, 5)
    assert held(bench, "ring") == [2, 3, 4, 5]


def test_metrics_count_it() -> None:
    bench = in_front()
    found: list[Tally] = []
    for _ in tally([bench.broker.queues["here"]], found):
        pass
    assert found[0].durable_count == 6


def test_the_search_for_expired_messages_goes_past_it() -> None:
    bench = in_front()
    queue = bench.broker.queues["here"]
    below = [reference.sequence for reference in queue.live() if reference.sequence < 0]
    bench.broker.queues["here"].references[len(below) - 1].sequence = -1
    moves.scan_expired(bench.broker, bench.now, queue, len(below))
    assert queue.expiry_scan == 1


def test_what_was_acknowledged_through_stays_away_though_it_moved_in_its_page() -> None:
    bench = bench_with(6_000)
    session = bench.session()
    consume(session, bench, "here", credits=0)
    send(bench, "here", *range(20), size=300)
    for number in range(20, 40, 2):
        send(bench, "here", number, size=300)
        send(bench, "away", number + 1)
    queue = bench.broker.queues["here"]
    assert queue.paged is not None
    session.add_credits(0, 2_000_000)
    bench.settle()
    taken = endpoint(session)
    for message_id in taken.message_ids[:22]:
        session.acknowledge(bench.now, 0, message_id, False, 0)
    session.close_consumer(bench.now, 0)
    bench.settle()
    assert bring_back(bench, 6, 0) == 6
    left = held(bench)
    moved = [reference for reference in queue.live() if isinstance(reference, PagedReference)]
    first = moved[0]
    assert 0 < first.sequence < first.page.first, "the case this is about"
    granted = logview.lease(
        bench.broker, bench.now, "here", "g", "me", 60 * SECOND, 0, RecordingEndpoint(), 1
    )
    logview.ack_through(
        bench.broker, "here", "", "g", granted.epoch, first.sequence, RecordingEndpoint(), 2
    )
    bench.settle()
    assert held(bench) == left[left.index(number_of(first)) + 1 :]
    before = held(bench)
    assert restarted(bench) == before
    bench.compact(bench.journal.last)
    assert restarted(bench) == before


def test_a_message_out_of_turn_in_memory_is_no_reason_to_wait_for_page_files() -> None:
    """One sent for later takes its place when its time comes: ids do not always ascend."""
    bench = bench_with(6_000)
    later(bench, bytes(4), 5, "here")
    send(bench, "away", 1)
    send(bench, "here", *range(2, 22), size=300)
    wait(bench, 6)
    send(bench, "here", 22)
    queue = bench.broker.queues["here"]
    assert queue.paged is not None
    session = bench.session()
    consume(session, bench, "here", credits=300 * 15)
    bench.settle()
    for message_id in endpoint(session).message_ids:
        session.acknowledge(bench.now, 0, message_id, False, 0)
    bench.settle()
    assert queue.references and number_of(queue.live()[0]) > 1
    assert bring_back(bench) == 1


def test_the_place_is_in_front_of_what_waits_for_the_journal_behind_one_for_later() -> None:
    bench = bench_with()
    send(bench, "here", *range(3))
    send(bench, "away", 3)
    later(bench, (9).to_bytes(4, "big"), 60, "here")
    bench.session().send(bench.now, bench.message("here", (4).to_bytes(4, "big")), 1)
    here, away = bench.broker.queues["here"], bench.broker.queues["away"]
    back = Return(bench.broker, away.live()[0], [here], {})
    assert back.waits_for() is None
    go(back, 0)
    bench.settle()
    housekeeping.validate(bench.broker)
    assert held(bench) == list(range(5))
