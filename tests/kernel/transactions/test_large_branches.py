"""Distributed transactions whose prepare and commit go in steps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.errors import DUPLICATE_ID
from atalanta.kernel.queue.delivery.scheduled_messages import SCHEDULED_TIMER
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.transactions import xa, xa_session
from atalanta.kernel.transactions.xa_session import XA_HEURRB, XAER_NOTA
from atalanta.message.encoding.buffer import Writer
from tests.kernel.broker_rig import SECOND, Bench, consume, endpoint
from tests.kernel.transactions.large_commits import (
    COUNT,
    answers,
    bodies,
    fill,
    request,
    small_steps,
)


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A broker whose steps are small, and whose invariants hold when the test ends."""
    made = small_steps()
    yield made
    validate(made.broker)


def xid_of(name: bytes) -> bytes:
    writer = Writer()
    writer.int32(1)
    writer.blob(name)
    writer.blob(b"global")
    return writer.getvalue()


XID = xid_of(b"branch")


def xa_client(bench: Bench) -> Session:
    """A session that may work in branches."""
    session = bench.session()
    session.xa = True
    return session


def working(bench: Bench, *addresses: str) -> tuple[Session, list[bytes]]:
    """A session whose branch has many messages, and is ended."""
    session = xa_client(bench)
    xa_session.start(session, bench.now, XID)
    sent = fill(bench, session, *addresses)
    xa_session.end(session, bench.now, XID)
    return session, sent


def begin_prepare(bench: Bench, session: Session, token: int = 5) -> None:
    request(
        bench, session, token, lambda now: xa_session.prepare(session, now, XID, session.endpoint, token)
    )


def begin_commit(bench: Bench, session: Session, token: int = 6, one_phase: bool = False) -> None:
    request(
        bench, session, token,
        lambda now: xa_session.commit(session, now, XID, one_phase, session.endpoint, token),
    )  # fmt: skip


def test_prepare_and_commit_go_in_steps_and_nothing_is_visible_before_the_last(bench: Bench) -> None:
    queues = [bench.queue("a"), bench.queue("b")]
    session, sent = working(bench, "a", "b")
    records = len(bench.journal.records)
    for token, begin in ((5, begin_prepare), (6, begin_commit)):
        begin(bench, session, token)
        steps = 1
        while session.waits():
            assert len(bench.journal.records) == records
            assert [queue.message_count for queue in queues] == [0, 0]
            bench.step()
            steps += 1
        assert steps > 1
        records += 1
        assert len(bench.journal.records) == records
        bench.settle()
        assert answers(session, token) == 1
        validate(bench.broker)
    assert (bodies(bench, "a"), bodies(bench, "b")) == (sent[0::2], sent[1::2])
    bench.restart()
    assert (bodies(bench, "a"), bodies(bench, "b")) == (sent[0::2], sent[1::2])
    assert not bench.broker.branches.by_xid


def test_a_crash_at_any_step_of_the_prepare_leaves_no_branch_and_of_the_commit_leaves_it_in_doubt(bench: Bench) -> None:
    bench.queue("a")
    bench.settle()
    session, sent = working(bench, "a")
    begin_prepare(bench, session)
    bench.step()
    bench.restart()
    assert not bench.broker.branches.by_xid and not bodies(bench, "a")
    session, sent = working(bench, "a")
    begin_prepare(bench, session)
    bench.settle()
    steps = 0
    while True:
        bench.restart()
        session = xa_client(bench)
        assert xa_session.in_doubt(session) == [XID] and not bodies(bench, "a")
        begin_commit(bench, session)
        for _ in range(steps):
            bench.step()
        steps += 1
        if not session.waits():
            break
    assert steps > 1
    bench.restart()  # the record of the commit was not durable
    assert xa_session.in_doubt(xa_client(bench)) == [XID] and not bodies(bench, "a")
    begin_commit(bench, xa_client(bench))
    bench.settle()
    bench.restart()
    assert not bench.broker.branches.by_xid
    assert bodies(bench, "a") == sent


def test_a_commit_in_one_phase_goes_in_steps(bench: Bench) -> None:
    bench.queue("a")
    session, sent = working(bench, "a")
    begin_commit(bench, session, one_phase=True)
    assert session.waits() and not bodies(bench, "a")
    bench.settle()
    assert bodies(bench, "a") == sent and answers(session, 6) == 1


def test_the_branch_takes_what_another_session_sends_meanwhile(bench: Bench) -> None:
    bench.queue("a")
    session, sent = working(bench, "a")
    begin_prepare(bench, session)
    while session.services.branches.by_xid[XID].transaction.prepared is None:
        bench.step()
    other = xa_client(bench)
    xa_session.join(other, XID)
    other.send(bench.now, bench.message("a", b"late"), 1)
    xa_session.end(other, bench.now, XID)
    bench.settle()
    begin_commit(bench, other)
    bench.settle()
    assert bodies(bench, "a") == [*sent, b"late"]


