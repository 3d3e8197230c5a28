"""Commits that go in steps: others are served in between, and nobody sees a part of a transaction."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.errors import DUPLICATE_ID, ILLEGAL_STATE
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.message.message import Message
from tests.kernel.broker_rig import Bench, consume, endpoint
from tests.kernel.transactions.large_commits import (
    COUNT,
    STEP_WORK,
    answers,
    begin_commit,
    bodies,
    fill,
    small_steps,
)


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A broker whose steps are small, and whose invariants hold when the test ends."""
    made = small_steps()
    yield made
    validate(made.broker)


def test_nothing_is_visible_before_the_last_step_and_all_is_in_one_record(bench: Bench) -> None:
    queues = [bench.queue("a"), bench.queue("b")]
    reader = bench.session()
    consume(reader, bench, "a")
    session = bench.session(transacted=True)
    sent = fill(bench, session, "a", "b")
    bench.settle()
    records = len(bench.journal.records)
    used = bench.broker.memory.used_bytes
    begin_commit(bench, session)
    steps = 1
    while session.waits():
        validate(bench.broker)
        assert len(bench.journal.records) == records
        assert bench.broker.memory.used_bytes == used
        assert [(queue.message_count, queue.pending, queue.next_sequence) for queue in queues] == [(0, 0, 1)] * 2
        assert bench.step()
        steps += 1
    assert steps > 2 * COUNT // STEP_WORK
    assert len(bench.journal.records) == records + 1
    validate(bench.broker)
    assert not answers(session, 4)
    bench.settle()
    assert answers(session, 4) == 1
    assert endpoint(reader).bodies() == sent[0::2]
    assert bodies(bench, "b") == sent[1::2]
    validate(bench.broker)
    bench.restart()
    assert bodies(bench, "a") == sent[0::2]
    assert bodies(bench, "b") == sent[1::2]
    validate(bench.broker)


def test_a_step_prepares_and_enqueues_a_bounded_number_of_messages(bench: Bench) -> None:
    queue = bench.queue("a")
    session = bench.session(transacted=True)
    fill(bench, session, "a")
    transaction = session.transaction
    begin_commit(bench, session)
    prepared = drafted = 0
    while session.waits():
        assert transaction.preparation is not None
        assert transaction.preparation.work - prepared <= STEP_WORK + 2
        prepared = transaction.preparation.work
        found = 0 if transaction.draft is None else len(transaction.draft.drafted)
        assert found - drafted <= STEP_WORK // 2 + 1
        drafted = found
        bench.step()
    bench.journal.durable = bench.journal.last
    bench.broker.on_durable(bench.now, bench.journal.last)
    entered = [queue.message_count]
    while queue.message_count < COUNT:
        bench.broker.flush(bench.now)
        entered.append(queue.message_count)
    assert max(after - before for before, after in zip([0, *entered], entered, strict=False)) <= STEP_WORK // 4 + 1


@pytest.mark.parametrize("durable", [True, False])
def test_what_others_send_meanwhile_keeps_its_place(bench: Bench, durable: bool) -> None:
    """Before the append it is in front of the transaction, and behind it afterwards; also while that enters."""
    bench.queue("a")
    session = bench.session(transacted=True)
    sent = fill(bench, session, "a", durable=durable)
    other = bench.session()
    begin_commit(bench, session)
    other.send(bench.now, bench.message("a", b"during"), 7)
    while session.waits():
        bench.step()
    other.send(bench.now, bench.message("a", b"after"), 8)
    other.send(bench.now, bench.message("a", b"after too", False), 9)
    bench.journal.durable = bench.journal.last
    bench.broker.on_durable(bench.now, bench.journal.last)
    other.send(bench.now, bench.message("a", b"while it enters", False), 10)
    bench.settle()
    expected = [b"during", *sent, b"after", b"after too", b"while it enters"]
    assert bodies(bench, "a") == expected
    assert [answers(other, token) for token in (7, 8, 9, 10)] == [1, 1, 1, 1]
    assert answers(session, 4) == 1
    validate(bench.broker)
    bench.restart()
    assert bodies(bench, "a") == [b"during", *(sent if durable else []), b"after"]


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_drain_is_answered_behind_a_transaction_that_enters(bench: Bench, durable: bool, turns: int) -> None:
    """A receive that does not wait finds what was committed before it."""
    bench.queue("a")
    session = bench.session(transacted=True)
    sent = fill(bench, session, "a", durable=durable)
    reader = bench.session()
    consume(reader, bench, "a")
    begin_commit(bench, session)
    while session.waits():
        bench.step()
    bench.journal.durable = bench.journal.last
    bench.broker.on_durable(bench.now, bench.journal.last)
    for _ in range(turns):
        bench.broker.flush(bench.now)
    reader.drain(bench.now, 0, 7)
    for _ in range(COUNT):
        assert endpoint(reader).drained_tokens == [] or endpoint(reader).bodies() == sent
        bench.broker.flush(bench.now)
    assert endpoint(reader).drained_tokens == [7]


