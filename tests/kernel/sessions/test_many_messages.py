"""What one peer does to a great number of messages at once: each turn does a part, and no client sees it half done."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.broker import FLUSH_TIMER
from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.kernel.security.resource_limits import ResourceLimit
from atalanta.kernel.sessions.fan_out import COPIES_A_TURN
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.sessions.session_queues import QUEUE_STEPS
from atalanta.kernel.sessions.subscription_queue import durable_queue, subscribed_queue
from atalanta.kernel.tasks import STEPS_A_TURN
from tests.kernel.broker_rig import SECOND, Bench, RecordingEndpoint, consume, endpoint

MANY = 100
STEPS = 10
BODIES = [str(number).encode() for number in range(MANY)]


def fill(bench: Bench, address: str, durable: bool = True, count: int = MANY) -> None:
    sender = bench.session()
    for number in range(count):
        sender.send(bench.now, bench.message(address, str(number).encode(), durable), 0)
    bench.settle()


def taker(bench: Bench, queue: Queue, count: int = MANY) -> Session:
    """A session that has all messages of the queue, unacknowledged."""
    session = bench.session()
    consume(session, bench, queue.name)
    bench.settle()
    assert queue.delivering_count == count
    return session


def lose(bench: Bench, session: Session) -> None:
    """The connection of the session is lost."""
    session.client.close(bench.now, bench.broker.session_services, True)


def acknowledged_bodies(bench: Bench, queue: str) -> list[bytes]:
    """What a new consumer of the queue gets, in order; all of it is acknowledged."""
    session = bench.session()
    consume(session, bench, queue)
    bench.settle()
    found = endpoint(session)
    if found.message_ids:
        session.acknowledge(bench.now, 0, found.message_ids[-1], False, 0)
    bench.settle()
    return found.bodies()


@pytest.mark.parametrize("durable", [True, False])
def test_messages_of_a_lost_consumer_return_in_steps(bench: Bench, durable: bool) -> None:
    bench.work_in_steps_of(STEPS)
    queue = bench.queue("q")
    fill(bench, "q", durable)
    first = taker(bench, queue)
    lose(bench, first)
    left = [queue.delivering_count]
    while left[-1] > 0:
        bench.turn()
        left.append(queue.delivering_count)
    assert left == [MANY - STEPS, *range(MANY - STEPS, -1, -STEPS)]  # the first turn has done its part
    assert queue.message_count == MANY
    assert acknowledged_bodies(bench, "q") == BODIES


def test_one_input_returns_a_bounded_number_of_messages(bench: Bench) -> None:
    count = STEPS_A_TURN + 2_000
    queue = bench.queue("q", durable=False)
    fill(bench, "q", False, count)
    lose(bench, taker(bench, queue, count))
    assert queue.delivering_count == 2_000
    bench.settle()
    assert queue.delivering_count == 0


def test_a_consumer_that_comes_meanwhile_gets_the_messages_in_order(bench: Bench) -> None:
    bench.work_in_steps_of(STEPS)
    queue = bench.queue("q")
    fill(bench, "q")
    lose(bench, taker(bench, queue))
    sender = bench.session()
    sender.send(bench.now, bench.message("q", b"later"), 0)
    next_one = bench.session()
    consume(next_one, bench, "q")
    next_one.drain(bench.now, 0, 7)
    browser = bench.session()
    consume(browser, bench, "q", browse=True)
    bench.turn()
    assert endpoint(next_one).bodies() == [] and endpoint(next_one).drained_tokens == []
    assert endpoint(browser).bodies() == []
    bench.settle()
    assert endpoint(next_one).bodies() == [*BODIES, b"later"]
    assert [count for _, count, _ in endpoint(next_one).delivered[:MANY]] == [2] * MANY
    assert endpoint(next_one).drained_tokens == [7]
    assert endpoint(browser).bodies() == [*BODIES, b"later"]


def test_other_queues_are_served_meanwhile(bench: Bench) -> None:
    bench.work_in_steps_of(STEPS)
    queue = bench.queue("q")
    bench.queue("other")
    fill(bench, "q")
    lose(bench, taker(bench, queue))
    reader = bench.session()
    consume(reader, bench, "other")
    bench.session().send(bench.now, bench.message("other", b"now", False), 0)
    bench.turn()
    assert endpoint(reader).bodies() == [b"now"] and queue.delivering_count > 0
    bench.settle()


def test_a_rollback_of_many_messages(bench: Bench) -> None:
    bench.work_in_steps_of(STEPS)
    bench.queue("q")
    fill(bench, "q")
    session = bench.session(transacted=True)
    consume(session, bench, "q")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[49], False, 0)
    session.rollback(bench.now, False, 1)
    bench.turn()
    assert endpoint(session).bodies() == BODIES
    bench.settle()
    assert endpoint(session).bodies() == BODIES * 2
    counts = [count for _, count, _ in endpoint(session).delivered[MANY:]]
    assert counts == [2] * 50 + [1] * 50


def test_the_delay_counts_from_the_rollback(bench: Bench) -> None:
    bench.work_in_steps_of(STEPS)
    bench.settings.add("#", {"redelivery_delay_ms": 1_000})
    queue = bench.queue("q")
    fill(bench, "q")
    session = bench.session(transacted=True)
    consume(session, bench, "q")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 0)
    due_ms = bench.now // 1_000_000 + 1_000
    session.rollback(bench.now, False, 1)
    bench.now += SECOND // 2
    bench.settle()
    assert {at for at, _ in bench.broker.scheduled.of_queue(queue)} == {due_ms}


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_crash_meanwhile_loses_nothing(bench: Bench, turns: int) -> None:
    bench.work_in_steps_of(STEPS)
    queue = bench.queue("q")
    fill(bench, "q")
    lose(bench, taker(bench, queue))
    for _ in range(turns):
        bench.turn()
    bench.journal.durable = bench.journal.last
    validate(bench.broker)
    bench.restart()
    assert acknowledged_bodies(bench, "q") == BODIES


def test_a_node_that_stops_returns_all_of_them_at_once(bench: Bench) -> None:
    bench.work_in_steps_of(STEPS)
    queue = bench.queue("q")
    fill(bench, "q")
    session = taker(bench, queue)
    other = taker(bench, _filled(bench, "p"))
    lose(bench, session)
    bench.broker.stop()
    assert queue.delivering_count == 0
    lose(bench, other)
    assert bench.broker.queues["p"].delivering_count == 0
    bench.settle()


def _filled(bench: Bench, name: str) -> Queue:
    queue = bench.queue(name)
    fill(bench, name)
    return queue


def test_a_queue_without_consumers_is_purged_of_what_has_come_back(bench: Bench) -> None:
    bench.work_in_steps_of(STEPS)
    queue = bench.queue("q", purge_on_no_consumers=True)
    keeper = bench.session()
    consume(keeper, bench, "q", credits=1)
    fill(bench, "q")
    session = taker(bench, queue)
    lose(bench, session)
    lose(bench, keeper)
    bench.settle()
    assert queue.message_count == 0 and bench.broker.memory.used_bytes == 0
    bench.restart()
    assert bench.broker.queues["q"].message_count == 0


# -- queues that end ----------------------------------------------------------------------------------
@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_queue_that_is_deleted_meanwhile_takes_its_messages_with_it(bench: Bench, turns: int) -> None:
    bench.work_in_steps_of(STEPS)
    queue = bench.queue("q")
    fill(bench, "q")
    lose(bench, taker(bench, queue))
    for _ in range(turns):
        bench.turn()
    bench.broker.queue_registry.delete(bench.now, "q", "deleted")
    bench.compact(bench.journal.last // 2)  # writes what is alive again
    validate(bench.broker)
    bench.settle()
    assert bench.broker.store.messages == {} and bench.broker.memory.used_bytes == 0
    bench.restart()
    assert bench.broker.store.messages == {} and "q" not in bench.broker.queues


def test_the_last_attempts_of_a_deleted_queue_are_dead_letters(bench: Bench) -> None:
    bench.work_in_steps_of(STEPS)
    bench.settings.add("#", {"max_delivery_attempts": 1, "dead_letter_address": "DLA"})
    bench.settings.add("DLA", {"max_delivery_attempts": -1})
    bench.queue("DLA")
    queue = bench.queue("q")
    fill(bench, "q")
    lose(bench, taker(bench, queue))
    bench.broker.queue_registry.delete(bench.now, "q", "deleted")
    bench.settle()
    assert sorted(acknowledged_bodies(bench, "DLA")) == sorted(BODIES)


@pytest.mark.parametrize("attempts", [1, 10])
def test_many_slow_subscribers_leave_in_steps(bench: Bench, attempts: int) -> None:
    bench.work_in_steps_of(STEPS)
    bench.settings.add("#", {"max_delivery_attempts": attempts, "dead_letter_address": "DLA"})
    bench.settings.add("DLA", {"max_delivery_attempts": -1})
    dead = bench.queue("DLA")
    subscribers = []
    for number in range(5):
        session = bench.session()
        spec_name = f"s{number}"
        queue = bench.queue(spec_name, "news", MULTICAST, durable=False, temporary=True)
        session.client.temporary_queues[spec_name] = queue
        consume(session, bench, spec_name)
        subscribers.append(session)
    fill(bench, "news", False)
    for session in subscribers:
        session.started = False
    fill(bench, "news", False)
    charged = bench.broker.memory.used_bytes
    for session in subscribers:
        lose(bench, session)
    assert bench.broker.memory.used_bytes > charged // 2
    turns = 0
    while bench.broker.store.tasks.waiting:
        bench.turn()
        turns += 1
    assert turns > 20
    bench.settle()
    assert not any(name.startswith("s") for name in bench.broker.queues)
    if attempts == 1:
        assert dead.message_count == 5 * 2 * MANY
    else:
        assert dead.message_count == 0 and bench.broker.memory.used_bytes == 0


def owner_of(bench: Bench, *names: str) -> Session:
    """A session whose connection has temporary queues of these names."""
    session = bench.session()
    for name in names:
        session.create_queue(bench.now, temporary(name))
    return session


def temporary(name: str) -> QueueSpec:
    spec = QueueSpec(name, name, ANYCAST)
    spec.set_temporary()
    return spec


def lose_behind_another(bench: Bench, *sessions: Session) -> None:
    """The connections are lost while the messages of another one return."""
    busy = _filled(bench, "busy")
    lose(bench, taker(bench, busy))
    for session in sessions:
        lose(bench, session)


def test_a_client_that_comes_back_creates_its_temporary_queue_again(bench: Bench) -> None:
    bench.work_in_steps_of(STEPS)
    former = owner_of(bench, "own")
    fill(bench, "own", False, 1)
    lose_behind_another(bench, former)
    again = owner_of(bench, "own")
    consume(again, bench, "own")
    bench.settle()
    fill(bench, "own", False, 2)
    assert endpoint(again).bodies() == BODIES[:2]
    lose(bench, again)
    bench.settle()
    assert "own" not in bench.broker.queues and "own" not in bench.broker.addresses


def test_the_last_one_of_many_temporary_queues_is_created_again(bench: Bench) -> None:
    names = [f"own{number}" for number in range(2 * STEPS_A_TURN // QUEUE_STEPS)]
    lose(bench, owner_of(bench, *names))
    assert names[-1] in bench.broker.queues
    again = owner_of(bench, names[-1])
    consume(again, bench, names[-1])
    bench.settle()
    assert [name for name in names if name in bench.broker.queues] == [names[-1]]
    fill(bench, names[-1], False, 1)
    assert endpoint(again).bodies() == BODIES[:1]


def test_a_subscriber_to_the_name_of_a_queue_that_ends_gets_one_of_its_own(bench: Bench) -> None:
    bench.work_in_steps_of(STEPS)
    lose_behind_another(bench, owner_of(bench, "a", "b"), owner_of(bench, "c"))
    reader = bench.session()
    subscribed_queue(reader, bench.now, "a", "", ANYCAST, None)
    subscribed_queue(reader, bench.now, "b", "b", ANYCAST, None)
    durable_queue(reader, bench.now, "c", "news", None)
    bench.settle()
    assert all(bench.broker.queues[name].durable for name in ("a", "b", "c"))


def test_a_queue_that_was_about_to_end_does_not_count_for_its_user(bench: Bench) -> None:
    bench.work_in_steps_of(STEPS)
    former = owner_of(bench, "own")
    user = former.identity.user
    assert user
    bench.broker.config.resource_limits.append(ResourceLimit(user, -1, 1))
    lose_behind_another(bench, former)
    owner_of(bench, "own")
    bench.settle()
    assert "own" in bench.broker.queues


# -- many queues --------------------------------------------------------------------------------------
def test_one_turn_delivers_to_a_bounded_number_of_queues(bench: Bench) -> None:
    session = bench.session()
    for number in range(3_000):
        bench.queue(f"s{number}", "news", MULTICAST, durable=False)
        consume(session, bench, f"s{number}", consumer_id=number)
    bench.settle()
    bench.session().send(bench.now, bench.message("news", b"news", False), 0)
    bench.turn()
    served = [consumer for consumer, _, _ in endpoint(session).delivered]
    assert served == list(range(len(served))) and 1_000 < len(served) < 2_000
    bench.settle()
    assert [consumer for consumer, _, _ in endpoint(session).delivered] == list(range(3_000))


class PacedEndpoint(RecordingEndpoint):
    """Counts what holds the client's input."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = 0

    def hold_input(self) -> None:
        self.holds += 1

    def release_input(self) -> None:
        self.holds -= 1


