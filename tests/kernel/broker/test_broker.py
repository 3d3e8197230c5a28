"""Senders and receivers of one node: what they see."""

from __future__ import annotations

from atalanta.kernel.broker.invariants import validate
from tests.kernel.broker_rig import Bench, consume, endpoint


def test_nothing_is_confirmed_or_shown_before_it_is_durable(bench: Bench) -> None:
    bench.queue("orders")
    session = bench.session()
    consume(session, bench, "orders")
    bench.settle()
    session.send(bench.now, bench.message("orders", b"one"), 7)
    bench.broker.flush(bench.now)
    assert endpoint(session).answers == []
    assert endpoint(session).bodies() == []
    bench.settle()
    assert endpoint(session).answers == [7]
    assert endpoint(session).bodies() == [b"one"]


def test_competing_consumers_take_turns(bench: Bench) -> None:
    bench.queue("orders")
    session = bench.session()
    consume(session, bench, "orders", consumer_id=1)
    consume(session, bench, "orders", consumer_id=2)
    for number in range(6):
        session.send(bench.now, bench.message("orders", bytes([number])), number)
    bench.settle()
    by_consumer = {1: [], 2: []}  # type: dict[int, list[bytes]]
    for consumer_id, _, body in endpoint(session).delivered:
        by_consumer[consumer_id].append(body)
    assert by_consumer == {1: [b"\0", b"\2", b"\4"], 2: [b"\1", b"\3", b"\5"]}


def test_every_subscription_of_a_topic_gets_what_its_filter_takes(bench: Bench) -> None:
    bench.queue("all", "prices", 0)
    bench.queue("high", "prices", 0, "price > 60")
    session = bench.session()
    consume(session, bench, "all", consumer_id=1)
    consume(session, bench, "high", consumer_id=2)
    for price in (50, 61, 70):
        session.send(bench.now, bench.message("prices", str(price).encode(), price=price), price)
    bench.settle()
    got = endpoint(session).delivered
    assert [body for consumer, _, body in got if consumer == 1] == [b"50", b"61", b"70"]
    assert [body for consumer, _, body in got if consumer == 2] == [b"61", b"70"]


def test_confirmed_messages_survive_a_crash_in_order_and_acknowledged_ones_do_not_come_back() -> (
    None
):
    bench = Bench()
    bench.queue("orders")
    session = bench.session()
    for number in range(10):
        session.send(bench.now, bench.message("orders", bytes([number])), number)
    bench.settle()
    consume(session, bench, "orders", credits=-1)
    bench.settle()
    ids = endpoint(session).message_ids
    session.acknowledge(bench.now, 0, ids[3], False, 100)
    bench.settle()
    session.acknowledge(bench.now, 0, ids[5], True, 101)
    bench.restart()
    after = bench.session()
    consume(after, bench, "orders")
    bench.settle()
    assert endpoint(after).bodies() == [bytes([n]) for n in (4, 5, 6, 7, 8, 9)]
    validate(bench.broker)


def test_selectors_do_not_block_each_other(bench: Bench) -> None:
    bench.queue("orders")
    session = bench.session()
    consume(session, bench, "orders", "colour = 'red'", consumer_id=1)
    for colour in ("blue", "red", "blue", "red"):
        session.send(bench.now, bench.message("orders", colour.encode(), colour=colour), 1)
    bench.settle()
    assert endpoint(session).bodies() == [b"red", b"red"]
    consume(session, bench, "orders", "colour = 'blue'", consumer_id=2)
    bench.settle()
    assert [body for consumer, _, body in endpoint(session).delivered if consumer == 2] == [
        b"blue",
        b"blue",
    ]


def test_expired_messages_go_to_the_expiry_address_with_their_origin(bench: Bench) -> None:
    bench.settings.add("orders", {"expiry_address": "expired"})
    bench.queue("orders")
    bench.queue("expired")
    session = bench.session()
    message = bench.message("orders", b"old")
    message.expiration = bench.now // 1_000_000 + 10
    session.send(bench.now, message, 1)
    bench.settle()
    bench.now += 20_000_000
    consume(session, bench, "orders", consumer_id=1)
    consume(session, bench, "expired", consumer_id=2)
    bench.settle()
    assert [(consumer, body) for consumer, _, body in endpoint(session).delivered] == [(2, b"old")]
    moved = bench.broker.queues["expired"].live()[0].message
    assert moved.properties.get("_AMQ_ORIG_ADDRESS") == "orders"
    assert bench.broker.queues["orders"].message_count == 0


def test_compaction_keeps_what_is_alive_and_forgets_nothing(bench: Bench) -> None:
    queue = bench.queue("orders")
    session = bench.session()
    for number in range(20):
        session.send(
            bench.now, bench.message("orders", bytes([number]), _AMQ_DUPL_ID=f"d{number}"), number
        )
    bench.settle()
    consume(session, bench, "orders")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[9], False, 50)
    bench.settle()
    sequence = queue.next_sequence
    bench.compact(bench.journal.last)
    bench.compact(bench.journal.last - 5)
    bench.restart()
    assert bench.broker.queues["orders"].next_sequence == sequence
    after = bench.session()
    consume(after, bench, "orders")
    after.send(bench.now, bench.message("orders", b"again", _AMQ_DUPL_ID="d3"), 60)
    bench.settle()
    assert endpoint(after).bodies() == [bytes([n]) for n in range(10, 20)]