@pytest.mark.parametrize("awaited", [True, False])
def test_a_drain_of_a_queue_that_a_prepared_branch_holds_is_answered(bench: Bench, awaited: bool) -> None:
    """Nobody knows when the branch is decided. `awaited`: something else is not durable yet."""
    queue = bench.queue("a")
    queue.count_pending(1)
    reader = bench.session()
    consume(reader, bench, "a")
    bench.settle()
    if awaited:
        bench.session().send(bench.now, bench.message("a", b"x"), 1)
    reader.drain(bench.now, 0, 7)
    bench.broker.flush(bench.now)
    assert endpoint(reader).drained_tokens == ([] if awaited else [7])
    bench.settle()
    assert endpoint(reader).drained_tokens == [7] and len(endpoint(reader).delivered) == int(awaited)
    queue.count_pending(-1)


def test_a_crash_at_any_step_keeps_all_of_a_transaction_or_nothing(bench: Bench) -> None:
    """`begin` brings the broker to the moment of the crash."""

    def committing() -> tuple[Bench, Session]:
        fresh = small_steps()
        fresh.queue("in")
        fresh.queue("out")
        fresh.session().send(fresh.now, fresh.message("in", b"work"), 1)
        session = fresh.session(transacted=True)
        consume(session, fresh, "in")
        fresh.settle()
        session.acknowledge(fresh.now, 0, endpoint(session).message_ids[0], False, 2)
        fill(fresh, session, "out")
        begin_commit(fresh, session)
        return fresh, session

    steps = 0
    complete = False
    while not complete:
        fresh, session = committing()
        for _ in range(steps):
            fresh.step()
        complete = not session.waits()
        fresh.restart()
        assert (bodies(fresh, "in"), bodies(fresh, "out")) == ([b"work"], []), steps
        steps += 1
    fresh, session = committing()
    while fresh.step():
        pass
    fresh.journal.durable = fresh.journal.last
    fresh.broker.on_durable(fresh.now, fresh.journal.last)  # a part of it has entered
    assert 0 < fresh.broker.queues["out"].message_count < COUNT
    fresh.restart()
    assert (len(bodies(fresh, "in")), len(bodies(fresh, "out"))) == (0, COUNT)


def test_a_duplicate_id_that_arrives_meanwhile_refuses_all_of_it(bench: Bench) -> None:
    bench.queue("a")
    session = bench.session(transacted=True)
    fill(bench, session, "a")
    session.send(bench.now, bench.message("a", b"mine", _AMQ_DUPL_ID="x"), 1)
    begin_commit(bench, session)
    while session.transaction.draft is None or len(session.transaction.draft.drafted) < COUNT // 2:
        bench.step()
    bench.session().send(bench.now, bench.message("a", b"other", _AMQ_DUPL_ID="x"), 7)
    bench.settle()
    assert endpoint(session).errors == [(4, DUPLICATE_ID)]
    assert bodies(bench, "a") == [b"other"]
    validate(bench.broker)


