"""Last-value and ring queues larger than memory: one message a value, the newest N, and few files."""

from __future__ import annotations

import pytest

from atalanta.kernel import catalogue, housekeeping, moves
from atalanta.kernel.paging_view import everything
from atalanta.kernel.queue_changes import QueueChanges
from atalanta.kernel.reference import PagedReference
from atalanta.kernel.session import Session
from tests.kernel.bench import Bench, consume, endpoint
from tests.kernel.test_large import LargeBench
from tests.kernel.test_paging import LIMIT, PAGE, files, numbers_of
from tests.kernel.test_paging_special import bench_with, reader, seen


def put(bench: Bench, numbers: range, values: int, durable: bool = True) -> None:
    """Message n has value n % values."""
    session = bench.session()
    for number in numbers:
        body = number.to_bytes(4, "big") + bytes(400)
        message = bench.message("orders", body, durable, key=str(number % values))
        session.send(bench.now, message, number)
        if number % 10 == 9:
            bench.settle()
    bench.settle()


def there(bench: Bench) -> list[int]:
    found = everything(bench.broker.queues["orders"])
    return numbers_of([each.message.body for each in found])


@pytest.mark.parametrize("ending", ["", "restart", "compaction"])
@pytest.mark.parametrize("kind", ["ring", "values", "table"])
def test_memory_is_bounded_and_the_newest_are_there(kind: str, ending: str) -> None:
    attributes: dict[str, object] = {"ring_size": 400}
    if kind != "ring":
        attributes = {"last_value_key": "key", "non_destructive": kind == "table"}
    bench = bench_with(**attributes)
    bench.trace.on = False
    for start in range(0, 2_000, 100):
        put(bench, range(start, start + 100), 400)
        assert bench.broker.memory.used_bytes < LIMIT + 2 * PAGE
        assert files(bench) < 20
    if ending == "compaction":
        bench.compact(bench.journal.last - 20)
    if ending:
        for _ in range(2):
            bench.restart()
            bench.settle()
    queue = bench.broker.queues["orders"]
    assert queue.message_count == 400 and queue.paged is not None
    housekeeping.validate(bench.broker)
    session = reader(bench)
    assert seen(session) == list(range(1_600, 2_000))
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 0)
    bench.settle()
    if kind != "table":
        assert queue.message_count == files(bench) == bench.broker.stored_bytes == 0
        assert bench.broker.memory.used_bytes == 0


def test_a_value_that_is_seldom_replaced_does_not_keep_a_file_for_itself() -> None:
    """One of its kind in each page: those that are left are put together."""
    bench = bench_with(last_value_key="key")
    bench.trace.on = False
    session = bench.session()
    for number in range(6_000):
        # One in 60 has a value of its own, the others come again and again.
        key = f"rare {number}" if number % 60 == 0 else f"often {number % 200}"
        body = number.to_bytes(4, "big") + bytes(400)
        session.send(bench.now, bench.message("orders", body, key=key), number)
        if number % 10 == 9:
            bench.settle()
    bench.settle()
    assert bench.trace.counters["pages_written"] > 100
    assert files(bench) < 20
    rare = list(range(0, 6_000, 60))
    expected = sorted({*rare, *[n for n in range(5_800, 6_000) if n % 60]})
    housekeeping.validate(bench.broker)
    for _ in range(2):
        assert [n for n in there(bench) if n % 60 == 0] == rare
        assert set(expected) <= set(there(bench))
        bench.restart()
        bench.settle()
        housekeeping.validate(bench.broker)


def test_when_what_was_pushed_out_makes_room_the_queue_is_in_memory_again() -> None:
    bench = bench_with(last_value_key="key")
    put(bench, range(300), 300)
    queue = bench.broker.queues["orders"]
    assert queue.paged is not None and files(bench) > 2
    session = bench.session()
    consume(session, bench, "orders", "number IS NOT NULL", credits=0)  # nobody takes anything
    session.close(bench.now, False)
    moves.purge(bench.broker, queue, "purged")
    put(bench, range(300, 1_000), 20)
    assert files(bench) == 0 and bench.broker.queues["orders"].paged is None
    assert there(bench) == list(range(980, 1_000))


def held_by_a_consumer(bench: Bench) -> Session:
    """A consumer has 250, 550 of the same value lies in a file, and newer messages behind it."""
    put(bench, range(300), 300)
    holder = reader(bench, "key = '250'", credits=1)
    assert seen(holder) == [250]
    put(bench, range(300, 600), 300)  # every value anew
    put(bench, range(600, 700), 10_000)
    queue = bench.broker.queues["orders"]
    assert queue.message_count == 401 and queue.delivering_count == 1
    assert queue.special is not None and queue.special.values is not None
    assert "250" in queue.special.values.lying
    return holder


@pytest.mark.parametrize("ending", ["back", "restart", "newer taken"])
def test_an_older_value_at_a_consumer_is_behind_a_newer_one_in_a_file(ending: str) -> None:
    bench = bench_with(last_value_key="key")
    holder = held_by_a_consumer(bench)
    expected = list(range(300, 700))
    if ending == "newer taken":
        taker = reader(bench, "key = '250'", credits=1)
        assert seen(taker) == [550]
        taker.acknowledge(bench.now, 0, endpoint(taker).message_ids[0], False, 0)
        expected.remove(550)
        expected.insert(0, 250)
    if ending == "restart":
        bench.restart()
    else:
        holder.close(bench.now, False)
    bench.settle()
    assert there(bench) == expected
    housekeeping.validate(bench.broker)


