"""The client's engine over lost connections, and its transactions."""

from __future__ import annotations

from collections import deque

import pytest

from atalanta.wire.core.client.errors import (
    ClientError,
    ConnectionLost,
    DuplicateId,
    TransactionOutcomeUnknown,
    TransactionRolledBack,
)
from atalanta.wire.core.client.session import ClientSession
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.consumer import CreateConsumer
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.query import QueueQuery
from atalanta.wire.core.packets.queue import CreateQueueV2
from tests.wire.core.client.engine_rig import Pair, connected, encoded, pending, taken


def opened(transacted: bool = False) -> tuple[Pair, ClientSession]:
    pair = connected()
    session = pair.session(transacted)
    pair.run()
    pair.broker.queues["q"] = deque()
    return pair, session


def kept(pair: Pair) -> list[str | None]:
    return [message.text() for message in pair.broker.queues["q"]]


@pytest.mark.parametrize("delivered", [False, True])
def test_the_unconfirmed_window_is_sent_again_in_order_as_the_same_bytes(delivered: bool) -> None:
    pair, session = opened()
    producer = session.producer("q")
    producer.send_message(encoded("0", duplicate_id="d0"))
    pair.run()
    pair.broker.confirm = False
    for number in range(1, 6):
        producer.send_message(encoded(str(number), duplicate_id=f"d{number}"))
    pair.cut(deliver=delivered)
    before = pair.link
    assert producer.unconfirmed == 5
    # While the connection is away messages wait behind those.
    producer.send_message(encoded("6", duplicate_id="d6"))
    pair.broker.confirm = True
    pair.dial()
    assert producer.unconfirmed == 0 and producer.confirmed == 7
    assert kept(pair) == [str(n) for n in range(7)]
    again = [frame for frame in pair.link.frames if frame[4] == 71]
    assert len(again) == 6
    if delivered:
        assert [frame for frame in before.frames if frame[4] == 71][1:] == again[:5]
        assert producer.resent == 5


def test_a_repeat_refused_as_duplicate_is_a_success_a_first_send_is_not() -> None:
    pair, session = opened()
    producer = session.producer("q")
    pair.run()
    pair.broker.confirm = False
    producer.send_message(encoded("1"))
    pair.cut(deliver=True)
    pair.broker.refuse_sends = 113
    pair.dial()
    assert (producer.confirmed, producer.errors) == (1, [])
    producer.send_message(encoded("2"))
    pair.run()
    assert [type(error) for error in producer.errors] == [DuplicateId]


def test_consumers_come_back_with_their_credits_and_old_deliveries_are_lost() -> None:
    pair, session = opened()
    for number in range(4):
        pair.broker.publish(encoded(str(number)))
    session.start()
    consumer, _ = session.consumer("q")
    pair.run()
    first = taken(consumer)
    old = taken(consumer)
    consumer.acknowledge_one(first)
    pair.cut(deliver=True)
    assert old.lost and first.lost and not consumer.buffer
    consumer.acknowledge_one(old)  # quietly ignored
    consumer.acknowledge_through(old, 0)
    waiting = consumer.arrival()
    pair.dial()
    assert waiting.done
    got = [taken(consumer) for _ in range(3)]
    assert [delivery.message.text() for delivery in got] == ["1", "2", "3"]
    assert not got[0].lost
    assert consumer.take() is None
    consumer.acknowledge_through(got[2], 0)
    pair.run()
    assert next(iter(pair.link.consumers.values())).unacknowledged == {}


def test_a_consumer_whose_queue_did_not_survive_fails() -> None:
    pair, session = opened()
    consumer, _ = session.consumer("q")
    pair.run()
    pair.cut()
    del pair.broker.queues["q"]
    pair.dial()
    assert consumer.failed is not None and consumer.failed.code == 100


def test_a_consumer_asked_for_at_the_moment_of_the_loss_is_made_once() -> None:
    pair, session = opened()
    consumer, made = session.consumer("q")
    pair.cut()
    assert pending(made)
    pair.dial()
    assert made.done and consumer.made
    assert len(pair.link.packets(CreateConsumer)) == 1