def test_a_sender_to_many_subscriptions_goes_on_in_the_next_turn(bench: Bench) -> None:
    for number in range(100):
        bench.queue(f"s{number}", "news", MULTICAST, durable=False)
    sender = bench.session()
    paced = sender.endpoint = PacedEndpoint()
    sent = 0
    for turns in range(1, 4):
        while paced.holds == 0:
            sender.send(bench.now, bench.message("news", b"news", False), sent)
            sent += 1
        assert paced.holds == 1 and sent == turns * COPIES_A_TURN // 100
        bench.broker.flush_timer = False  # it has come
        bench.timers.due.clear()
        bench.turn()
        assert paced.holds == 0 and FLUSH_TIMER in bench.timers.due  # another turn comes at once
    bench.settle()
    assert paced.answers == list(range(sent))
    assert [queue.message_count for queue in bench.broker.queues.values()] == [sent] * 100


def test_an_acknowledgement_of_many_messages_frees_their_memory_in_steps(bench: Bench) -> None:
    bench.work_in_steps_of(100)
    queue = bench.queue("q")
    fill(bench, "q", count=2_000)
    session = taker(bench, queue, 2_000)
    charged = bench.broker.memory.used_bytes
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 7)
    assert queue.message_count == 0 and queue.acknowledged == 2_000
    assert bench.broker.memory.used_bytes > charged * 9 // 10
    bench.compact(bench.journal.last // 2)  # nothing is written behind its own acknowledgement
    validate(bench.broker)
    bench.settle()
    assert endpoint(session).answers[-1] == 7 and bench.broker.memory.used_bytes == 0
    bench.restart()
    assert bench.broker.queues["q"].message_count == 0 and bench.broker.store.messages == {}


# -- behind the work of another client ----------------------------------------------------------
def busy(bench: Bench, credits: int = -1, count: int = 20) -> Session:
    """A transacted session with `count` of 20 messages of the queue "mine", while another client's return in steps."""
    bench.work_in_steps_of(STEPS)
    other = bench.queue("other")
    mine = bench.queue("mine")
    fill(bench, "other")
    fill(bench, "mine", count=20)
    leaving = taker(bench, other)
    session = bench.session(transacted=True)
    consume(session, bench, "mine", credits=credits)
    bench.settle()
    assert mine.delivering_count == count
    lose(bench, leaving)
    return session


def test_a_rollback_behind_the_work_of_another_client_keeps_the_order(bench: Bench) -> None:
    session = busy(bench, credits=500, count=9)
    session.rollback(bench.now, False, 9)
    endpoint(session).delivered.clear()
    session.add_credits(0, 10_000)
    for _ in range(3):
        bench.turn()
    bench.settle()
    assert endpoint(session).bodies() == BODIES[:20]


def test_a_queue_deleted_behind_the_work_of_another_client_sends_last_attempts_to_the_dead_letters(
    bench: Bench,
) -> None:
    bench.settings.add("mine", {"max_delivery_attempts": 1, "dead_letter_address": "dead"})
    dead = bench.queue("dead")
    session = busy(bench)
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 2)
    session.rollback(bench.now, False, 9)
    session.close(bench.now, False)
    bench.broker.queue_registry.delete(bench.now, "mine", "deleted")
    bench.settle()
    assert dead.message_count == 20
    validate(bench.broker)


def test_what_is_given_back_behind_the_work_of_another_client_is_stored_before_the_answer(bench: Bench) -> None:
    session = busy(bench)
    session.settle(bench.now, 0, endpoint(session).message_ids[0], False, 60_000, 7)
    bench.broker.flush(bench.now)
    bench.journal.durable = bench.journal.last
    bench.broker.on_durable(bench.now, bench.journal.last)
    assert endpoint(session).answers.count(7) == 1
    bench.restart()
    assert len(list(bench.broker.store.scheduled.of_queue(bench.broker.queues["mine"]))) == 1