def test_ids_of_a_large_commit_are_known_from_its_append_on(bench: Bench) -> None:
    bench.queue("a")
    session = bench.session(transacted=True)
    fill(bench, session, "a")
    session.send(bench.now, bench.message("a", b"mine", _AMQ_DUPL_ID="x"), 1)
    begin_commit(bench, session)
    while session.waits():
        bench.step()
    bench.session().send(bench.now, bench.message("a", b"repeat", _AMQ_DUPL_ID="x"), 7)
    bench.settle()
    assert len(bodies(bench, "a")) == COUNT + 1
    bench.restart()
    bench.session().send(bench.now, bench.message("a", b"repeat", _AMQ_DUPL_ID="x"), 7)
    bench.settle()
    assert len(bodies(bench, "a")) == COUNT + 1


def test_a_queue_that_appears_meanwhile_gets_all_of_it(bench: Bench) -> None:
    bench.queue("first", "topic", MULTICAST)
    session = bench.session(transacted=True)
    sent = fill(bench, session, "topic")
    begin_commit(bench, session)
    bench.queue("second", "topic", MULTICAST)
    bench.settle()
    assert bodies(bench, "first") == bodies(bench, "second") == sent


def test_a_queue_that_is_replaced_meanwhile_gets_all_of_it(bench: Bench) -> None:
    """A client deletes a queue and creates it again, while the messages for it are encoded."""
    bench.queue("a")
    bench.queue("b")
    session = bench.session(transacted=True)
    sent = fill(bench, session, "a", "b")
    begin_commit(bench, session)
    while session.transaction.draft is None:
        bench.step()
    other = bench.session()
    other.delete_queue(bench.now, "a")
    bench.queue("a")
    bench.settle()
    assert (bodies(bench, "a"), bodies(bench, "b")) == (sent[0::2], sent[1::2])
    bench.restart()
    assert (bodies(bench, "a"), bodies(bench, "b")) == (sent[0::2], sent[1::2])


def test_a_queue_that_is_deleted_behind_the_append_takes_its_messages_along(bench: Bench) -> None:
    bench.queue("a")
    bench.queue("b")
    session = bench.session(transacted=True)
    sent = fill(bench, session, "a", "b")
    begin_commit(bench, session)
    while session.waits():
        bench.step()
    bench.journal.durable = bench.journal.last
    bench.broker.on_durable(bench.now, bench.journal.last)
    bench.broker.queue_registry.delete(bench.now, "a", "deleted")
    bench.settle()
    assert answers(session, 4) == 1
    assert "a" not in bench.broker.queues and bodies(bench, "b") == sent[1::2]
    validate(bench.broker)


def test_a_commit_ends_although_the_bindings_change_at_every_step(bench: Bench) -> None:
    bench.queue("first", "topic", MULTICAST)
    session = bench.session(transacted=True)
    sent = fill(bench, session, "topic")
    begin_commit(bench, session)
    number = 0
    while session.waits():
        number += 1
        assert number < 100
        if number % 2:
            bench.queue("more", "topic", MULTICAST)
        else:
            bench.broker.queue_registry.delete(bench.now, "more", "deleted")
        bench.step()
    bench.settle()
    assert bodies(bench, "first") == sent
    assert "more" not in bench.broker.queues or bodies(bench, "more") == sent


@pytest.mark.parametrize("failed", [True, False])
def test_a_session_that_ends_meanwhile_rolls_back(bench: Bench, failed: bool) -> None:
    bench.queue("in")
    bench.queue("out")
    bench.session().send(bench.now, bench.message("in", b"work"), 1)
    session = bench.session(transacted=True)
    consume(session, bench, "in")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], False, 2)
    fill(bench, session, "out")
    begin_commit(bench, session)
    bench.step()
    session.close(bench.now, failed)
    bench.settle()
    assert (bodies(bench, "in"), bodies(bench, "out")) == ([b"work"], [])
    assert not answers(session, 4) and not endpoint(session).held
    validate(bench.broker)


