"""Queues that page although nobody takes anything away."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.paging.iteration import everything
from atalanta.kernel.queue.paging.paged_queue import paged_queue_of
from atalanta.kernel.sessions.session import Session
from tests.kernel.broker_rig import SECOND, Bench, consume, endpoint
from tests.kernel.queue.paging.paging_rig import LIMIT, PAGE, files, numbers_of, send
from tests.kernel.queue.paging.special_paging_rig import bench_with, reader, seen


def acknowledge(bench: Bench, session: Session) -> None:
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 0)
    bench.settle()


def test_every_consumer_of_a_non_destructive_queue_reads_its_pages() -> None:
    bench = bench_with(non_destructive=True)
    queue = bench.broker.queues["orders"]
    early = reader(bench)
    send(bench, range(500))
    used_bytes = bench.broker.memory.used_bytes
    assert files(bench) > 3 and used_bytes < 2.5 * LIMIT
    assert seen(early) == list(range(500))
    acknowledge(bench, early)
    late = reader(bench)
    assert seen(late) == list(range(500))
    send(bench, range(500, 700))
    assert seen(early) == seen(late) == list(range(700))
    for session in (early, late):
        acknowledge(bench, session)
        session.close(bench.now, False)
    assert queue.message_count == 700 and queue.delivering_count == 0
    assert numbers_of([each.message.body for each in everything(queue)]) == list(range(700))
    assert bench.broker.memory.used_bytes < used_bytes + PAGE
    invariants.validate(bench.broker)


def test_with_a_selector_window_and_restart() -> None:
    bench = bench_with(non_destructive=True)
    send(bench, range(400))
    bench.restart()
    queue = bench.broker.queues["orders"]
    assert queue.paged is not None and queue.message_count == 400
    slow = reader(bench, credits=3_000)
    assert 0 < len(seen(slow)) < 10
    slow.add_credits(0, -1)
    bench.settle()
    assert seen(slow) == list(range(400))
    invariants.validate(bench.broker)


def test_a_rollback_shows_again_what_was_only_prefetched_from_a_page() -> None:
    bench = bench_with(non_destructive=True)
    send(bench, range(300))
    session = bench.session(transacted=True)
    consume(session, bench, "orders")
    bench.settle()
    assert seen(session) == list(range(300))
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[289], False, 0)
    session.rollback(bench.now, False, 1)
    bench.settle()
    assert seen(session)[300:] == list(range(290, 300))
    invariants.validate(bench.broker)


def test_priorities_in_memory_and_pages_in_their_order() -> None:
    bench = bench_with(non_destructive=True)
    sender = bench.session()
    for number in range(400):
        body = number.to_bytes(4, "big") + bytes(400)
        message = bench.message("orders", body)
        message.priority = 9 if number % 10 == 5 else 4
        sender.send(bench.now, message, 0)
        if number % 10 == 9:
            bench.settle()
    first, second = reader(bench), reader(bench)
    assert sorted(seen(first)) == sorted(seen(second)) == list(range(400))
    assert seen(first)[:3] == [5, 15, 25]
    invariants.validate(bench.broker)


def test_what_expired_in_pages_goes_without_a_reader_and_is_not_shown() -> None:
    for non_destructive in (True, False):
        bench = bench_with(non_destructive=non_destructive)
        sender = bench.session()
        for number in range(400):
            message = bench.message("orders", number.to_bytes(4, "big") + bytes(400))
            message.expiration = bench.now // 1_000_000 + 10 if number < 390 else 0
            sender.send(bench.now, message, 0)
            if number % 10 == 9:
                bench.settle()
        assert files(bench) > 3
        bench.now += SECOND
        if non_destructive:
            session = reader(bench)
            assert seen(session) == list(range(390, 400))
            session.close(bench.now, False)
        while bench.broker.expiry.scan(bench.now):
            bench.settle()
        bench.settle()
        queue = bench.broker.queues["orders"]
        assert queue.message_count == 10 and files(bench) <= 1
        assert seen(reader(bench)) == list(range(390, 400))
        invariants.validate(bench.broker)


@pytest.mark.parametrize(
    ("browse", "non_destructive"), [(True, False), (True, True), (False, True)]
)
def test_a_selector_that_wants_nothing_of_what_is_in_memory_gets_what_lies_in_pages(
    browse: bool, non_destructive: bool
) -> None:
    bench = bench_with(non_destructive=non_destructive)
    sender = bench.session()
    for number in range(300):
        body = number.to_bytes(4, "big") + bytes(300)
        late = number >= 250
        sender.send(bench.now, bench.message("orders", body, True, late=late), number)
        if number == 3:
            bench.settle()  # these stay in memory
    bench.settle()
    queue = bench.broker.queues["orders"]
    assert queue.paged is not None and queue.references
    session = bench.session()
    consume(session, bench, "orders", "late = TRUE", browse=browse)
    bench.settle()
    assert seen(session) == list(range(250, 300))


def test_what_clients_find_expired_of_a_table_in_files_is_counted_once() -> None:
    bench = bench_with(last_value_key="key", non_destructive=True)
    session = bench.session()
    for number in range(150):
        message = bench.message("orders", number.to_bytes(4, "big") + bytes(400), key=str(number))
        message.expiration = bench.now // 1_000_000 + 1_000
        session.send(bench.now, message, number)
        if number % 10 == 9:
            bench.settle()
    bench.settle()
    queue = bench.broker.queues["orders"]
    paged = paged_queue_of(queue)
    assert paged is not None and paged.pages and paged.tail
    first, second = reader(bench), reader(bench)
    bench.settle()
    for client in (first, second):
        assert len(seen(client)) == 150
    bench.now += 2 * SECOND
    for client in (first, second):
        for message_id in endpoint(client).message_ids:
            client.expire(bench.now, 0, message_id)
        bench.settle()
        invariants.validate(bench.broker)
    while bench.broker.expiry.scan(bench.now):
        bench.settle()
    bench.settle()
    invariants.validate(bench.broker)
    assert queue.message_count == 0 and queue.expired == 150
    assert not files(bench) and bench.broker.memory.used_bytes == 0


def test_copies_from_files_that_readers_hold_take_nothing_away_when_the_queue_becomes_destructive() -> None:
    bench = bench_with(non_destructive=True)
    send(bench, range(150))
    queue = bench.broker.queues["orders"]
    first, second, third = reader(bench), reader(bench), reader(bench)
    changes = QueueChanges()
    changes.non_destructive = False
    for client in (first, second, third):
        client.stop()
    bench.broker.queue_registry.update(bench.now, "orders", changes)
    for client in (first, second):
        for message_id in endpoint(client).message_ids:
            client.acknowledge(bench.now, 0, message_id, True, 0)
        bench.settle()
        invariants.validate(bench.broker)
    third.rollback(bench.now, False, 0)
    for client in (first, second, third):
        client.close(bench.now, False)
    bench.settle()
    invariants.validate(bench.broker)
    assert 100 < queue.message_count < 150 and queue.delivering_count == 0
    last = reader(bench)
    assert seen(last) == list(range(150))[-queue.message_count :]  # what was in memory has ended
    acknowledge(bench, last)
    assert queue.message_count == files(bench) == bench.broker.memory.used_bytes == 0


def test_what_was_delivered_before_a_queue_became_non_destructive_goes_with_its_acknowledgement(bench: Bench) -> None:
    queue = bench.queue("orders")
    send(bench, range(3))
    client = reader(bench)
    changes = QueueChanges()
    changes.non_destructive = True
    bench.broker.queue_registry.update(bench.now, "orders", changes)
    acknowledge(bench, client)
    assert queue.message_count == queue.delivering_count == 0


@pytest.mark.parametrize("browsing", [True, False])
def test_who_looks_at_all_pages_reads_each_block_once_a_turn(browsing: bool) -> None:
    """Eight of them at different places, in turns: every message was a block read anew."""
    bench = bench_with(non_destructive=not browsing)
    pages = bench.pages
    assert pages is not None
    send(bench, range(800))
    assert files(bench) > 15
    sessions = []
    for number in range(8):
        session = bench.session()
        consume(session, bench, "orders", credits=number * 2 * PAGE, browse=browsing)
        bench.settle()
        sessions.append(session)
    assert len({len(seen(session)) for session in sessions}) == 8
    pages.reads = 0
    for session in sessions:
        session.add_credits(0, -1)
    bench.settle()
    for session in sessions:
        assert seen(session) == list(range(800))
    assert pages.reads < 8 * 2 * files(bench)
