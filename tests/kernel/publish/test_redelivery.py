"""When a message that was rolled back is delivered again."""

from __future__ import annotations

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.publish.redelivery import address_delay_ms
from atalanta.kernel.settings.repository import AddressSettings
from tests.kernel.broker_rig import Bench, consume, endpoint
from tests.kernel.queue.delivery.scheduled_rig import wait


def settings(**values: object) -> AddressSettings:
    found = AddressSettings()
    for name, value in values.items():
        setattr(found, name, value)
    return found


def test_the_delay_grows_with_every_attempt_up_to_its_limit() -> None:
    plain = settings(redelivery_delay_ms=100)
    assert [address_delay_ms(plain, 1, count) for count in range(4)] == [100, 100, 100, 100]
    growing = settings(redelivery_delay_ms=100, redelivery_delay_multiplier=3.0)
    assert [address_delay_ms(growing, 1, count) for count in range(1, 6)] == [100, 300, 900, 1000, 1000]
    limited = settings(
        redelivery_delay_ms=100, redelivery_delay_multiplier=3.0, max_redelivery_delay_ms=500
    )
    assert [address_delay_ms(limited, 1, count) for count in (1, 2, 3, 10_000)] == [100, 300, 500, 500]
    assert address_delay_ms(settings(), 1, 5) == 0


def test_the_collision_factor_spreads_messages_the_same_way_every_time() -> None:
    spread = settings(
        redelivery_delay_ms=1000,
        redelivery_collision_avoidance_factor=0.5,
        max_redelivery_delay_ms=100_000,
    )
    delays = [address_delay_ms(spread, message_id, 1) for message_id in range(1_000)]
    assert delays == [address_delay_ms(spread, message_id, 1) for message_id in range(1_000)]
    assert all(500 <= delay <= 1500 for delay in delays)
    assert len(set(delays)) > 500
    assert 950 < sum(delays) / len(delays) < 1050


def rolled_back(bench: Bench, delay_s: int) -> None:
    """`a` was rolled back, `b` was only prefetched, `c` comes afterwards."""
    bench.settings.add("orders", {"redelivery_delay_ms": delay_s * 1_000})
    bench.queue("orders")
    sender = bench.session()
    for body in (b"a", b"b"):
        sender.send(bench.now, bench.message("orders", body), 1)
    session = bench.session(transacted=True)
    consume(session, bench, "orders")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], False, 2)
    session.rollback(bench.now, False, 3)
    session.close_consumer(bench.now, 0)
    sender.send(bench.now, bench.message("orders", b"c"), 1)
    bench.settle()


def comes_after_the_delay(bench: Bench) -> None:
    queue = bench.broker.queues["orders"]
    assert (queue.message_count, queue.scheduled_count) == (3, 2)
    validate(bench.broker)
    session = bench.session()
    consume(session, bench, "orders")
    bench.settle()
    assert endpoint(session).delivered == [(0, 1, b"c")]
    wait(bench, 5)
    assert endpoint(session).delivered[1:] == [(0, 2, b"a"), (0, 1, b"b")]
    validate(bench.broker)


def test_what_was_rolled_back_comes_after_the_delay_at_its_old_place(bench: Bench) -> None:
    rolled_back(bench, 5)
    comes_after_the_delay(bench)


def test_it_keeps_its_place_before_later_messages(bench: Bench) -> None:
    rolled_back(bench, 5)
    wait(bench, 5)
    session = bench.session()
    consume(session, bench, "orders")
    bench.settle()
    assert endpoint(session).bodies() == [b"a", b"b", b"c"]


def test_the_delay_survives_a_restart_and_compaction() -> None:
    for compacted in (False, True):
        bench = Bench()
        rolled_back(bench, 5)
        if compacted:
            bench.compact(bench.journal.last)
        bench.restart()
        bench.broker.start_timers(bench.now)
        comes_after_the_delay(bench)


def test_a_closed_consumer_gives_back_without_delay(bench: Bench) -> None:
    bench.settings.add("orders", {"redelivery_delay_ms": 5_000})
    queue = bench.queue("orders")
    bench.session().send(bench.now, bench.message("orders", b"a"), 1)
    session = bench.session()
    consume(session, bench, "orders")
    bench.settle()
    session.close_consumer(bench.now, 0)
    assert queue.scheduled_count == 0


def test_a_closed_session_rolls_back_with_delay(bench: Bench) -> None:
    bench.settings.add("orders", {"redelivery_delay_ms": 5_000})
    queue = bench.queue("orders")
    bench.session().send(bench.now, bench.message("orders", b"a"), 1)
    session = bench.session(transacted=True)
    consume(session, bench, "orders")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], False, 2)
    session.close(bench.now, False)
    bench.settle()
    assert queue.scheduled_count == 1


def test_minus_one_attempts_are_without_end(bench: Bench) -> None:
    bench.settings.add("orders", {"max_delivery_attempts": -1, "dead_letter_address": "dead"})
    queue = bench.queue("orders")
    dead = bench.queue("dead")
    bench.session().send(bench.now, bench.message("orders", b"a"), 1)
    session = bench.session(transacted=True)
    consume(session, bench, "orders")
    for _ in range(20):
        bench.settle()
        session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 2)
        session.rollback(bench.now, False, 3)
    bench.settle()
    assert (queue.message_count, dead.message_count) == (1, 0)