def test_two_large_commits_take_turns(bench: Bench) -> None:
    bench.queue("a")
    sessions = [bench.session(transacted=True), bench.session(transacted=True)]
    for session in sessions:
        fill(bench, session, "a")
        begin_commit(bench, session)
    preparations = [session.transaction.preparation for session in sessions]
    progress = []
    while all(session.waits() for session in sessions):
        progress.append([each.work for each in preparations if each is not None])
        bench.step()
    assert any(first > STEP_WORK and second > STEP_WORK for first, second in progress)
    bench.settle()
    found = bodies(bench, "a")
    assert len(found) == 2 * COUNT and found[:COUNT] == found[COUNT:]


def test_a_disk_that_fills_up_meanwhile_refuses_all_of_it(bench: Bench) -> None:
    bench.queue("a")
    session = bench.session(transacted=True)
    fill(bench, session, "a")
    begin_commit(bench, session)
    bench.broker.memory.disk_exhausted = True
    bench.settle()
    assert [token for token, _ in endpoint(session).errors] == [4]
    assert bodies(bench, "a") == []


def test_an_address_that_becomes_full_in_the_middle_pages() -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"max_size_bytes": 100_000, "page_size_bytes": 10_000, "address_full_policy": "PAGE"})
    bench = small_steps(settings, True)
    bench.queue("a")
    session = bench.session(transacted=True)
    sent = fill(bench, session, "a")
    begin_commit(bench, session)
    bench.settle()
    assert bench.broker.queues["a"].message_count == COUNT
    assert bench.pages is not None and len(bench.pages.files) > 1
    validate(bench.broker)
    bench.restart()
    reader = bench.session()
    consume(reader, bench, "a")
    read = 0
    while read < COUNT:
        bench.settle()
        ids = endpoint(reader).message_ids
        assert len(ids) > read, "nothing more comes"
        read = len(ids)
        reader.acknowledge(bench.now, 0, ids[-1], False, 3)
    assert endpoint(reader).bodies() == sent


def test_the_acknowledgements_of_a_large_transaction_are_one_with_its_sends(bench: Bench) -> None:
    bench.queue("in")
    bench.queue("out")
    fill(bench, bench.session(), "in")
    session = bench.session(transacted=True)
    consume(session, bench, "in")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 2)
    fill(bench, session, "out")
    records = len(bench.journal.records)
    begin_commit(bench, session)
    while session.waits():
        bench.step()
    assert len(bench.journal.records) == records + 1
    bench.settle()
    bench.restart()
    assert (len(bodies(bench, "in")), len(bodies(bench, "out"))) == (0, COUNT)


# -- the same result as single sends ----------------------------------------------------------------
def furnish(bench: Bench) -> None:
    """Addresses with all that routing knows."""
    bench.queue("plain")
    bench.queue("turns-1", "turns", ANYCAST)
    bench.queue("turns-2", "turns", ANYCAST)
    bench.queue("all", "news", MULTICAST)
    bench.queue("some", "news", MULTICAST, filter_text="colour = 'red'")
    bench.queue("fleeting", "news", MULTICAST, durable=False)
    bench.queue("wild", "news.#", MULTICAST)
    bench.queue("values", "values", ANYCAST, last_value_key="colour")
    bench.queue("ring", "ring", ANYCAST, ring_size=10)
    bench.queue("kept", "kept", ANYCAST, non_destructive=True)
    bench.queue("target")
    for name, exclusive in (("copy", False), ("all", True)):
        divert = DivertConfig(f"divert-{name}", f"diverted-{name}", "target")
        divert.exclusive = exclusive
        divert.filter_text = "number = 'odd'"
        bench.queue(f"diverted-{name}")
        bench.broker.diverts.create(divert, True)


ADDRESSES = ("plain", "turns", "news", "values", "ring", "kept", "diverted-copy", "diverted-all", "turns::turns-2")


