"""A session keeps its promises when things go wrong half-way, and one request is bounded work."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.errors import (
    ADDRESS_DOES_NOT_EXIST,
    DUPLICATE_ID,
    BrokerError,
)
from atalanta.kernel.queue.consumers import configure
from atalanta.kernel.queue.delivery.dispatcher import DISPATCH_MAX
from atalanta.kernel.sessions.session import DRAIN_WAIT_NS
from tests.kernel.broker_rig import Bench, consume, endpoint


def test_a_commit_to_an_address_that_is_gone_rolls_everything_back(bench: Bench) -> None:
    bench.queue("in")
    bench.queue("out")
    bench.session().send(bench.now, bench.message("in", b"work"), 1)
    session = bench.session(transacted=True)
    consume(session, bench, "in")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], False, 2)
    session.send(bench.now, bench.message("out", b"result"), 3)
    bench.broker.queue_registry.delete(bench.now, "out", "deleted")
    with pytest.raises(BrokerError) as refused:
        session.commit(bench.now, 4)
    assert refused.value.code == ADDRESS_DOES_NOT_EXIST
    bench.settle()
    assert endpoint(session).delivered == [(0, 1, b"work"), (0, 2, b"work")]
    assert session.transaction.empty()


def test_a_refusal_as_duplicate_waits_until_the_first_copy_is_durable(bench: Bench) -> None:
    """The sender takes "duplicate" for "done": it must not hear that before it is true."""
    bench.queue("out")
    bench.settle()
    first = bench.session(transacted=True)
    first.send(bench.now, bench.message("out", b"a", _AMQ_DUPL_ID="x"), 1)
    first.commit(bench.now, 2)
    other = bench.session(transacted=True)
    other.send(bench.now, bench.message("out", b"a", _AMQ_DUPL_ID="x"), 4)
    other.commit(bench.now, 5)
    assert endpoint(other).errors == []
    bench.settle()
    assert endpoint(first).answers == [1, 2]
    assert endpoint(other).errors == [(5, DUPLICATE_ID)]
    assert bench.broker.queues["out"].message_count == 1


def test_a_client_that_keeps_failing_on_a_message_gets_rid_of_it_in_the_end(bench: Bench) -> None:
    bench.settings.add("in", {"max_delivery_attempts": 2, "dead_letter_address": "DLA"})
    bench.queue("in")
    dead = bench.queue("dead", "DLA")
    bench.session().send(bench.now, bench.message("in", b"poison"), 1)
    for attempt in (1, 2):
        session = bench.session()
        consume(session, bench, "in")
        bench.settle()
        assert endpoint(session).delivered == [(0, attempt, b"poison")]
        session.client.close(bench.now, bench.broker.session_services, True)
        bench.settle()
        if attempt == 1:
            bench.restart()
            dead = bench.broker.queues["dead"]
    assert dead.message_count == 1
    assert bench.broker.queues["in"].message_count == 0


def test_a_forced_delivery_also_moves_the_expired_messages_it_met(bench: Bench) -> None:
    bench.settings.add("in", {"expiry_address": "expired"})
    bench.queue("in")
    expired = bench.queue("expired")
    session = bench.session()
    consume(session, bench, "in")
    bench.settle()
    message = bench.message("in", b"old")
    message.expiration = bench.now // 1_000_000 + 10
    session.consumers[0].started = False
    session.send(bench.now, message, 1)
    bench.settle()
    bench.now += 20_000_000
    session.consumers[0].started = True
    session.drain(bench.now, 0, 7)
    bench.settle()
    assert endpoint(session).drained_tokens == [7]
    assert endpoint(session).bodies() == []
    assert expired.message_count == 1


def test_a_forced_delivery_hands_out_a_bounded_number_of_messages_at_once(bench: Bench) -> None:
    bench.queue("in")
    session = bench.session()
    consume(session, bench, "in", credits=0)
    for _ in range(2 * DISPATCH_MAX + 10):
        session.send(bench.now, bench.message("in", b"x", durable=False), 1)
    bench.settle()
    session.add_credits(0, -1)
    session.drain(bench.now, 0, 7)
    assert len(endpoint(session).delivered) <= DISPATCH_MAX
    assert endpoint(session).drained_tokens == []
    bench.settle()
    assert len(endpoint(session).delivered) == 2 * DISPATCH_MAX + 10
    assert endpoint(session).drained_tokens == [7]


@pytest.mark.parametrize("browse", [True, False])
def test_a_drain_that_overtakes_the_credits_waits_for_them(bench: Bench, browse: bool) -> None:
    """A JMS client sends its credits from another thread than its drain (ClientConsumerImpl.sendCredits)."""
    bench.queue("in")
    session = bench.session()
    for number in range(5):
        session.send(bench.now, bench.message("in", b"%d" % number), 1)
    bench.settle()
    window = 2 * next(iter(bench.broker.queues["in"].references)).size
    consume(session, bench, "in", credits=window, browse=browse)
    bench.settle()
    for token, count in [(7, 2), (8, 4), (9, 5)]:
        assert len(endpoint(session).delivered) == count
        session.drain(bench.now, 0, token)
        bench.settle()
        if count < 5:
            assert endpoint(session).drained_tokens == []
            session.add_credits(0, window)
            bench.settle()
    assert endpoint(session).bodies() == [b"0", b"1", b"2", b"3", b"4"]
    assert endpoint(session).drained_tokens == [7, 8, 9]


def test_a_drain_without_credits_is_answered_after_a_second(bench: Bench) -> None:
    bench.queue("in")
    session = bench.session()
    consume(session, bench, "in", credits=2)
    for _ in range(2):
        session.send(bench.now, bench.message("in", b"x"), 1)
    bench.settle()
    session.drain(bench.now, 0, 7)
    bench.settle()
    assert endpoint(session).drained_tokens == []
    bench.now += DRAIN_WAIT_NS
    bench.broker.on_timer(bench.now, "kernel.drain.in")
    bench.settle()
    assert endpoint(session).drained_tokens == [7]


def test_a_message_that_expired_on_its_way_goes_to_the_expiry_address(bench: Bench) -> None:
    bench.settings.add("in", {"expiry_address": "expired"})
    bench.queue("in")
    expired = bench.queue("expired")
    session = bench.session()
    consume(session, bench, "in")
    message = bench.message("in", b"late")
    message.expiration = bench.now // 1_000_000 - 5
    session.send(bench.now, message, 1)
    bench.settle()
    assert endpoint(session).bodies() == []
    assert expired.message_count == 1


def test_a_queue_that_purges_loses_its_messages_with_its_last_consumer(bench: Bench) -> None:
    queue = bench.queue("news", "news", 0)
    queue.spec.purge_on_no_consumers = True
    configure(queue)
    session = bench.session()
    session.send(bench.now, bench.message("news", b"unheard"), 1)
    bench.settle()
    assert queue.message_count == 0
    consume(session, bench, "news", credits=0)
    session.send(bench.now, bench.message("news", b"a"), 2)
    session.send(bench.now, bench.message("news", b"b"), 3)
    bench.settle()
    assert queue.message_count == 2
    session.close_consumer(bench.now, 0)
    bench.settle()
    assert queue.message_count == 0
    validate(bench.broker)
    bench.restart()
    assert bench.broker.queues["news"].message_count == 0


def test_a_rollback_brings_nothing_back_to_a_queue_that_purges(bench: Bench) -> None:
    queue = bench.queue("news", "news", 0)
    queue.spec.purge_on_no_consumers = True
    configure(queue)
    session = bench.session(transacted=True)
    consume(session, bench, "news")
    bench.session().send(bench.now, bench.message("news", b"a"), 1)
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], False, 2)
    session.close_consumer(bench.now, 0)
    assert queue.message_count == 1
    session.rollback(bench.now, False, 3)
    bench.settle()
    assert queue.message_count == 0


def test_consumers_of_a_higher_priority_come_first(bench: Bench) -> None:
    bench.queue("in")
    session = bench.session()
    for consumer_id, priority in ((1, 0), (2, 5), (3, 5)):
        session.create_consumer(bench.now, consumer_id, "in", None, False, priority)
        session.add_credits(consumer_id, -1)
    session.consumers[2].unlimited = False
    session.consumers[2].credits = 1
    session.consumers[3].unlimited = False
    session.consumers[3].credits = 1
    for number in range(4):
        session.send(bench.now, bench.message("in", bytes([number])), number)
    bench.settle()
    assert sorted(consumer for consumer, _, _ in endpoint(session).delivered[:2]) == [2, 3]
    assert [consumer for consumer, _, _ in endpoint(session).delivered[2:]] == [1, 1]
