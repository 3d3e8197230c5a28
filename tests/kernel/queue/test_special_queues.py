"""Exclusive, last-value, ring and non-destructive queues, and those that wait before they hand out."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.transactions import xa_session
from tests.kernel.broker_rig import SECOND, Bench, consume, endpoint
from tests.kernel.queue.queue_rig import held, reader, send


# -- exclusive ------------------------------------------------------------------------------------
def test_an_exclusive_queue_serves_one_consumer_until_it_leaves(bench: Bench) -> None:
    bench.queue("q", exclusive=True)
    first, second, browser = reader(bench), reader(bench, 5), reader(bench, browse=True)
    sender = bench.session()
    send(bench, sender, "1", "2", "3")
    bench.settle()
    assert endpoint(second).bodies() == [b"1", b"2", b"3"], "the higher priority is asked first"
    assert endpoint(first).bodies() == [] and len(endpoint(browser).bodies()) == 3
    third = reader(bench, 9)
    second.acknowledge(bench.now, 0, endpoint(second).message_ids[0], True, 0)
    second.stop()
    send(bench, sender, "4")
    bench.settle()
    assert endpoint(first).bodies() == endpoint(third).bodies() == []
    second.close(bench.now, True)
    bench.settle()
    assert endpoint(third).bodies() == [b"2", b"3", b"4"]
    assert endpoint(first).bodies() == []


def test_the_first_consumer_of_an_exclusive_queue_is_the_one_whenever_others_come(bench: Bench) -> None:
    """Later consumers wait for it to leave, as in Artemis (a hot standby)."""
    bench.queue("q", exclusive=True)
    first = reader(bench)
    bench.settle()
    second = reader(bench)
    bench.settle()
    sender = bench.session()
    send(bench, sender, "1", "2")
    bench.settle()
    assert endpoint(first).bodies() == [b"1", b"2"] and endpoint(second).bodies() == []


def test_a_queue_is_made_exclusive_and_shared_again(bench: Bench) -> None:
    queue = bench.queue("q")
    first, second = reader(bench), reader(bench)
    sender = bench.session()
    changes = QueueChanges()
    changes.exclusive = True
    bench.broker.queue_registry.update(bench.now, "q", changes)
    send(bench, sender, "1", "2", "3", "4")
    bench.settle()
    assert sorted([len(endpoint(first).bodies()), len(endpoint(second).bodies())]) == [0, 4]
    changes.exclusive = False
    bench.broker.queue_registry.update(bench.now, "q", changes)
    send(bench, sender, "5", "6")
    bench.settle()
    assert sorted([len(endpoint(first).bodies()), len(endpoint(second).bodies())]) == [1, 5]
    assert queue.special is not None
    bench.restart()
    assert not bench.broker.queues["q"].spec.exclusive


# -- last values ----------------------------------------------------------------------------------
@pytest.mark.parametrize("durable", [True, False])
def test_a_newer_value_replaces_the_one_that_waits(bench: Bench, durable: bool) -> None:
    queue = bench.queue("q", last_value_key="_AMQ_LVQ_NAME")
    sender = bench.session()
    send(bench, sender, "a=1", "b=1", "plain", "a=2", "a=3", durable=durable)
    bench.settle()
    send(bench, sender, "b=2", "plain", durable=durable)
    bench.settle()
    assert held(queue) == [b"plain", b"a=3", b"b=2", b"plain"]


def test_one_record_holds_the_new_value_and_the_end_of_the_old(bench: Bench) -> None:
    """After a crash at any point there is exactly one value of the key."""
    bench.queue("q", last_value_key="_AMQ_LVQ_NAME")
    sender = bench.session()
    send(bench, sender, "a=0")
    bench.settle()
    made = bench.journal.last
    for n in range(1, 6):
        send(bench, sender, f"a={n}")
    records = list(bench.journal.records)
    assert len(records) == made + 5, "a replacement is no record of its own"
    for durable in range(made, made + 6):
        other = Bench()
        other.journal.records = list(records)
        other.journal.durable = durable
        other.restart()
        assert held(other.broker.queues["q"]) == [f"a={durable - made}".encode()]
        validate(other.broker)
        other.settle()
        other.restart()
        assert held(other.broker.queues["q"]) == [f"a={durable - made}".encode()]


def test_a_delivered_value_is_not_replaced_and_does_not_come_back_over_a_newer_one(bench: Bench) -> None:
    queue = bench.queue("q", last_value_key="_AMQ_LVQ_NAME")
    sender = bench.session()
    first = reader(bench)
    send(bench, sender, "a=1", "b=1")
    bench.settle()
    first.stop()
    send(bench, sender, "a=2")
    bench.settle()
    assert held(queue) == [b"a=1", b"b=1", b"a=2"]
    first.close(bench.now, True)
    bench.settle()
    assert held(queue) == [b"b=1", b"a=2"]
    validate(bench.broker)
    bench.restart()
    assert held(bench.broker.queues["q"]) == [b"b=1", b"a=2"]


def test_a_value_handed_out_while_its_replacement_is_being_written(bench: Bench) -> None:
    queue = bench.queue("q", last_value_key="_AMQ_LVQ_NAME")
    sender = bench.session()
    send(bench, sender, "a=1")
    bench.settle()
    send(bench, sender, "a=2")
    first = reader(bench)
    bench.broker.flush(bench.now)
    assert endpoint(first).bodies() == [b"a=1"]
    bench.settle()
    assert endpoint(first).bodies() == [b"a=1", b"a=2"]
    first.acknowledge(bench.now, 0, endpoint(first).message_ids[1], False, 0)
    bench.settle()
    assert queue.message_count == 0
    validate(bench.broker)
    bench.restart()
    assert held(bench.broker.queues["q"]) == []


def test_the_key_is_configurable_and_kept(bench: Bench) -> None:
    bench.queue("q", last_value_key="symbol")
    sender = bench.session()
    for body, symbol in (("1", "IBM"), ("2", "SAP"), ("3", "IBM"), ("4", 7), ("5", 7)):
        sender.send(bench.now, bench.message("q", body.encode(), symbol=symbol), 0)
    send(bench, sender, "IBM=6")  # carries the usual key instead
    bench.settle()
    assert held(bench.broker.queues["q"]) == [b"2", b"5", b"IBM=6"]
    bench.restart()
    queue = bench.broker.queues["q"]
    assert queue.spec.last_value_key == "symbol"
    bench.session().send(bench.now, bench.message("q", b"8", symbol="SAP"), 0)
    bench.settle()
    assert held(queue) == [b"5", b"IBM=6", b"8"]


def test_compaction_keeps_one_value(bench: Bench) -> None:
    bench.queue("q", last_value_key="_AMQ_LVQ_NAME")
    sender = bench.session()
    send(bench, sender, "a=1", "b=1")
    bench.settle()
    send(bench, sender, "a=2")
    bench.settle()
    bench.compact(bench.journal.last)
    bench.restart()
    assert held(bench.broker.queues["q"]) == [b"b=1", b"a=2"]


def test_values_in_a_transaction(bench: Bench) -> None:
    queue = bench.queue("q", last_value_key="_AMQ_LVQ_NAME")
    sender = bench.session(transacted=True)
    send(bench, sender, "a=1", "a=2", "b=1")
    sender.commit(bench.now, 1)
    bench.settle()
    assert held(queue) == [b"a=2", b"b=1"]
    send(bench, sender, "a=3")
    sender.rollback(bench.now, False, 2)
    bench.settle()
    assert held(queue) == [b"a=2", b"b=1"]
    validate(bench.broker)
    bench.restart()
    assert held(bench.broker.queues["q"]) == [b"a=2", b"b=1"]


# -- rings ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("durable", [True, False])
def test_a_ring_keeps_the_newest(bench: Bench, durable: bool) -> None:
    queue = bench.queue("q", ring_size=3)
    sender = bench.session()
    send(bench, sender, *[str(n) for n in range(10)], durable=durable)
    bench.settle()
    assert held(queue) == [b"7", b"8", b"9"]
    for n in range(10, 200):
        send(bench, sender, str(n), durable=durable)
        bench.settle()
    assert held(queue) == [b"197", b"198", b"199"]
    assert queue.special is not None and queue.special.replaced == 197
    validate(bench.broker)
    bench.restart()
    assert held(bench.broker.queues["q"]) == ([b"197", b"198", b"199"] if durable else [])


def test_delivered_messages_are_beside_the_ring(bench: Bench) -> None:
    queue = bench.queue("q", ring_size=2)
    sender = bench.session()
    first = reader(bench)
    send(bench, sender, "1", "2", "3")
    bench.settle()
    assert len(endpoint(first).bodies()) == 3, "all had come before the ring was cut"
    first.stop()
    send(bench, sender, "4", "5", "6")
    bench.settle()
    assert held(queue) == [b"1", b"2", b"3", b"5", b"6"]
    first.close(bench.now, True)
    bench.settle()
    assert held(queue) == [b"5", b"6"], "there is no room for what comes back"
    second = reader(bench)
    bench.settle()
    second.acknowledge(bench.now, 0, endpoint(second).message_ids[0], True, 0)
    second.close(bench.now, True)
    bench.settle()
    assert held(queue) == [b"6"]
    send(bench, sender, "7", "8")
    bench.settle()
    assert held(queue) == [b"7", b"8"]


@pytest.mark.parametrize("delay_ms", [0, 500])
def test_of_what_comes_back_a_ring_keeps_the_newest(bench: Bench, delay_ms: int) -> None:
    bench.settings.add("#", {"redelivery_delay_ms": delay_ms})
    queue = bench.queue("q", ring_size=3)
    session = bench.session(transacted=True)
    consume(session, bench, "q")
    sender = bench.session()
    for n in range(8):
        send(bench, sender, str(n))
        bench.settle()
    assert len(endpoint(session).bodies()) == 8
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[4], False, 0)
    session.stop()
    session.rollback(bench.now, False, 0)
    bench.now += SECOND
    bench.broker.on_timer(bench.now, "kernel.scheduled")
    bench.settle()
    assert held(queue) == [b"5", b"6", b"7"] and queue.message_count == 3
    validate(bench.broker)
    bench.restart()
    assert held(bench.broker.queues["q"]) == [b"5", b"6", b"7"]


def test_a_ring_of_another_size(bench: Bench) -> None:
    queue = bench.queue("q")
    sender = bench.session()
    send(bench, sender, "1", "2", "3", "4", "5")
    bench.settle()
    changes = QueueChanges()
    for size, left in ((4, [b"2", b"3", b"4", b"5"]), (2, [b"4", b"5"])):
        changes.ring_size = size
        bench.broker.queue_registry.update(bench.now, "q", changes)
        bench.settle()
        assert held(queue) == left
    bench.restart()
    queue = bench.broker.queues["q"]
    assert held(queue) == [b"4", b"5"]
    changes.ring_size = -1
    bench.broker.queue_registry.update(bench.now, "q", changes)
    send(bench, bench.session(), "6", "7")
    bench.settle()
    assert held(queue) == [b"4", b"5", b"6", b"7"]


# -- non-destructive ------------------------------------------------------------------------------
def test_every_consumer_of_a_non_destructive_queue_sees_every_message(bench: Bench) -> None:
    queue = bench.queue("q", non_destructive=True)
    sender = bench.session()
    send(bench, sender, "1", "2")
    bench.settle()
    first = reader(bench)
    bench.settle()
    first.acknowledge(bench.now, 0, endpoint(first).message_ids[-1], False, 7)
    send(bench, sender, "3")
    second = reader(bench)
    bench.settle()
    assert endpoint(first).answers == [7]
    assert endpoint(first).delivered == [(0, 1, b"1"), (0, 1, b"2"), (0, 1, b"3")]
    assert endpoint(second).delivered == endpoint(first).delivered
    second.close(bench.now, True)
    assert held(queue) == [b"1", b"2", b"3"]
    validate(bench.broker)
    bench.restart()
    third = reader(bench)
    bench.settle()
    assert len(endpoint(third).bodies()) == 3


def test_a_rollback_on_a_non_destructive_queue_shows_what_was_only_prefetched_again(bench: Bench) -> None:
    queue = bench.queue("q", non_destructive=True)
    send(bench, bench.session(), "1", "2", "3")
    session = bench.session(transacted=True)
    consume(session, bench, "q")
    other = reader(bench)
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], True, 0)
    session.rollback(bench.now, False, 1)
    bench.settle()
    assert endpoint(session).bodies() == [b"1", b"2", b"3", b"2", b"3"]
    assert endpoint(other).bodies() == [b"1", b"2", b"3"]
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 0)
    session.commit(bench.now, 2)
    assert queue.message_count == 3


def test_expiry_removes_from_a_non_destructive_queue(bench: Bench) -> None:
    queue = bench.queue("q", non_destructive=True)
    message = bench.message("q", b"old")
    message.expiration = bench.now // 1_000_000 + 10
    bench.session().send(bench.now, message, 0)
    bench.settle()
    first = reader(bench)
    bench.settle()
    assert endpoint(first).bodies() == [b"old"]
    bench.now += SECOND
    bench.broker.expiry.scan(bench.now)
    bench.settle()
    assert queue.message_count == 0


def test_non_destructive_last_values_are_a_table_that_readers_follow(bench: Bench) -> None:
    queue = bench.queue("q", non_destructive=True, last_value_key="_AMQ_LVQ_NAME")
    sender = bench.session()
    send(bench, sender, "a=1", "b=1")
    bench.settle()
    first = reader(bench)
    bench.settle()
    send(bench, sender, "a=2")
    bench.settle()
    late = reader(bench)
    bench.settle()
    assert endpoint(first).bodies() == [b"a=1", b"b=1", b"a=2"]
    assert endpoint(late).bodies() == [b"b=1", b"a=2"]
    first.acknowledge(bench.now, 0, endpoint(first).message_ids[-1], False, 0)
    assert held(queue) == [b"b=1", b"a=2"]


@pytest.mark.parametrize("keeps", [True, False], ids=["non-destructive", "destructive"])
@pytest.mark.parametrize("durable", [True, False])
def test_a_consumer_with_credit_sees_each_value_also_of_one_batch(bench: Bench, keeps: bool, durable: bool) -> None:
    """Artemis' delivery runs beside the senders: a subscriber of prices sees them all, if it keeps up."""
    queue = bench.queue("q", non_destructive=keeps, last_value_key="_AMQ_LVQ_NAME")
    sender = bench.session()
    follower = reader(bench)
    values = [f"{name}={n}" for n in range(20) for name in "ab"]
    send(bench, sender, *values, durable=durable)
    bench.settle()
    assert endpoint(follower).bodies() == [each.encode() for each in values]
    validate(bench.broker)
    if keeps:
        assert held(queue) == [b"a=19", b"b=19"]
        bench.restart()
        assert held(bench.broker.queues["q"]) == ([b"a=19", b"b=19"] if durable else [])


