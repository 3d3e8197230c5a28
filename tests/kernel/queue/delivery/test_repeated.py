"""Messages that come again and again: one after the other, over restarts and crashes, until their end."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.message.repetition import Repetition, repetition_of
from tests.kernel.broker_rig import SECOND, Bench, consume, endpoint
from tests.kernel.queue.delivery.scheduled_rig import tick, wait


def repeated(
    bench: Bench, period_s: int, times: int, cron: str = "", durable: bool = True, ttl_s: int = 0, queue: str = "orders"
) -> None:
    """Sends a message whose first delivery is after one period, or at the time of cron."""
    message = bench.message(queue, b"again", durable)
    now_ms = bench.now // 1_000_000
    repetition = Repetition(period_s * 1_000, times, cron)
    at_ms = repetition.first_ms(now_ms, 0)
    message.user_id = bytes(16)
    message.put_property("__HDR_MESSAGE_ID", "first")
    message.put_property("_AMQ_DUPL_ID", "first")
    if ttl_s:
        message.expiration = at_ms + ttl_s * 1_000
    repetition.put(message, at_ms)
    bench.session().send(bench.now, message.copy(0), 1)


def test_it_comes_as_often_as_its_sender_wants(bench: Bench) -> None:
    queue = bench.queue("orders")
    session = bench.session()
    consume(session, bench, "orders")
    repeated(bench, 2, 2)
    found = []
    for _ in range(8):
        wait(bench, 1)
        validate(bench.broker)
        found.append((len(endpoint(session).bodies()), queue.message_count, queue.scheduled_count))
    assert found == [(0, 1, 1), (1, 2, 1), (1, 2, 1), (2, 3, 1), (2, 3, 1), (3, 3, 0), (3, 3, 0), (3, 3, 0)]
    (consumer,) = session.consumers.values()
    messages = [reference.message for reference in consumer.unacknowledged.values()]
    assert len({each.user_id for each in messages}) == 3
    assert [each.property_value("__HDR_MESSAGE_ID") for each in messages] == ["first", None, None]
    assert [each.property_value("_AMQ_DUPL_ID") for each in messages] == ["first", None, None]
    assert not any(each.has_property("_AMQ_SCHED_REPEAT") for each in messages)
    # The last one is an ordinary scheduled message.
    assert [each.has_property("_AMQ_SCHED_DELIVERY") for each in messages] == [False, False, True]


@pytest.mark.parametrize("durable", [True, False])
def test_without_end(bench: Bench, durable: bool) -> None:
    queue = bench.queue("orders")
    repeated(bench, 1, -1, durable=durable)
    wait(bench, 0)
    for number in range(1, 20):
        wait(bench, 1)
        assert (queue.message_count, queue.scheduled_count) == (number + 1, 1)
    validate(bench.broker)
    assert [reference.sequence for reference in queue.live()] == list(range(1, 20))


def test_a_restart_takes_none_away_and_makes_up_for_none(bench: Bench) -> None:
    bench.queue("orders")
    repeated(bench, 2, 3)
    wait(bench, 2)
    bench.restart()
    bench.broker.start_timers(bench.now)
    queue = bench.broker.queues["orders"]
    assert (queue.message_count, queue.scheduled_count) == (2, 1)
    validate(bench.broker)
    bench.now += 60 * SECOND
    bench.restart()
    bench.broker.start_timers(bench.now)
    for _ in range(20):
        wait(bench, 1)
    queue = bench.broker.queues["orders"]
    assert (queue.message_count, queue.scheduled_count) == (4, 0)
    bench.compact(bench.journal.last)
    bench.restart()
    assert bench.broker.queues["orders"].message_count == 4
    validate(bench.broker)


def test_a_crash_before_the_record_is_durable_leaves_the_message_to_come(bench: Bench) -> None:
    bench.queue("orders")
    repeated(bench, 2, 1)
    bench.settle()
    bench.now += 2 * SECOND
    bench.broker.on_timer(bench.now, "kernel.scheduled")  # nothing of it is on disk
    bench.restart()
    bench.broker.start_timers(bench.now)
    queue = bench.broker.queues["orders"]
    assert (queue.message_count, queue.scheduled_count) == (1, 1)
    tick(bench)
    assert (queue.message_count, queue.scheduled_count) == (2, 1)


def test_times_of_cron(bench: Bench) -> None:
    queue = bench.queue("orders")
    minute_ms = 60_000
    repeated(bench, 0, 0, "*/2 * * * *")
    bench.settle()
    arrived = []
    for _ in range(7 * 60):
        before = queue.message_count
        wait(bench, 1)
        if queue.message_count > before:
            arrived.append(bench.now // 1_000_000)
    assert len(arrived) in (3, 4) and queue.scheduled_count == 1
    assert all(at // 1_000 * 1_000 % (2 * minute_ms) == 0 for at in arrived)


def test_cron_with_repeats_is_a_series_at_each_time(bench: Bench) -> None:
    queue = bench.queue("orders")
    repeated(bench, 10, 2, "0 * * * *")
    bench.settle()
    while queue.message_count == 1:
        wait(bench, 60)
    assert queue.scheduled_count == 2
    wait(bench, 10)
    wait(bench, 10)
    assert (queue.message_count - queue.scheduled_count, queue.scheduled_count) == (3, 1)
    wait(bench, 600)
    assert (queue.message_count - queue.scheduled_count, queue.scheduled_count) == (3, 1)


def test_its_life_begins_with_each_delivery(bench: Bench) -> None:
    queue = bench.queue("orders")
    repeated(bench, 10, 1, ttl_s=3)
    wait(bench, 10)
    wait(bench, 10)
    first, second = (reference.message for reference in queue.live())
    assert second.expiration - first.expiration == 10_000
    assert first.expiration == bench.now // 1_000_000 - 10_000 + 3_000


def test_a_transaction_that_takes_longer_than_the_first_delay(bench: Bench) -> None:
    queue = bench.queue("orders")
    message = bench.message("orders", b"again", True)
    Repetition(1_000, 5, "").put(message, bench.now // 1_000_000 - 5_000)
    bench.session().send(bench.now, message.copy(0), 1)
    bench.settle()
    tick(bench)
    assert (queue.message_count, queue.scheduled_count) == (2, 1)


def test_a_wrong_repetition_is_refused_and_nonsense_of_other_clients_ignored(bench: Bench) -> None:
    for period_ms, times, cron in ((0, 3, ""), (0, -1, ""), (-1, 1, ""), (0, 0, "x"), (1, 1, "* * 31 2 *")):
        with pytest.raises(ValueError):
            repetition_of(period_ms, times, cron)
    assert repetition_of(0, 0, "") is None
    queue = bench.queue("orders")
    message = bench.message("orders", b"1", True)
    message.put_property("_AMQ_SCHED_DELIVERY", bench.now // 1_000_000 + 1_000)
    message.put_property("_AMQ_SCHED_CRON", "x")
    message.put_property("_AMQ_SCHED_REPEAT", "y")
    bench.session().send(bench.now, message, 1)
    wait(bench, 1)
    assert (queue.message_count, queue.scheduled_count) == (1, 0)


@pytest.mark.parametrize("policy", ["FAIL", "DROP", "BLOCK"])
def test_a_full_address_gets_none_until_there_is_room(policy: str) -> None:
    settings = AddressSettingsRepository()
    settings.add("#", {"address_full_policy": policy, "max_size_messages": 5})
    bench = Bench(None, settings)
    queue = bench.queue("orders")
    repeated(bench, 1, -1)
    for _ in range(20):
        wait(bench, 1)
        validate(bench.broker)
    assert queue.message_count <= 6 and queue.scheduled_count == 1
    session = bench.session()
    consume(session, bench, "orders")
    bench.settle()
    held = len(endpoint(session).bodies())
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 9)
    for _ in range(3):
        wait(bench, 1)
    assert len(endpoint(session).bodies()) in (held + 2, held + 3)
