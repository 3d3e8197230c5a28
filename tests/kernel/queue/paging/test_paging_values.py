"""Last-value and ring queues larger than memory.

Of a last value several messages may lie in files: the older ones end when the newer one is read back. Whoever reads all
sees the newest of each value last. A ring has its size wherever its messages lie.
"""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.journal import records
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.paging.iteration import everything
from atalanta.kernel.queue.paging.paged_reference import PagedReference
from tests.kernel.broker_rig import Bench, consume, endpoint
from tests.kernel.memory.large_rig import LargeBench
from tests.kernel.queue.paging.paging_rig import LIMIT, PAGE, files, numbers_of
from tests.kernel.queue.paging.paging_values_rig import held_by_a_consumer, put, there
from tests.kernel.queue.paging.special_paging_rig import bench_with, reader, seen


def newest(numbers: list[int], values: int) -> dict[int, int]:
    """The last message of each value."""
    return {number % values: number for number in numbers}


def taken(bench: Bench) -> list[int]:
    """All that the queue has, in the order of delivery; it is acknowledged."""
    session = reader(bench)
    found = seen(session)
    while endpoint(session).message_ids:
        session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 0)
        bench.settle()
        if seen(session) == found:
            break
        found = seen(session)
    session.close(bench.now, False)
    bench.settle()
    return found


def end(bench: Bench, ending: str) -> None:
    if ending == "compaction":
        bench.compact(bench.journal.last - 20)
    if ending:
        for _ in range(2):
            bench.restart()
            bench.settle()


@pytest.mark.parametrize("ending", ["", "restart", "compaction"])
def test_a_ring_has_its_size_in_memory_and_in_files(ending: str) -> None:
    bench = bench_with(ring_size=400)
    bench.trace.on = False
    for start in range(0, 2_000, 100):
        put(bench, range(start, start + 100), 400)
        assert bench.broker.memory.used_bytes < LIMIT + 2 * PAGE
        assert files(bench) < 20
    end(bench, ending)
    queue = bench.broker.queues["orders"]
    assert queue.message_count == 400 and queue.paged is not None
    invariants.validate(bench.broker)
    assert taken(bench) == list(range(1_600, 2_000))
    assert queue.message_count == files(bench) == bench.broker.store.stored_bytes == 0
    assert bench.broker.memory.used_bytes == 0


@pytest.mark.parametrize("ending", ["", "restart", "compaction"])
@pytest.mark.parametrize("non_destructive", [False, True])
def test_who_reads_all_sees_the_newest_of_each_value_last(non_destructive: bool, ending: str) -> None:
    bench = bench_with(last_value_key="key", non_destructive=non_destructive)
    bench.trace.on = False
    for start in range(0, 2_000, 100):
        put(bench, range(start, start + 100), 400)
        assert bench.broker.memory.used_bytes < LIMIT + 4 * PAGE  # a tail, and what is read back at once
    end(bench, ending)
    queue = bench.broker.queues["orders"]
    assert 400 <= queue.message_count <= 2_000 and queue.paged is not None
    invariants.validate(bench.broker)
    found = taken(bench)
    assert found == sorted(found)
    assert newest(found, 400) == newest(list(range(2_000)), 400)
    invariants.validate(bench.broker)
    if not non_destructive:
        assert queue.message_count == files(bench) == bench.broker.store.stored_bytes == 0
        assert bench.broker.memory.used_bytes == 0


def test_a_queue_that_fits_into_memory_again_is_read_back_without_a_consumer() -> None:
    """Five values, each of them many times in files: what is read back replaces what is in memory."""
    bench = bench_with(last_value_key="key")
    session = bench.session()
    for number in range(500):
        body = number.to_bytes(4, "big") + bytes(400)
        session.send(bench.now, bench.message("orders", body, key=str(number % 5)), number)
    bench.settle()  # nothing was durable before: all of it was in memory at once
    put(bench, range(500, 510), 5)
    for _ in range(20):
        bench.settle()
    queue = bench.broker.queues["orders"]
    assert there(bench) == list(range(505, 510))
    assert queue.paged is None and files(bench) == 0 and queue.message_count == 5
    invariants.validate(bench.broker)


@pytest.mark.parametrize("ending", ["back", "restart"])
def test_an_older_value_that_a_consumer_gives_back_comes_before_the_newer_one(ending: str) -> None:
    bench = bench_with(last_value_key="key")
    holder = held_by_a_consumer(bench)
    if ending == "restart":
        bench.restart()
    else:
        holder.close(bench.now, False)
    bench.settle()
    invariants.validate(bench.broker)
    found = taken(bench)
    assert newest(found[: found.index(600)], 300) == newest(list(range(300, 600)), 300)
    assert found[-100:] == list(range(600, 700))