def test_a_consumer_without_credit_gets_the_newest_value_alone(bench: Bench) -> None:
    queue = bench.queue("q", non_destructive=True, last_value_key="_AMQ_LVQ_NAME")
    sender = bench.session()
    follower = reader(bench)
    follower.stop()
    send(bench, sender, "a=1", "a=2", "a=3")
    bench.settle()
    assert held(queue) == [b"a=3"]
    follower.start()
    bench.settle()
    assert endpoint(follower).bodies() == [b"a=3"]


# -- the gate -------------------------------------------------------------------------------------
def test_a_queue_waits_for_its_consumers(bench: Bench) -> None:
    bench.queue("q", consumers_before_dispatch=2)
    send(bench, bench.session(), "1", "2", "3", "4")
    first = reader(bench)
    bench.settle()
    assert endpoint(first).bodies() == []
    second = reader(bench)
    bench.settle()
    assert len(endpoint(first).bodies()) == len(endpoint(second).bodies()) == 2
    second.close(bench.now, False)
    bench.settle()
    assert len(endpoint(first).bodies()) == 4, "once open it stays open while one is there"
    first.close(bench.now, False)
    third = reader(bench)
    bench.settle()
    assert endpoint(third).bodies() == []


def test_a_queue_does_not_wait_longer_than_its_delay(bench: Bench) -> None:
    bench.queue("q", consumers_before_dispatch=2, delay_before_dispatch_ms=500)
    send(bench, bench.session(), "1")
    first = reader(bench)
    bench.settle()
    due = bench.timers.due["kernel.gate.q"]
    assert due == bench.now + SECOND // 2
    bench.now = due - 1
    bench.broker.dispatches.mark_dirty(bench.broker.queues["q"])
    bench.settle()
    assert endpoint(first).bodies() == []
    bench.now = due
    bench.broker.on_timer(bench.now, "kernel.gate.q")
    bench.settle()
    assert endpoint(first).bodies() == [b"1"]


