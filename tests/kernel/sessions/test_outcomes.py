"""The outcomes of single deliveries, and several transactions in one session."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.kernel.transactions.owner import TRANSACTIONS_MAX
from tests.kernel.broker_rig import Bench, consume, endpoint


def delivered(bodies: list[bytes], dead: str | None = None) -> tuple[Bench, Session]:
    """A session that holds these messages of queue "in", none acknowledged."""
    settings = AddressSettingsRepository()
    if dead is not None:
        settings.add("in", {"dead_letter_address": dead})
    bench = Bench(None, settings)
    bench.queue("in")
    bench.queue("out")
    sender = bench.session()
    for body in bodies:
        sender.send(bench.now, bench.message("in", body), 1)
    session = bench.session()
    consume(session, bench, "in")
    bench.settle()
    assert endpoint(session).bodies() == bodies
    return bench, session


def count(bench: Bench, queue: str) -> int:
    return bench.broker.queues[queue].message_count


# -- outcomes -----------------------------------------------------------------------------------
def test_accepted_messages_are_gone_one_by_one_and_for_good() -> None:
    bench, session = delivered([b"1", b"2", b"3"])
    ids = endpoint(session).message_ids
    session.acknowledge(bench.now, 0, ids[1], True, 7)
    bench.settle()
    assert endpoint(session).answers == [7]
    assert count(bench, "in") == 2
    bench.restart()
    assert count(bench, "in") == 2
    validate(bench.broker)


def test_a_released_message_comes_again_as_a_further_attempt() -> None:
    bench, session = delivered([b"1", b"2"])
    session.settle(bench.now, 0, endpoint(session).message_ids[0], False, -1, 7)
    bench.settle()
    assert endpoint(session).answers == [7]
    assert endpoint(session).delivered == [(0, 1, b"1"), (0, 1, b"2"), (0, 2, b"1")]
    validate(bench.broker)


def test_the_tenth_release_makes_a_dead_letter() -> None:
    bench, session = delivered([b"1"], "out")
    for _ in range(10):
        session.settle(bench.now, 0, endpoint(session).message_ids[-1], False, -1, 7)
        bench.settle()
    assert endpoint(session).delivered == [(0, attempt, b"1") for attempt in range(1, 11)]
    assert (count(bench, "in"), count(bench, "out")) == (0, 1)


def test_a_rejected_message_is_a_dead_letter_at_once_and_stays_one() -> None:
    bench, session = delivered([b"1", b"2"], "out")
    session.settle(bench.now, 0, endpoint(session).message_ids[0], True, -1, 7)
    assert endpoint(session).answers == []  # not before it is durable
    bench.settle()
    assert endpoint(session).answers == [7]
    assert (count(bench, "in"), count(bench, "out")) == (1, 1)
    bench.restart()
    assert (count(bench, "in"), count(bench, "out")) == (1, 1)
    other = bench.session()
    consume(other, bench, "out")
    bench.settle()
    assert endpoint(other).bodies() == [b"1"]
    validate(bench.broker)


def test_a_rejected_message_without_a_dead_letter_address_is_dropped() -> None:
    bench, session = delivered([b"1"])
    session.settle(bench.now, 0, endpoint(session).message_ids[0], True, -1, 7)
    bench.settle()
    assert count(bench, "in") == 0
    assert "message_dead_lettered" in [name for name, _ in bench.trace.events]
    validate(bench.broker)


def test_a_released_message_of_a_non_destructive_queue_is_shown_again(bench: Bench) -> None:
    bench.queue("in", non_destructive=True)
    session = bench.session()
    session.send(bench.now, bench.message("in", b"1"), 1)
    consume(session, bench, "in")
    bench.settle()
    session.settle(bench.now, 0, endpoint(session).message_ids[0], False, -1, 7)
    bench.settle()
    assert endpoint(session).bodies() == [b"1", b"1"]
    assert count(bench, "in") == 1


@pytest.mark.parametrize("reject", [False, True])
def test_an_outcome_for_a_message_that_is_not_delivered_is_an_error(reject: bool) -> None:
    bench, session = delivered([b"1"])
    with pytest.raises(BrokerError) as refused:
        session.settle(bench.now, 0, 4711, reject, -1, 7)
    assert refused.value.code == ILLEGAL_STATE
    assert count(bench, "in") == 1


# -- several transactions -----------------------------------------------------------------------
def test_two_transactions_of_one_session_end_each_for_itself() -> None:
    bench, session = delivered([b"1", b"2", b"3"])
    ids = endpoint(session).message_ids
    first, second = session.declare(), session.declare()
    session.use(first)
    session.send(bench.now, bench.message("out", b"of the first"), 1)
    session.acknowledge(bench.now, 0, ids[0], True, 2)
    session.use(second)
    session.send(bench.now, bench.message("out", b"of the second"), 3)
    session.acknowledge(bench.now, 0, ids[1], True, 4)
    session.use(None)
    session.send(bench.now, bench.message("out", b"of none"), 5)
    bench.settle()
    assert count(bench, "out") == 1
    session.discharge(bench.now, first, True, 6)
    bench.settle()
    assert (count(bench, "in"), count(bench, "out")) == (2, 2)
    session.discharge(bench.now, second, False, 7)
    bench.settle()
    # The second comes again; the third stays delivered.
    assert endpoint(session).delivered[3:] == [(0, 2, b"2")]
    assert (count(bench, "in"), count(bench, "out")) == (2, 2)
    bench.restart()
    assert (count(bench, "in"), count(bench, "out")) == (2, 2)
    validate(bench.broker)


def test_the_end_of_the_current_transaction_leaves_the_session_without_one() -> None:
    bench, session = delivered([])
    transaction = session.declare()
    session.use(transaction)
    session.send(bench.now, bench.message("out", b"1"), 1)
    session.discharge(bench.now, transaction, True, 2)
    session.send(bench.now, bench.message("out", b"2"), 3)
    bench.settle()
    assert count(bench, "out") == 2
    with pytest.raises(BrokerError, match="no such transaction"):
        session.use(transaction)
    with pytest.raises(BrokerError, match="no such transaction"):
        session.discharge(bench.now, transaction, True, 4)


def test_a_refused_commit_rolls_its_transaction_back_and_no_other() -> None:
    bench, session = delivered([b"1", b"2"])
    ids = endpoint(session).message_ids
    good, bad = session.declare(), session.declare()
    session.use(good)
    session.acknowledge(bench.now, 0, ids[0], True, 1)
    session.use(bad)
    session.acknowledge(bench.now, 0, ids[1], True, 2)
    with pytest.raises(BrokerError):
        session.acknowledge(bench.now, 0, 4711, True, 3)
    with pytest.raises(BrokerError):
        session.discharge(bench.now, bad, True, 4)
    bench.settle()
    assert endpoint(session).delivered[2:] == [(0, 2, b"2")]
    session.discharge(bench.now, good, True, 5)
    bench.settle()
    assert count(bench, "in") == 1
    validate(bench.broker)


@pytest.mark.parametrize("failed", [True, False])
def test_the_end_of_a_session_rolls_all_its_transactions_back(failed: bool) -> None:
    bench, session = delivered([b"1", b"2", b"3"])
    for message_id in endpoint(session).message_ids[:2]:
        session.use(session.declare())
        session.send(bench.now, bench.message("out", b"x"), 1)
        session.acknowledge(bench.now, 0, message_id, True, 2)
    session.close(bench.now, failed)
    bench.settle()
    other = bench.session()
    consume(other, bench, "in")
    bench.settle()
    assert sorted(endpoint(other).bodies()) == [b"1", b"2", b"3"]
    assert count(bench, "out") == 0
    validate(bench.broker)


def test_the_number_of_open_transactions_is_limited() -> None:
    _, session = delivered([])
    for _ in range(TRANSACTIONS_MAX):
        session.declare()
    with pytest.raises(BrokerError) as refused:
        session.declare()
    assert refused.value.code == ILLEGAL_STATE


# -- senders ------------------------------------------------------------------------------------
def test_a_sender_without_credits_of_its_own_hears_when_it_has_to_wait() -> None:
    settings = AddressSettingsRepository()
    settings.add("#", {"address_full_policy": "BLOCK", "max_size_messages": 1})
    bench = Bench(None, settings)
    bench.queue("in")
    session = bench.session()
    session.request_credits("in", 100)
    assert endpoint(session).blocks == []
    session.send(bench.now, bench.message("in", b"1"), 1)
    bench.settle()
    session.request_credits("in", 100)
    assert endpoint(session).blocks == [("in", True)]
    consume(session, bench, "in")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], True, 2)
    bench.settle()
    assert endpoint(session).blocks == [("in", True), ("in", False)]
    assert [address for address, _ in endpoint(session).granted] == ["in", "in"]