@pytest.mark.parametrize("written_on", [False, True])
@pytest.mark.parametrize("crash", ["", "before", "after"])
def test_a_newer_value_is_never_lost_and_never_followed_by_the_older_one(crash: str, written_on: bool) -> None:
    bench = bench_with(last_value_key="key")
    put(bench, range(300), 300)
    session = bench.session()
    session.send(bench.now, bench.message("orders", (9_200).to_bytes(4, "big"), key="200"), 0)
    assert 200 in there(bench) and 9_200 not in there(bench)
    if crash == "before":
        bench.restart()
        bench.settle()
        assert newest(taken(bench), 300) == newest(list(range(300)), 300)
        return
    if written_on:
        for page in bench.broker.paging.pages.values():
            bench.broker.paging.store_page(page, records.Batch())
    bench.settle()
    if crash:
        bench.restart()
        bench.settle()
    taker = reader(bench, "key = '200'")
    while seen(taker)[-1] != 9_200:
        taker.acknowledge(bench.now, 0, endpoint(taker).message_ids[-1], True, 0)
        bench.settle()
    taker.acknowledge(bench.now, 0, endpoint(taker).message_ids[-1], True, 0)
    bench.settle()
    if crash:
        if written_on:  # all that is older than the pages' state is gone
            bench.compact(bench.journal.last - 3)
        bench.restart()
        bench.settle()
    assert 9_200 not in there(bench)
    invariants.validate(bench.broker)


def test_values_sent_in_a_transaction_replace_each_other_at_its_commit() -> None:
    bench = bench_with(last_value_key="key")
    put(bench, range(300), 300)
    session = bench.session(transacted=True)
    for number in (1_207, 1_507, 1_807):
        body = number.to_bytes(4, "big") + bytes(400)
        session.send(bench.now, bench.message("orders", body, key="7"), number)
    bench.settle()
    assert there(bench) == list(range(300))
    session.commit(bench.now, 0)
    bench.settle()
    bench.restart()
    bench.settle()
    found = taken(bench)
    assert newest(found, 300) == newest([*range(300), 1_807], 300)
    assert found[-1] == 1_807 and 1_207 not in found


@pytest.mark.parametrize("attributes", [{"ring_size": 50}, {"last_value_key": "text"}])
def test_the_files_of_large_messages_go_with_them(attributes: dict[str, object]) -> None:
    bench = LargeBench({"max_size_bytes": 40_000, "page_size_bytes": 16_000})
    bench.queue("special", "orders", **attributes)  # type: ignore[arg-type]
    bench.broker.queue_registry.delete(bench.now, "orders", "")
    for _ in range(3):
        for number in range(50):
            bench.publish("orders", head=1_000 + number)  # its length is its value
            bench.settle()
    assert bench.pages is not None and len(bench.pages.files) > 1
    for _ in range(2):
        there_now = bench.broker.queues["special"].message_count
        assert there_now == 50 or "ring_size" not in attributes
        assert there_now >= 50 and len(bench.folder.contents) == there_now
        bench.power_cut()
    bench.broker.mover.purge(bench.broker.queues["special"], "purged")
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
    bench.broker.queue_registry.update(bench.now, "orders", changes)
    bench.settle()
    assert there(bench) == list(range(1_900, 2_000))
    assert queue.message_count == 100
    bench.settle()
    assert files(bench) < 10
    invariants.validate(bench.broker)


def test_a_queue_that_pages_becomes_a_ring() -> None:
    bench = bench_with()
    bench.trace.on = False
    put(bench, range(500), 500)
    changes = QueueChanges()
    changes.ring_size = 50
    bench.broker.queue_registry.update(bench.now, "orders", changes)
    bench.settle()
    assert there(bench) == list(range(450, 500))
    put(bench, range(500, 600), 600)
    assert there(bench) == list(range(550, 600))
    invariants.validate(bench.broker)


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
    assert len([each for each in in_memory if each.message.id in bench.broker.store.messages]) > 1
    publish(range(300, 600))
    bench.compact(bench.journal.last - 10)
    bench.restart()
    bench.settle()
    found = everything(bench.broker.queues["some"])
    assert numbers_of([each.message.body for each in found]) == list(range(0, 600, 30))
    invariants.validate(bench.broker)