def test_a_branch_that_times_out_in_the_middle_of_its_prepare_is_rolled_back(bench: Bench) -> None:
    bench.queue("a")
    session, _ = working(bench, "a")
    begin_prepare(bench, session)
    bench.step()
    bench.now += 3_600 * SECOND
    bench.broker.on_timer(bench.now, xa.XA_TIMER)
    bench.settle()
    assert [code for _, code in endpoint(session).errors] == [XAER_NOTA]
    assert not session.waits() and not bodies(bench, "a")
    validate(bench.broker)


def test_only_one_of_two_clients_commits_a_prepared_branch(bench: Bench) -> None:
    bench.queue("a")
    session, sent = working(bench, "a")
    begin_prepare(bench, session)
    bench.settle()
    other = xa_client(bench)
    begin_commit(bench, session)
    begin_commit(bench, other)
    bench.settle()
    outcomes = sorted(
        [*(["done"] * answers(each, 6)), *(str(code) for _, code in endpoint(each).errors)] for each in (session, other)
    )
    assert outcomes == [[str(XAER_NOTA)], ["done"]]
    assert bodies(bench, "a") == sent


def test_an_operator_ends_a_branch_in_the_middle_of_its_commit(bench: Bench) -> None:
    bench.queue("a")
    session, _ = working(bench, "a")
    begin_prepare(bench, session)
    bench.settle()
    begin_commit(bench, session)
    assert bench.broker.branches.end_by_operator(bench.now, xa.identifier(XID), False)
    bench.settle()
    assert [code for _, code in endpoint(session).errors] == [XA_HEURRB]
    assert not bodies(bench, "a")
    validate(bench.broker)


def test_a_message_that_arrives_elsewhere_in_the_middle_of_the_commit_is_not_sent_twice(bench: Bench) -> None:
    bench.queue("a")
    session = xa_client(bench)
    xa_session.start(session, bench.now, XID)
    sent = fill(bench, session, "a")
    session.send(bench.now, bench.message("a", b"mine", _AMQ_DUPL_ID="x"), 1)
    xa_session.end(session, bench.now, XID)
    begin_prepare(bench, session)
    bench.settle()
    begin_commit(bench, session)
    bench.session().send(bench.now, bench.message("a", b"other", _AMQ_DUPL_ID="x"), 7)
    bench.settle()
    assert bodies(bench, "a") == [b"other", *sent]
    validate(bench.broker)


def test_a_duplicate_id_that_arrives_in_the_middle_of_the_prepare_rolls_back(bench: Bench) -> None:
    bench.queue("in")
    bench.queue("a")
    bench.session().send(bench.now, bench.message("in", b"work"), 1)
    session = xa_client(bench)
    consume(session, bench, "in")
    bench.settle()
    xa_session.start(session, bench.now, XID)
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], False, 2)
    fill(bench, session, "a")
    session.send(bench.now, bench.message("a", b"mine", _AMQ_DUPL_ID="x"), 1)
    xa_session.end(session, bench.now, XID)
    begin_prepare(bench, session)
    bench.session().send(bench.now, bench.message("a", b"other", _AMQ_DUPL_ID="x"), 7)
    bench.settle()
    assert [code for _, code in endpoint(session).errors] == [DUPLICATE_ID]
    assert bodies(bench, "a") == [b"other"]
    assert endpoint(session).bodies() == [b"work", b"work"]
    assert COUNT > len(bodies(bench, "a"))


def test_a_prepared_branch_holds_what_it_took_although_the_clock_was_set_back(bench: Bench) -> None:
    """The message had waited for its redelivery. By the clock of the next life that time is to come once more."""
    bench.settings.add("a", {"redelivery_delay_ms": 1_000})
    bench.queue("a")
    bench.session().send(bench.now, bench.message("a", b"once"), 1)
    bench.settle()
    first = bench.session(transacted=True)
    consume(first, bench, "a")
    bench.settle()
    first.acknowledge(bench.now, 0, endpoint(first).message_ids[-1], False, 2)
    first.rollback(bench.now, False, 3)
    first.close(bench.now, False)
    bench.now += 2 * SECOND
    bench.broker.on_timer(bench.now, SCHEDULED_TIMER)
    session = xa_client(bench)
    consume(session, bench, "a")
    bench.settle()
    assert endpoint(session).bodies() == [b"once"]
    xa_session.start(session, bench.now, XID)
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 4)
    xa_session.end(session, bench.now, XID)
    begin_prepare(bench, session)
    bench.settle()
    bench.now -= 60 * SECOND
    bench.restart()
    validate(bench.broker)
    manager = xa_client(bench)
    begin_commit(bench, manager)
    bench.settle()
    bench.now += 120 * SECOND
    bench.broker.on_timer(bench.now, SCHEDULED_TIMER)
    reader = bench.session()
    consume(reader, bench, "a")
    bench.settle()
    assert endpoint(reader).bodies() == []
    assert bench.broker.queues["a"].message_count == 0