def messages(bench: Bench) -> list[Message]:
    chance = random.Random(3)
    found = []
    for number in range(COUNT):
        message = bench.message(
            chance.choice(ADDRESSES), b"%d" % number, chance.random() < 0.8, colour=chance.choice(("red", "blue")),
            number="odd" if number % 2 else "even",
        )  # fmt: skip
        if chance.random() < 0.1:
            message.properties.put("_AMQ_DUPL_ID", f"id-{number}")
        if chance.random() < 0.1:
            message.properties.put("_AMQ_GROUP_ID", f"group-{number % 5}")
        if chance.random() < 0.1:
            message.properties.put("_AMQ_SCHED_DELIVERY", bench.now // 1_000_000 + 1_000 * chance.randint(1, 9))
        message.properties_changed()
        message.priority = chance.randint(0, 9)
        found.append(message)
    return found


def contents(bench: Bench) -> dict[str, list[bytes]]:
    scheduled = bench.broker.scheduled
    return {
        name: [*bodies(bench, name), b"|", *sorted(each.message.body for _, each in scheduled.of_queue(queue))]
        for name, queue in bench.broker.queues.items()
    }


def test_a_large_commit_has_the_result_of_single_sends() -> None:
    found: list[list[dict[str, list[bytes]]]] = []
    senders: list[Callable[[Bench], None]] = [one_by_one, in_one_transaction]
    for send in senders:
        bench = small_steps()
        furnish(bench)
        send(bench)
        bench.settle()
        validate(bench.broker)
        before = contents(bench)
        bench.restart()
        bench.settle()
        validate(bench.broker)
        found.append([before, contents(bench)])
    assert found[0] == found[1]
    assert all(len(each) > 1 for each in found[0][0].values())


def one_by_one(bench: Bench) -> None:
    session = bench.session()
    for message in messages(bench):
        session.send(bench.now, message, 1)
        if bench.broker.store.awaiting:
            bench.journal.durable = bench.journal.last
            bench.broker.on_durable(bench.now, bench.journal.last)


def in_one_transaction(bench: Bench) -> None:
    session = bench.session(transacted=True)
    for message in messages(bench):
        session.send(bench.now, message, 1)
    begin_commit(bench, session)


def test_a_refused_message_in_the_middle_refuses_all_of_it(bench: Bench) -> None:
    """Its address is deleted between the send and the commit."""
    bench.settings.add("gone", {"auto_create_addresses": False})
    bench.queue("a")
    bench.queue("gone")
    session = bench.session(transacted=True)
    fill(bench, session, "a")
    session.send(bench.now, bench.message("gone"), 1)
    bench.broker.queue_registry.delete(bench.now, "gone", "deleted")
    begin_commit(bench, session)
    bench.settle()
    assert [token for token, _ in endpoint(session).errors] == [4]
    assert endpoint(session).errors[0][1] != ILLEGAL_STATE
    assert bodies(bench, "a") == []


def one_step_before_the_draft() -> tuple[Bench, Session]:
    """A commit that is prepared in one step, and whose record needs a second one."""
    bench = small_steps()
    bench.broker.publisher.step_work_max = 250  # a first chunk of 100 messages is below it, both are above
    bench.queue("first", "news", MULTICAST)
    session = bench.session(transacted=True)
    session.send(bench.now, bench.message("news", b"0", _AMQ_DUPL_ID="once"), 1)
    for number in range(1, 200):
        session.send(bench.now, bench.message("news", b"%d" % number), 1)
    begin_commit(bench, session)
    preparation = session.transaction.preparation
    assert session.waits() and preparation is not None
    assert len(preparation.plans) == 200  # all in the first step
    return bench, session


def test_a_duplicate_id_between_the_preparation_and_the_record_refuses_the_commit() -> None:
    bench, session = one_step_before_the_draft()
    bench.session().send(bench.now, bench.message("news", b"other", _AMQ_DUPL_ID="once"), 7)
    bench.settle()
    assert bodies(bench, "first") == [b"other"]
    assert answers(session, 4) == 0


def test_a_queue_made_between_the_preparation_and_the_record_gets_the_messages() -> None:
    bench, session = one_step_before_the_draft()
    bench.queue("second", "news", MULTICAST)
    bench.settle()
    assert len(bodies(bench, "second")) == 200
    assert answers(session, 4) == 1