# -- with what else there is -----------------------------------------------------------------------
@pytest.mark.parametrize(
    "attributes", [{"ring_size": 3}, {"last_value_key": "k"}, {"non_destructive": True}]
)
def test_a_log_view_of_such_a_queue_is_refused(bench: Bench, attributes: dict[str, object]) -> None:
    bench.queue("q", **attributes)  # type: ignore[arg-type]
    session = bench.session()
    with pytest.raises(BrokerError) as refused:
        bench.broker.log_views.lease(
            bench.now, "q", "spark", "me", SECOND, 0, endpoint(session), 1
        )
    assert refused.value.code == ILLEGAL_STATE and "queue q has no log view" in str(refused.value)


def test_what_a_redelivery_delay_held_back_has_its_place_in_the_ring(bench: Bench) -> None:
    bench.settings.add("#", {"redelivery_delay_ms": 500})
    queue = bench.queue("q", ring_size=1)
    send(bench, bench.session(), "1")
    bench.settle()
    session = bench.session(transacted=True)
    consume(session, bench, "q")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], True, 0)
    session.rollback(bench.now, False, 0)
    assert queue.scheduled_count == 1
    bench.now += SECOND
    bench.broker.on_timer(bench.now, "kernel.scheduled")
    bench.settle()
    assert endpoint(session).bodies() == [b"1", b"1"]
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[1], True, 0)
    session.rollback(bench.now, False, 0)
    session.stop()
    send(bench, bench.session(), "2")
    bench.settle()
    bench.now += SECOND
    bench.broker.on_timer(bench.now, "kernel.scheduled")
    bench.settle()
    assert held(queue) == [b"2"] and queue.message_count == 1


def test_a_branch_in_doubt_takes_nothing_from_a_non_destructive_queue(bench: Bench) -> None:
    bench.queue("q", non_destructive=True)
    send(bench, bench.session(), "1", "2")
    bench.settle()
    session = bench.session()
    session.xa = True
    xa_session.start(session, bench.now, b"xid")
    consume(session, bench, "q")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], True, 0)
    xa_session.end(session, bench.now, b"xid")
    xa_session.prepare(session, bench.now, b"xid", session.endpoint, 0)
    bench.settle()
    bench.restart()
    after = bench.session()
    after.xa = True
    for _ in range(2):
        late = reader(bench)
        bench.settle()
        assert endpoint(late).bodies() == [b"1", b"2"]
        if bench.broker.branches.prepared:
            xa_session.commit(after, bench.now, b"xid", False, after.endpoint, 0)
            bench.settle()