@pytest.mark.parametrize("written_on", [False, True])
@pytest.mark.parametrize("crash", ["", "before", "after"])
def test_until_a_newer_value_is_safe_the_older_one_is_there(crash: str, written_on: bool) -> None:
    """And after it, never again: also when its page's state was written in between (compaction)."""
    bench = bench_with(last_value_key="key")
    put(bench, range(300), 300)
    queue = bench.broker.queues["orders"]
    old = 299 if queue.paged is not None and not queue.paged.tail else 200
    assert queue.special is not None and queue.special.values is not None
    assert str(old) in queue.special.values.lying
    session = bench.session()
    session.send(bench.now, bench.message("orders", (9_000).to_bytes(4, "big"), key=str(old)), 0)
    assert old in there(bench) and 9_000 not in there(bench)
    housekeeping.validate(bench.broker)
    if crash == "before":
        bench.restart()
        bench.settle()
        assert there(bench) == list(range(300))
        return
    if written_on:
        for page in bench.broker.paging.pages.values():
            bench.broker.paging.store(page)
    bench.settle()
    if crash:
        # What replaced it is taken, so that nothing but the journal knows that the older one has ended.
        session = reader(bench, f"key = '{old}'")
        assert seen(session) == [9_000]
        session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 0)
        bench.settle()
        if written_on:  # all that is older than the pages' state is gone
            bench.compact(bench.journal.last - 3)
        bench.restart()
        bench.settle()
    left = [number for number in range(300) if number != old]
    assert there(bench) == (left if crash else [*left, 9_000])
    housekeeping.validate(bench.broker)


def test_values_sent_in_a_transaction_replace_each_other_at_its_commit() -> None:
    bench = bench_with(last_value_key="key")
    put(bench, range(300), 300)
    session = bench.session(transacted=True)
    for number in (1_000, 1_001, 1_002):
        body = number.to_bytes(4, "big") + bytes(400)
        session.send(bench.now, bench.message("orders", body, key="7"), number)
    bench.settle()
    assert there(bench) == list(range(300))
    session.commit(bench.now, 0)
    bench.settle()
    expected = [*[n for n in range(300) if n != 7], 1_002]
    assert there(bench) == expected
    bench.restart()
    bench.settle()
    assert there(bench) == expected
    housekeeping.validate(bench.broker)


def test_the_files_of_large_messages_go_with_what_is_pushed_out() -> None:
    for attributes in ({"ring_size": 50}, {"last_value_key": "text"}):
        bench = LargeBench({"max_size_bytes": 40_000, "page_size_bytes": 16_000})
        bench.queue("special", "orders", **attributes)
        catalogue.delete_queue(bench.broker, bench.now, "orders", "")
        for _ in range(3):
            for number in range(50):
                bench.publish("orders", head=1_000 + number)  # its length is its value
                bench.settle()
        assert bench.pages is not None and len(bench.pages.files) > 1
        assert bench.broker.queues["special"].message_count == 50
        assert len(bench.folder.contents) == 50
        bench.power_cut()
        assert bench.broker.queues["special"].message_count == 50
        assert len(bench.folder.contents) == 50
        bench.power_cut()
        moves.purge(bench.broker, bench.broker.queues["special"], "purged")
        bench.settle()
        assert not bench.folder.contents and not bench.pages.files


def test_a_shorter_ring_is_reached_through_its_files() -> None:
    bench = bench_with(ring_size=1_500)
    bench.trace.on = False
    put(bench, range(2_000), 2_000)
    queue = bench.broker.queues["orders"]
    assert queue.message_count == 1_500 and files(bench) > 20
    changes = QueueChanges()
    changes.ring_size = 100
    catalogue.update_queue(bench.broker, bench.now, "orders", changes)
    bench.settle()
    assert there(bench) == list(range(1_900, 2_000))
    assert queue.message_count == 100
    bench.settle()
    assert files(bench) < 10
    housekeeping.validate(bench.broker)


def test_a_queue_that_pages_becomes_a_ring() -> None:
    bench = bench_with()
    bench.trace.on = False
    put(bench, range(500), 500)
    changes = QueueChanges()
    changes.ring_size = 50
    catalogue.update_queue(bench.broker, bench.now, "orders", changes)
    bench.settle()
    assert there(bench) == list(range(450, 500))
    put(bench, range(500, 600), 600)
    assert there(bench) == list(range(550, 600))
    housekeeping.validate(bench.broker)


def test_what_is_pushed_out_here_stays_in_the_other_queues_of_its_address() -> None:
    """Replaced in memory, after it came from a file, while another queue has it in the journal only."""
    bench = bench_with()
    bench.queue("values", "topic", 0, last_value_key="key")
    bench.queue("some", "topic", 0, filter_text="chosen")
    sender = bench.session()

    def publish(numbers: range) -> None:
        for number in numbers:
            body = number.to_bytes(4, "big") + bytes(400)
            message = bench.message("topic", body, key=str(number % 300), chosen=number % 30 == 0)
            sender.send(bench.now, message, number)
            if number % 10 == 9:
                bench.settle()

    publish(range(300))
    values = bench.broker.queues["values"]
    taker = bench.session()
    consume(taker, bench, "values", "key = '299'", credits=1)  # looks on through all files
    bench.settle()
    in_memory = [each for each in values.references if isinstance(each, PagedReference)]
    assert len([each for each in in_memory if each.message.id in bench.broker.messages]) > 1
    publish(range(300, 600))
    bench.compact(bench.journal.last - 10)
    bench.restart()
    bench.settle()
    found = everything(bench.broker.queues["some"])
    assert numbers_of([each.message.body for each in found]) == list(range(0, 600, 30))
    housekeeping.validate(bench.broker)
