"""Queues larger than memory: order, memory, restarts, and everybody who looks at a queue."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.errors import ADDRESS_FULL, BrokerError
from atalanta.kernel.memory.address_memory import UNLIMITED
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import SettingValue
from tests.kernel.broker_rig import SECOND, consume, endpoint
from tests.kernel.queue.paging.paging_rig import (
    LIMIT,
    PAGE,
    SMALL,
    Taker,
    bench_with,
    files,
    held,
    numbers_of,
    send,
)


def test_messages_beyond_the_limit_go_to_files_and_come_back_in_order() -> None:
    bench = bench_with(SMALL)
    queue = bench.broker.queues["orders"]
    send(bench, range(600))
    assert bench.broker.memory.used_bytes < LIMIT + 2 * PAGE
    assert files(bench) > 10
    assert queue.message_count == 600
    invariants.validate(bench.broker)
    taker = Taker(bench)
    assert taker.take(600) == list(range(600))
    invariants.validate(bench.broker)
    assert bench.broker.memory.used_bytes == queue.bytes == queue.message_count == 0
    assert files(bench) == 0
    assert queue.paged is None
    assert bench.broker.store.stored_bytes == 0


def test_consumers_read_while_senders_go_on() -> None:
    bench = bench_with(SMALL)
    taker = Taker(bench)
    send(bench, range(300))
    for start in range(300, 900, 50):
        send(bench, range(start, start + 50))
        taker.take(60)
        invariants.validate(bench.broker)
    taker.take(900)
    assert taker.taken == list(range(900))
    assert files(bench) == 0


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("taken", [0, 1, 75, 110, 290])
def test_a_restart_brings_back_what_was_not_acknowledged_and_nothing_else(
    taken: int, compact: bool
) -> None:
    bench = bench_with(SMALL)
    send(bench, range(300))
    taker = Taker(bench)
    taker.take(taken)
    left = held(bench)
    assert left == list(range(len(taker.taken), 300))
    if compact:
        bench.compact(bench.journal.last - 20)
    for _ in range(2):
        bench.restart()
        invariants.validate(bench.broker)
        assert held(bench) == left
        assert bench.broker.queues["orders"].message_count == len(left)
    send(bench, range(300, 320))
    assert Taker(bench).take(320) == [*left, *range(300, 320)]
    invariants.validate(bench.broker)
    assert files(bench) == 0


def test_what_is_acknowledged_out_of_order_stays_away_after_a_restart_and_compaction() -> None:
    bench = bench_with(SMALL)
    send(bench, range(300))
    session = bench.session()
    consume(session, bench, "orders")
    bench.settle()
    ids = endpoint(session).message_ids
    gone = []
    for place in range(0, len(ids), 3):
        session.acknowledge(bench.now, 0, ids[place], True, 0)
        gone.append(place)
    bench.settle()
    left = [number for number in range(300) if number not in gone]
    assert len(gone) == 100
    bench.compact(bench.journal.last)
    bench.restart()
    assert held(bench) == left
    invariants.validate(bench.broker)
    assert Taker(bench).take(300) == left
    assert files(bench) == 0


def test_a_crash_before_the_commit_of_a_transaction_loses_no_page() -> None:
    bench = bench_with(SMALL)
    send(bench, range(200))
    session = bench.session(transacted=True)
    consume(session, bench, "orders")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 1)
    session.commit(bench.now, 2)
    bench.broker.flush(bench.now)
    bench.restart()
    assert held(bench) == list(range(200))


def test_deliveries_are_counted_over_a_restart() -> None:
    bench = bench_with({**SMALL, "max_delivery_attempts": 3, "max_size_bytes": 0})
    send(bench, range(100))
    for _ in range(2):
        session = bench.session(transacted=True)
        consume(session, bench, "orders")
        bench.settle()
        first = endpoint(session).message_ids[0]
        session.acknowledge(bench.now, 0, first, False, 1)
        session.rollback(bench.now, False, 2)
        bench.settle()
        session.close(bench.now, False)
        bench.settle()
    bench.restart()
    session = bench.session()
    consume(session, bench, "orders", credits=1)
    bench.settle()
    assert endpoint(session).delivered[0][1] == 3


def test_only_durable_messages_survive() -> None:
    bench = bench_with(SMALL)
    send(bench, range(100), durable=False)
    send(bench, range(100, 200))
    send(bench, range(200, 300), durable=False)
    assert held(bench) == list(range(300))
    bench.restart()
    invariants.validate(bench.broker)
    assert held(bench) == list(range(100, 200))
    assert Taker(bench).take(300) == list(range(100, 200))
    assert files(bench) == 0


def test_a_fast_subscriber_is_not_held_up_by_a_slow_one() -> None:
    bench = bench_with(SMALL)
    for name in ("slow", "fast"):
        bench.queue(name, "topic", 0)
    session = bench.session()
    consume(session, bench, "fast")
    sender = bench.session()
    for number in range(200):
        body = number.to_bytes(4, "big") + bytes(400)
        sender.send(bench.now, bench.message("topic", body), number)
        bench.settle()
        session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 0)
    bench.settle()
    assert numbers_of(endpoint(session).bodies()) == list(range(200))
    assert bench.broker.queues["fast"].paged is None
    assert held(bench, "slow") == list(range(200))
    bench.restart()
    assert held(bench, "slow") == list(range(200))
    assert held(bench, "fast") == []
    assert Taker(bench, "slow").take(200) == list(range(200))
    invariants.validate(bench.broker)


def test_a_browser_sees_all_and_takes_nothing() -> None:
    bench = bench_with(SMALL)
    send(bench, range(300))
    session = bench.session()
    consume(session, bench, "orders", browse=True)
    session.drain(bench.now, 0, 7)
    bench.settle()
    assert numbers_of(endpoint(session).bodies()) == list(range(300))
    assert endpoint(session).drained_tokens == [7]
    assert bench.broker.memory.used_bytes < LIMIT + 2 * PAGE
    assert held(bench) == list(range(300))


def test_a_receive_that_does_not_wait_finds_what_lies_in_pages() -> None:
    bench = bench_with({**SMALL, "max_size_bytes": 0})
    send(bench, range(100))
    session = bench.session()
    consume(session, bench, "orders", credits=1)
    session.drain(bench.now, 0, 1)
    bench.settle()
    assert numbers_of(endpoint(session).bodies()) == [0]
    assert endpoint(session).drained_tokens == [1]


def test_a_selector_looks_into_the_pages() -> None:
    bench = bench_with(SMALL)
    session = bench.session()
    for number in range(300):
        colour = "red" if number == 250 else "blue"
        body = number.to_bytes(4, "big") + bytes(400)
        session.send(bench.now, bench.message("orders", body, colour=colour), number)
    bench.settle()
    assert Taker(bench, selector="colour = 'red'").take(1) == [250]
    invariants.validate(bench.broker)


@pytest.mark.parametrize("how", ["purge", "delete"])
def test_a_queue_that_is_emptied_or_deleted_leaves_no_file(how: str) -> None:
    bench = bench_with(SMALL)
    send(bench, range(300))
    queue = bench.broker.queues["orders"]
    if how == "purge":
        bench.broker.mover.purge(queue, "test")
    else:
        bench.broker.queue_registry.delete(bench.now, "orders", "test")
    bench.settle()
    assert files(bench) == 0
    assert bench.broker.memory.used_bytes == 0
    invariants.validate(bench.broker)
    bench.restart()
    assert [name for name in bench.broker.queues if held(bench, name)] == []


def test_a_log_view_reads_pages_and_acknowledges_through_them() -> None:
    bench = bench_with(SMALL)
    send(bench, range(300))
    session = bench.session()
    broker = bench.broker
    lease = broker.log_views.lease(
        bench.now, "orders", "g", "me", 60 * SECOND, 0, session.endpoint, 1
    )
    bench.settle()
    position = broker.log_views.position("orders")
    assert (position.first, position.last, position.messages) == (1, 300, 300)
    start = 0
    read: list[int] = []
    while start < 300:
        end, count, _ = broker.log_views.plan("orders", "", start, 70, -1)
        assert 0 < count <= 70
        for _ in range(2):  # repeatable
            at = start
            part: list[int] = []
            while at < end:
                chunk = broker.log_views.read("orders", "", at, end, 5_000, None)
                part.extend(numbers_of([each.message.body for each in chunk.references]))
                at = chunk.next
        read.extend(part)
        taken = broker.log_views.ack_through(
            "orders", "", "g", lease.epoch, end, session.endpoint, 2
        )
        assert taken == len(part)
        bench.settle()
        invariants.validate(broker)
        start = end
        if 100 < end < 200:
            bench.restart()
            broker = bench.broker
            assert held(bench) == list(range(end, 300))
            invariants.validate(broker)
    assert read == list(range(300))
    assert files(bench) == 0


@pytest.mark.parametrize("policy", ["FAIL", "DROP"])
def test_pages_have_their_own_limit(policy: str) -> None:
    bench = bench_with({**SMALL, "page_limit_messages": 50, "page_full_policy": policy})
    session = bench.session()
    refused = 0
    for number in range(300):
        try:
            session.send(bench.now, bench.message("orders", bytes(400)), number)
        except BrokerError as error:
            assert error.code == ADDRESS_FULL
            refused += 1
        bench.settle()
    kept = bench.broker.queues["orders"].message_count
    assert kept < 150
    assert refused == (300 - kept if policy == "FAIL" else 0)
    assert len(Taker(bench).take(300)) == kept
    send(bench, range(5))


def test_the_nodes_limit_makes_every_address_page() -> None:
    bench = bench_with({"page_size_bytes": PAGE}, BrokerConfig(global_max_size_bytes=LIMIT))
    bench.queue("other")
    send(bench, range(200))
    send(bench, range(200), address="other")
    assert bench.broker.memory.used_bytes < LIMIT + 4 * PAGE
    assert Taker(bench).take(200) == list(range(200))
    assert Taker(bench, "other").take(200) == list(range(200))


def test_files_of_a_crash_that_no_record_names_go() -> None:
    bench = bench_with(SMALL)
    send(bench, range(300))
    assert bench.pages is not None
    bench.pages.write(5, [b"half"])
    bench.restart()
    assert 5 not in bench.pages.files
    assert held(bench) == list(range(300))


@pytest.mark.parametrize(
    "limits", [{"prefetch_page_messages": 10}, {"prefetch_page_bytes": 10_000}], ids=str
)
def test_no_more_is_read_ahead_than_prefetch_says(limits: dict[str, SettingValue]) -> None:
    def read_ahead(values: dict[str, SettingValue]) -> int:
        bench = bench_with({**SMALL, **values})
        send(bench, range(2_000))
        queue = bench.broker.queues["orders"]
        taker = Taker(bench)
        taker.take(200)
        paged = queue.paged
        assert paged is not None
        ahead = queue.message_count - paged.count - queue.delivering_count
        while taker.take(100):
            pass
        assert taker.taken == list(range(2_000))
        return ahead

    assert read_ahead(limits) < read_ahead({})


@pytest.mark.parametrize(
    "limits", [{"max_read_page_messages": 10}, {"max_read_page_bytes": 10_000}], ids=str
)
def test_no_more_is_read_while_consumers_hold_what_may_be_read(
    limits: dict[str, SettingValue],
) -> None:
    """In Artemis, too, what is delivered counts: who acknowledges nothing gets no more."""

    def given(values: dict[str, SettingValue]) -> int:
        bench = bench_with({**SMALL, "max_size_bytes": 2_000, **values})
        send(bench, range(1_000))
        taker = Taker(bench)
        taker.session.add_credits(0, 1 << 20)
        for _ in range(50):
            bench.settle()
        seen = endpoint(taker.session)
        before = len(seen.delivered)
        acknowledged = -1
        while seen.message_ids[-1] != acknowledged:
            acknowledged = seen.message_ids[-1]
            taker.session.acknowledge(bench.now, 0, acknowledged, False, 0)
            bench.settle()
        assert numbers_of([body for _, _, body in seen.delivered]) == list(range(1_000))
        return before

    assert given(limits) < given({"max_read_page_bytes": -1}) == 1_000


def test_two_pages_are_read_if_nothing_else_is_said_but_not_too_little() -> None:
    """AddressSettings.getMaxReadPageBytes has no such least; 0 is no limit, as less is."""

    def limit_of(**values: SettingValue) -> int:
        return bench_with(values).broker.addresses["orders"].account.max_read_bytes

    assert limit_of() == 20 << 20
    assert limit_of(page_size_bytes=50_000) == 20 << 20
    assert limit_of(page_size_bytes=30 << 20) == 60 << 20
    assert limit_of(page_size_bytes=50_000, max_read_page_bytes=70_000) == 70_000
    assert limit_of(max_read_page_bytes=0) == limit_of(max_read_page_bytes=-1) == UNLIMITED


def test_pages_have_their_own_limit_in_bytes() -> None:
    bench = bench_with({**SMALL, "page_limit_bytes": 20_000, "page_full_policy": "DROP"})
    session = bench.session()
    for number in range(300):
        session.send(bench.now, bench.message("orders", bytes(400)), number)
        bench.settle()
    kept = bench.broker.queues["orders"].message_count
    assert kept < 200
    assert len(Taker(bench).take(300)) == kept
