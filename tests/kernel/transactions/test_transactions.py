"""Local transactions: all or nothing, also across a crash."""

from __future__ import annotations

from tests.kernel.broker_rig import Bench, consume, endpoint


def test_a_crash_before_the_commit_is_durable_undoes_all_of_it(bench: Bench) -> None:
    bench.queue("in")
    bench.queue("out")
    feeder = bench.session()
    feeder.send(bench.now, bench.message("in", b"work"), 1)
    bench.settle()
    session = bench.session(transacted=True)
    consume(session, bench, "in")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], False, 2)
    session.send(bench.now, bench.message("out", b"result"), 3)
    session.commit(bench.now, 4)
    bench.restart()
    assert bench.broker.queues["in"].message_count == 1
    assert bench.broker.queues["out"].message_count == 0


def test_rollback_redelivers_with_a_count_and_finally_to_the_dead_letter_address(bench: Bench) -> None:
    bench.settings.add("orders", {"max_delivery_attempts": 3, "dead_letter_address": "DLA"})
    bench.queue("orders")
    dead = bench.queue("dead", "DLA", 0)
    session = bench.session(transacted=True)
    bench.session().send(bench.now, bench.message("orders", b"poison"), 1)
    consume(session, bench, "orders")
    for attempt in range(3):
        bench.settle()
        assert endpoint(session).delivered[-1] == (0, attempt + 1, b"poison")
        session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 2)
        session.rollback(bench.now, False, 3)
    bench.settle()
    assert dead.message_count == 1
    assert dead.live()[0].message.properties.get("_AMQ_ORIG_QUEUE") == "orders"
    assert bench.broker.queues["orders"].message_count == 0
    bench.restart()
    assert bench.broker.queues["dead"].message_count == 1


def test_prefetched_messages_do_not_count_as_delivered_after_rollback(bench: Bench) -> None:
    bench.queue("orders")
    session = bench.session(transacted=True)
    sender = bench.session()
    for body in (b"a", b"b"):
        sender.send(bench.now, bench.message("orders", body), 1)
    consume(session, bench, "orders")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], False, 2)
    session.rollback(bench.now, False, 3)
    bench.settle()
    assert endpoint(session).delivered[2:] == [(0, 2, b"a"), (0, 1, b"b")]