@pytest.mark.parametrize("delivered", [False, True])
def test_a_consumer_closed_before_it_was_made_is_none_after_the_loss(delivered: bool) -> None:
    """A consumer that is not there any more would get messages that nobody takes."""
    pair, session = opened()
    session.start()
    consumer, made = session.consumer("q")
    if delivered:
        pair.cut(deliver=True)
        closed = session.close_consumer(consumer)
    else:
        closed = session.close_consumer(consumer)
        pair.cut()
    pair.dial()
    pair.broker.publish(encoded("kept"))
    pair.run()
    assert made.done and closed.done
    assert pair.link.consumers == {} and kept(pair) == ["kept"]


def test_temporary_queues_are_made_again_before_their_consumers() -> None:
    pair, session = opened()
    packet = CreateQueueV2(address="t", queue="t", temporary=True)
    session.request(packet)
    session.keep_temporary("t", packet)
    consumer, _ = session.consumer("t")
    pair.run()
    pair.cut()
    del pair.broker.queues["t"]
    pair.dial()
    assert consumer.failed is None and "t" in pair.broker.queues


def test_questions_are_repeated_and_what_had_been_done_is_no_error() -> None:
    pair, session = opened()
    query = session.request(QueueQuery("q"))
    create = session.request(CreateQueueV2(address="new", queue="new"), 0, 101)
    refused = session.request(CreateQueueV2(address="q", queue="q"), 0, 101)
    pair.client.flush()
    pair.cut(deliver=True)
    pair.dial()
    assert query.result() == pair.link.query("q")
    assert create.result() is None
    # This one had never been sent before: that the queue exists is the answer.
    assert isinstance(refused.error, ClientError) and refused.error.code == 101


def test_a_create_that_had_been_carried_out_is_not_an_error_when_repeated() -> None:
    pair, session = opened()
    create = session.request(CreateQueueV2(address="new", queue="new"), 0, 101)
    pair.cut(deliver=True)
    assert "new" in pair.broker.queues
    pair.dial()
    assert create.done and create.result() is None


def test_a_session_refused_on_the_way_back_is_tried_again() -> None:
    pair, session = opened()
    pair.cut()
    pair.link = pair.broker.accept()
    pair.client.start(1)
    pair._out.clear()
    pair.client.feed(1, codec.encode(ExceptionResponse(112, "stopping"), 1))
    assert pair.events.told[-1].startswith("broken: the broker refused a session")
    pair.client.lost(1, "refused")
    pair.dial()
    assert session.open


@pytest.mark.parametrize("code", [104, 112])
def test_a_further_session_that_a_stopping_node_refuses_is_opened_at_the_next_one(code: int) -> None:
    """104: to a client that came from another node."""
    pair, session = opened()
    pair.broker.refuse_sessions = code
    later = pair.session()
    pair.run()
    assert not later.opened.done
    pair.broker.refuse_sessions = 0
    pair.cut()
    pair.dial()
    assert later.open and session.open


# -- transactions -------------------------------------------------------------------------------


def test_a_transaction_happens_with_its_commit() -> None:
    pair, session = opened(transacted=True)
    producer = session.producer("q")
    for number in range(3):
        producer.send(encoded(str(number)).body, encoded("").head, False)
    pair.run()
    assert kept(pair) == []
    for packet in pair.link.packets(SendMessage):
        assert isinstance(packet, SendMessage) and not packet.requires_response
    done = session.commit()
    pair.run()
    assert done.done and kept(pair) == ["0", "1", "2"]


def test_a_session_waits_until_its_commit_is_answered() -> None:
    pair, session = opened(transacted=True)
    producer = session.producer("q")
    pair.run()
    producer.send(encoded("1").body, encoded("").head, False)
    assert session.in_transaction
    commit = session.commit()
    pair.client.flush()
    waits = session.waits
    assert waits, "a connection that is left now would leave the outcome unknown"
    pair.run()
    waits = session.waits
    assert commit.done and not waits


