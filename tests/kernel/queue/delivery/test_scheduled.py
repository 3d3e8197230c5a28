"""Messages that were sent for later: counted at once, delivered at their time, also after a restart."""

from __future__ import annotations

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.queue.delivery import scheduled
from atalanta.kernel.queue.delivery.scheduled_messages import SCHEDULED_TIMER
from tests.kernel.broker_rig import SECOND, Bench, consume, endpoint
from tests.kernel.queue.delivery.scheduled_rig import tick, wait


def later(
    bench: Bench, body: bytes, seconds: int, queue: str = "orders", durable: bool = True
) -> None:
    message = bench.message(queue, body, durable)
    message.put_property("_AMQ_SCHED_DELIVERY", bench.now // 1_000_000 + seconds * 1_000)
    bench.session().send(bench.now, message, 1)


def test_a_message_for_later_is_counted_and_delivered_at_its_time(bench: Bench) -> None:
    queue = bench.queue("orders")
    session = bench.session()
    consume(session, bench, "orders")
    later(bench, b"later", 2)
    bench.session().send(bench.now, bench.message("orders", b"now"), 1)
    bench.settle()
    assert endpoint(session).bodies() == [b"now"]
    assert (queue.message_count, queue.scheduled_count) == (2, 1)
    validate(bench.broker)
    wait(bench, 1)
    assert endpoint(session).bodies() == [b"now"]
    wait(bench, 1)
    assert endpoint(session).bodies() == [b"now", b"later"]
    assert (queue.message_count, queue.scheduled_count, queue.added) == (2, 0, 2)


def test_what_is_on_its_way_elsewhere_does_not_come_here_until_it_is_back(bench: Bench) -> None:
    """A node that leaves has sent it to another one; its time stays what it is (simulator seeds 563 and 26)."""
    queue = bench.queue("orders")
    session = bench.session()
    consume(session, bench, "orders")
    later(bench, b"one", 1)
    later(bench, b"two", 1)
    bench.settle()
    waiting = bench.broker.scheduled
    before = waiting.of_queue(queue)
    waiting.in_transfer[before[0][1]] = True
    wait(bench, 2)
    assert endpoint(session).bodies() == [b"two"]
    assert waiting.of_queue(queue) == before[:1] and queue.scheduled_count == 1
    validate(bench.broker)
    waiting.end_transfer(before[0][1])
    tick(bench)
    assert endpoint(session).bodies() == [b"two", b"one"]
    assert not waiting.in_transfer and not waiting.overdue


def test_they_come_by_time_and_then_by_arrival_behind_what_is_there(bench: Bench) -> None:
    bench.queue("orders")
    for body, seconds in ((b"third", 3), (b"first", 1), (b"second a", 2), (b"second b", 2)):
        later(bench, body, seconds)
    bench.session().send(bench.now, bench.message("orders", b"unscheduled"), 1)
    wait(bench, 5)
    session = bench.session()
    consume(session, bench, "orders")
    bench.settle()
    assert endpoint(session).bodies() == [
        b"unscheduled",
        b"first",
        b"second a",
        b"second b",
        b"third",
    ]


def test_one_timer_serves_all_and_is_set_to_the_earliest(bench: Bench) -> None:
    bench.queue("orders")
    bench.queue("other")
    later(bench, b"a", 30)
    later(bench, b"b", 10, "other")
    later(bench, b"c", 20)
    bench.settle()
    assert bench.timers.due == {SCHEDULED_TIMER: bench.now + 10 * SECOND}
    wait(bench, 10)
    assert bench.timers.due == {SCHEDULED_TIMER: bench.now + 10 * SECOND}
    wait(bench, 20)
    assert bench.timers.due == {}


def test_a_time_that_has_passed_is_now(bench: Bench) -> None:
    queue = bench.queue("orders")
    later(bench, b"late", -1)
    bench.settle()
    assert queue.scheduled_count == 0
    assert [reference.message.body for reference in queue.live()] == [b"late"]


def test_durable_ones_survive_a_restart_and_keep_their_time(bench: Bench) -> None:
    bench.queue("orders")
    later(bench, b"soon", 5)
    later(bench, b"later", 50)
    later(bench, b"lost", 5, durable=False)
    bench.settle()
    bench.restart()
    bench.broker.start_timers(bench.now)
    queue = bench.broker.queues["orders"]
    assert (queue.message_count, queue.scheduled_count) == (2, 2)
    validate(bench.broker)
    wait(bench, 5)
    assert [reference.message.body for reference in queue.live()] == [b"soon"]
    assert queue.scheduled_count == 1


def test_a_place_that_was_taken_is_the_same_after_a_restart_and_after_compaction(bench: Bench) -> None:
    queue = bench.queue("orders")
    later(bench, b"later", 5)
    sender = bench.session()
    for body in (b"a", b"b"):
        sender.send(bench.now, bench.message("orders", body), 1)
    wait(bench, 5)
    places = [(reference.sequence, reference.message.body) for reference in queue.live()]
    assert places == [(1, b"a"), (2, b"b"), (3, b"later")]
    bench.restart()
    found = bench.broker.queues["orders"].live()
    assert [(reference.sequence, reference.message.body) for reference in found] == places
    bench.compact(bench.journal.last)
    bench.restart()
    found = bench.broker.queues["orders"].live()
    assert [(reference.sequence, reference.message.body) for reference in found] == places


def test_compaction_keeps_what_still_waits(bench: Bench) -> None:
    bench.queue("orders")
    later(bench, b"later", 50)
    bench.settle()
    bench.compact(bench.journal.last)
    bench.restart()
    queue = bench.broker.queues["orders"]
    assert queue.scheduled_count == 1
    bench.broker.start_timers(bench.now)
    wait(bench, 50)
    assert [reference.message.body for reference in queue.live()] == [b"later"]


def test_the_log_view_sees_a_message_when_its_time_has_come_and_not_before(bench: Bench) -> None:
    bench.queue("orders")
    later(bench, b"later", 5)
    bench.session().send(bench.now, bench.message("orders", b"now"), 1)
    bench.settle()
    assert bench.broker.log_views.position("orders").last == 1
    wait(bench, 5)
    assert bench.broker.log_views.position("orders").last == 2


def test_a_message_of_a_transaction_counts_from_its_commit(bench: Bench) -> None:
    queue = bench.queue("orders")
    session = bench.session(transacted=True)
    message = bench.message("orders", b"later")
    message.put_property("_AMQ_SCHED_DELIVERY", bench.now // 1_000_000 + 1_000)
    session.send(bench.now, message, 1)
    bench.settle()
    assert queue.scheduled_count == 0
    session.commit(bench.now, 2)
    bench.settle()
    assert queue.scheduled_count == 1


def test_each_queue_of_a_topic_delivers_it(bench: Bench) -> None:
    bench.queue("one", "prices", 0)
    bench.queue("two", "prices", 0)
    later(bench, b"later", 1, "prices")
    wait(bench, 1)
    for name in ("one", "two"):
        found = bench.broker.queues[name].live()
        assert [reference.message.body for reference in found] == [b"later"]


def test_they_can_be_listed_delivered_early_and_moved_away(bench: Bench) -> None:
    bench.settings.add("orders", {"expiry_address": "late"})
    queue = bench.queue("orders")
    late = bench.queue("late")
    for body, seconds in ((b"c", 30), (b"a", 10), (b"b", 20)):
        later(bench, body, seconds)
    bench.settle()
    waiting = bench.broker.scheduled.of_queue(queue)
    assert [reference.message.body for _, reference in waiting] == [b"a", b"b", b"c"]
    assert [at_ms - bench.now // 1_000_000 for at_ms, _ in waiting] == [10_000, 20_000, 30_000]
    assert scheduled.deliver_early(bench.broker.store, [waiting[1][1]]) == 1
    bench.settle()
    assert [reference.message.body for reference in queue.live()] == [b"b"]
    bench.broker.mover.move_to_address(bench.now, waiting[0][1], None, "removed")
    bench.settle()
    assert (queue.message_count, queue.scheduled_count) == (2, 1)
    assert late.message_count == 0
    validate(bench.broker)
    bench.restart()
    bench.broker.start_timers(bench.now)
    queue = bench.broker.queues["orders"]
    assert (queue.message_count, queue.scheduled_count) == (2, 1)


def test_they_go_with_their_queue_and_when_it_is_purged(bench: Bench) -> None:
    bench.queue("orders")
    purged = bench.queue("purged")
    later(bench, b"x", 3600)
    later(bench, b"y", 3600, "purged")
    bench.settle()
    bench.broker.queue_registry.delete(bench.now, "orders", "deleted")
    bench.broker.mover.purge(purged, "purged")
    bench.settle()
    assert purged.message_count == 0
    assert not bench.broker.scheduled.waiting
    assert bench.broker.memory.used_bytes == 0


def test_what_is_forgotten_does_not_fill_the_memory(bench: Bench) -> None:
    queue = bench.queue("orders")
    for _ in range(3_000):
        later(bench, b"x", 3600, durable=False)
    bench.settle()
    bench.broker.mover.purge(queue, "purged")
    assert len(bench.broker.scheduled.heap) <= 1_000


def test_many_that_are_due_at_once_go_in_bounded_steps(bench: Bench) -> None:
    queue = bench.queue("orders")
    count = scheduled.DUE_MAX + 1
    for _ in range(count):
        later(bench, b"x", 1, durable=False)
    wait(bench, 1)
    assert queue.scheduled_count == 1
    tick(bench)
    assert (queue.scheduled_count, queue.message_count) == (0, count)