def test_a_rollback_gives_messages_back() -> None:
    pair, session = opened(transacted=True)
    for number in range(3):
        pair.broker.publish(encoded(str(number)))
    session.start()
    consumer, _ = session.consumer("q")
    pair.run()
    delivery = taken(consumer)
    session.stop()
    pair.run()
    undone = session.rollback()
    pair.run()
    assert undone.done and delivery.lost and not consumer.buffer
    assert kept(pair) == ["0", "1", "2"]
    session.start()
    pair.run()
    assert taken(consumer).message.text() == "0"


def test_a_loss_during_a_transaction_is_learnt_at_the_next_step() -> None:
    pair, session = opened(transacted=True)
    producer = session.producer("q")
    producer.send(b"", encoded("").head, False)
    pair.run()
    pair.cut()
    pair.dial()
    with pytest.raises(TransactionRolledBack):
        producer.send(b"", encoded("").head, False)
    with pytest.raises(TransactionRolledBack):
        session.commit()
    session.rollback()
    producer.send(encoded("again").body, encoded("").head, False)
    done = session.commit()
    pair.run()
    assert done.result() is None and kept(pair) == ["again"]


def test_a_loss_between_transactions_is_none() -> None:
    pair, session = opened(transacted=True)
    producer = session.producer("q")
    producer.send(encoded("1").body, encoded("").head, False)
    session.commit()
    pair.run()
    pair.cut()
    pair.dial()
    producer.send(encoded("2").body, encoded("").head, False)
    session.commit()
    pair.run()
    assert kept(pair) == ["1", "2"]


def test_a_loss_during_the_commit_leaves_its_outcome_unknown() -> None:
    pair, session = opened(transacted=True)
    producer = session.producer("q")
    pair.run()
    pair.broker.confirm = False
    producer.send(encoded("1").body, encoded("").head, False)
    commit = session.commit()
    pair.cut(deliver=True)
    assert isinstance(commit.error, TransactionOutcomeUnknown)
    assert kept(pair) == ["1"]
    pair.dial()
    session.check_usable()


@pytest.mark.parametrize("individual", [True, False])
def test_a_commit_follows_the_acknowledgements_that_await_their_answers(individual: bool) -> None:
    pair, session = opened(transacted=True)
    for number in range(30):
        pair.broker.publish(encoded(str(number)))
    session.start()
    consumer, _ = session.consumer("q")
    pair.run()
    replies = [consumer.acknowledge_and_wait(taken(consumer), individual) for _ in range(30)]
    commit = session.commit()
    pair.run()
    assert commit.done and commit.error is None
    assert all(reply.done and reply.error is None for reply in replies)
    pair.cut()
    assert kept(pair) == []


def test_a_commit_behind_acknowledgements_is_rolled_back_by_a_loss() -> None:
    pair, session = opened(transacted=True)
    for number in range(2):
        pair.broker.publish(encoded(str(number)))
    session.start()
    consumer, _ = session.consumer("q")
    pair.run()
    replies = [consumer.acknowledge_and_wait(taken(consumer), True) for _ in range(2)]
    commit = session.commit()
    pair.cut()
    assert [type(reply.error) for reply in replies] == [ConnectionLost] * 2
    assert isinstance(commit.error, TransactionRolledBack)
    pair.dial()
    assert taken(consumer).message.text() == "0"


def test_an_acknowledgement_with_an_answer_fails_when_the_delivery_is_lost() -> None:
    pair, session = opened()
    pair.broker.publish(encoded("0"))
    session.start()
    consumer, _ = session.consumer("q")
    pair.run()
    delivery = taken(consumer)
    under_way = consumer.acknowledge_and_wait(delivery, True)
    pair.cut()
    assert isinstance(under_way.error, ConnectionLost)
    pair.dial()
    assert isinstance(consumer.acknowledge_and_wait(delivery, True).error, ConnectionLost)
    done = consumer.acknowledge_and_wait(taken(consumer), True)
    pair.run()
    assert done.done and done.error is None and kept(pair) == []


def test_a_commit_waits_for_the_messages_before_it() -> None:
    pair, session = opened(transacted=True)
    pair.broker.grant = False
    producer = session.producer("q")
    producer.send(encoded("1").body, encoded("").head, False)
    done = session.commit()
    pair.run()
    assert pending(done)
    pair.link.release()
    pair.run()
    assert done.done and kept(pair) == ["1"]
