"""The client's engine against a broker in memory: handshake, sending, receiving, endings."""

from __future__ import annotations

from collections import deque

import pytest

from atalanta.message.message import Message
from atalanta.wire.core.client.consumer import FORCES_MAX, ClientConsumer
from atalanta.wire.core.client.errors import (
    AddressFull,
    BrokerRefused,
    CallTimedOut,
    Closed,
    ConnectionLost,
    NotAuthorized,
    QueueDoesNotExist,
    QueueExists,
)
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.settings import SessionSettings
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.connection import (
    ExceptionResponse,
    NullResponse,
    PacketsConfirmed,
    Ping,
)
from atalanta.wire.core.packets.consumer import (
    Acknowledge,
    DisconnectConsumer,
    FlowToken,
    IndividualAcknowledge,
)
from atalanta.wire.core.packets.message import (
    ReceiveContinuation,
    ReceiveLargeMessage,
    SendContinuation,
    SendMessage,
)
from atalanta.wire.core.packets.producer import (
    CreateProducer,
    ProducerFailCredits,
    RequestProducerCredits,
)
from atalanta.wire.core.packets.query import QueueQuery, QueueQueryResponseV3
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.core.packets.session import CreateSessionV2
from atalanta.wire.core.packets.topology import (
    ClusterTopologyV2,
    ClusterTopologyV4,
    SubscribeTopologyV2,
)
from atalanta.wire.core.transport import TransportConfiguration
from tests.wire.core.client.engine_rig import Pair, connected, encoded, pending, taken


def test_handshake_is_the_jms_clients() -> None:
    pair = Pair(ttl_ns=60_000_000_000)
    session = pair.session()
    pair.client.start(0)
    first = b"".join(pair._out)
    assert first.startswith(b"ARTEMIS")
    pair.run()
    ping, subscribe, create = [packet for _, packet in pair.link.seen[:3]]
    assert ping == Ping(60_000)
    assert subscribe == SubscribeTopologyV2(False, 136)
    assert isinstance(create, CreateSessionV2)
    assert (create.version, create.session_channel, create.user) == (136, 10, "u")
    assert session.open and pair.client.version == 136
    assert pair.events.told == ["ready"]


def test_a_refused_login_is_told_and_ends_only_its_session() -> None:
    pair = connected()
    wrong = pair.client.session(SessionSettings("wrong", "u", "guess"))
    good = pair.session()
    pair.run()
    assert isinstance(wrong.opened.error, NotAuthorized)
    assert good.open
    with pytest.raises(NotAuthorized):
        wrong.request(QueueQuery("q"))


def test_a_refusal_of_a_session_that_was_given_up_meanwhile_harms_nobody() -> None:
    pair = connected()
    given_up = pair.client.session(SessionSettings("wrong", "u", "guess"))
    good = pair.session()
    given_up.close()
    pair.run()
    assert good.open and pair.client.failed is None
    assert not any(told.startswith("broken") for told in pair.events.told)


def test_every_message_is_confirmed_once_under_its_own_correlation() -> None:
    pair = connected()
    session = pair.session()
    pair.run()
    producer = session.producer("q")
    for number in range(100):
        producer.send_message(encoded(str(number)))
    done = producer.wait_for_room(0)
    assert producer.unconfirmed == 100 and not done.done
    pair.run()
    assert (producer.confirmed, producer.unconfirmed, done.done) == (100, 0, True)
    sent = [p for p in pair.link.packets(SendMessage) if isinstance(p, SendMessage)]
    assert [packet.message.text() for packet in sent] == [str(n) for n in range(100)]
    assert len({packet.correlation for packet in sent}) == 100
    assert {packet.sender_id for packet in sent} == {producer.id}
    assert pair.link.packets(CreateProducer) == [CreateProducer(producer.id, "q")]


def test_nothing_is_sent_beyond_the_credits() -> None:
    pair = connected()
    pair.broker.grant = False
    session = pair.session(producer_window=1_000)
    pair.run()
    producer = session.producer("q")
    body = bytes(100)
    for _ in range(20):
        producer.send(body, encoded("").head, True)
    pair.run()
    assert pair.link.packets(RequestProducerCredits) == [RequestProducerCredits(1_000, "q")]
    assert not pair.link.packets(SendMessage)
    pair.broker.grant = True
    pair.link.release()
    pair.run()
    assert producer.confirmed == 20
    asked = pair.link.packets(RequestProducerCredits)
    # At least half the window is in hand or on its way, never more than the window.
    assert all(isinstance(p, RequestProducerCredits) and 500 <= p.credits <= 1_000 for p in asked)


@pytest.mark.parametrize("length", [240, 330])
def test_a_broker_that_speaks_openwire_is_named(length: int) -> None:
    """The first bytes of ActiveMQ Classic: a WireFormatInfo."""
    pair = Pair()
    pair.client.start(pair.now)
    wire_format = length.to_bytes(4, "big") + b"\x01ActiveMQ\x00\x00\x00\x0c\x01" + bytes(length - 14)
    pair.client.feed(pair.now, wire_format)
    assert pair.events.told[-1:] == [
        "broken: the broker sent what cannot be understood: the broker speaks OpenWire there, as ActiveMQ Classic "
        "does, but CORE is needed: an Artemis or Atalanta node"
    ]


def test_a_message_larger_than_the_window_gets_the_credits_it_needs() -> None:
    pair = connected()
    session = pair.session(producer_window=1_000)
    pair.run()
    producer = session.producer("q")
    producer.send(bytes(50_000), encoded("").head, True)
    producer.send(bytes(10), encoded("").head, True)
    pair.run()
    assert producer.confirmed == 2


def test_a_full_address_fails_what_waits() -> None:
    pair = connected()
    pair.broker.grant = False
    session = pair.session(producer_window=1_000)
    pair.run()
    producer = session.producer("q")
    producer.send_message(encoded("x"))
    pair.link.send(10, ProducerFailCredits(1_000, "q"))
    pair.run()
    assert [type(error) for error in producer.errors] == [AddressFull]
    assert producer.unconfirmed == 0


def test_a_refused_message_says_so_to_who_waits_for_it() -> None:
    pair = connected()
    session = pair.session()
    pair.run()
    producer = session.producer("q")
    pair.broker.refuse_sends = 105
    alone = producer.send_message(encoded("1"))
    alone.reply = Reply()
    producer.send_message(encoded("2"))
    pair.run()
    assert isinstance(alone.reply.error, NotAuthorized)
    assert [type(error) for error in producer.errors] == [NotAuthorized]
    assert (producer.refused_count, producer.unconfirmed) == (2, 0)


def test_large_messages_travel_in_pieces() -> None:
    pair = connected()
    session = pair.session()
    pair.run()
    pair.broker.queues["q"] = deque()
    producer = session.producer("q")
    body = bytes(n % 251 for n in range(250_000))
    producer.send(body, encoded("").head, True)
    pair.run()
    assert producer.confirmed == 1
    pieces = [p for p in pair.link.packets(SendContinuation) if isinstance(p, SendContinuation)]
    assert [len(piece.body) for piece in pieces] == [102_400, 102_400, 45_200]
    assert [piece.requires_response for piece in pieces] == [False, False, True]
    assert [piece.body_size for piece in pieces] == [-1, -1, 250_000]
    assert pair.broker.queues["q"][0].body == body


def large_delivery(pair: Pair, consumer_id: int, body: bytes) -> None:
    message = encoded("")
    pair.link.send(
        10,
        ReceiveLargeMessage(
            message, consumer_id=consumer_id, delivery_count=1, body_size=len(body)
        ),
    )
    for start in range(0, len(body), 100_000):
        piece = body[start : start + 100_000]
        more = start + 100_000 < len(body)
        pair.link.send(10, ReceiveContinuation(piece, more, consumer_id))
    pair.run()


def test_large_deliveries_are_put_together_up_to_the_limit() -> None:
    pair = connected()
    session = pair.session(large_message_max=300_000)
    pair.run()
    pair.broker.queues["q"] = deque()
    consumer, made = session.consumer("q")
    pair.run()
    assert made.done
    large_delivery(pair, consumer.id, bytes(250_000))
    large_delivery(pair, consumer.id, bytes(350_000))
    whole, cut = consumer.take(), consumer.take()
    assert whole is not None and whole.message.body == bytes(250_000) and whole.error is None
    assert cut is not None and cut.message.body == b"" and "350000 bytes" in (cut.error or "")
    pair.run()
    # More than half the window came: it was given back.
    tokens = [p.credits for p in pair.link.packets(FlowToken) if isinstance(p, FlowToken)]
    assert tokens[0] == 1 << 20 and 1 << 19 <= sum(tokens[1:]) < 601_000


@pytest.mark.parametrize("window", [0, 10, 1 << 20])
def test_the_end_of_a_queue_is_told_behind_the_last_piece_of_a_large_message_as_artemis_sends_it(window: int) -> None:
    pair, consumer = filled(0, window)
    consumer.want_one()
    end = consumer.force()
    header = ReceiveLargeMessage(encoded(""), consumer_id=consumer.id, delivery_count=1, body_size=2)
    for packet in (header, *(ReceiveContinuation(b"x", more, consumer.id) for more in (True, False))):
        assert pending(end)
        pair.link.send(10, packet)
        pair.run()
        assert window > 10 or sum(p.credits for p in pair.link.packets(FlowToken) if isinstance(p, FlowToken)) > window
    assert end.done and taken(consumer).message.body == b"xx"


def test_unread_messages_are_handed_out_when_they_hold_the_credits_of_the_next_piece_of_a_large_message() -> None:
    """A browser of a real Artemis waited for ever: the broker for credits, the program for the end of the queue."""
    pair, consumer = filled(6, 600)
    header = ReceiveLargeMessage(encoded(""), consumer_id=consumer.id, delivery_count=1, body_size=2)
    pair.link.send(10, header)
    pair.run()
    end = consumer.force()
    pair.run()
    assert end.done
    given = len(pair.link.packets(FlowToken))
    assert [taken(consumer).message.id for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    pair.run()
    assert len(pair.link.packets(FlowToken)) > given  # now the broker may send the pieces
    end = consumer.force()
    for more in (True, False):
        pair.run()
        assert pending(end)
        pair.link.send(10, ReceiveContinuation(b"x", more, consumer.id))
    pair.run()
    assert end.done and taken(consumer).message.body == b"xx"


@pytest.mark.parametrize("window", [0, 600, 1 << 20])
def test_a_message_that_arrives_answers_a_call_that_wants_one(window: int) -> None:
    """A node that has used up the window may wait a second for credits before it answers a forced delivery."""
    _, consumer = filled(0, window)
    done = 0
    for _ in range(FORCES_MAX + 5):  # without an answer of the node
        found = consumer.available()
        consumer.deliver(Message.create("q", b"", 4, True, 0, 4), 1, 100)
        done += found.done
        taken(consumer)
    assert done == (0 if window == 0 else FORCES_MAX)


def filled(count: int, window: int = 1 << 20) -> tuple[Pair, ClientConsumer]:
    """A consumer of the queue q with so many messages."""
    pair = connected()
    session = pair.session()
    pair.run()
    pair.broker.queues["q"] = deque()
    for number in range(count):
        pair.broker.publish(encoded(str(number)))
    session.start()
    consumer, _ = session.consumer("q", window=window)
    pair.run()
    return pair, consumer


def texts(consumer: ClientConsumer) -> list[str | None]:
    """What lies in the buffer."""
    return [delivery.message.text() for delivery in iter(consumer.take, None) if delivery is not None]


def test_consumer_credits_keep_the_messages_coming() -> None:
    pair, consumer = filled(500, window=4_000)
    got: list[str | None] = []
    while len(got) < 500:
        some = texts(consumer)
        assert some, f"it stops after {len(got)}"
        got += some
        pair.run()
    assert got == [str(n) for n in range(500)]
    tokens = [p.credits for p in pair.link.packets(FlowToken) if isinstance(p, FlowToken)]
    assert tokens[0] == 4_000 and all(2_000 <= credits < 2_400 for credits in tokens[1:])
    # Exactly what the broker subtracted, less than half a window outstanding.
    broker_side = next(iter(pair.link.consumers.values()))
    assert -200 < broker_side.credits + 0 <= 4_000


def test_window_zero_takes_one_message_at_a_time() -> None:
    pair, consumer = filled(3, window=0)
    assert texts(consumer) == []
    for number in range(3):
        arrived = consumer.arrival()
        pair.run()
        assert arrived.done and texts(consumer) == [str(number)]


def test_cumulative_acknowledgements_are_joined_per_turn() -> None:
    pair, consumer = filled(10)
    taken = [delivery for delivery in iter(consumer.take, None) if delivery is not None]
    for delivery in taken[:7]:
        consumer.acknowledge_through(delivery, 0)
    pair.run()
    assert pair.link.packets(Acknowledge) == [Acknowledge(0, 7)]
    consumer.acknowledge_one(taken[8])
    pair.run()
    assert len(pair.link.packets(IndividualAcknowledge)) == 1
    assert list(next(iter(pair.link.consumers.values())).unacknowledged) == [8, 10]


def test_acknowledgements_kept_back_by_size_go_out_with_the_close() -> None:
    pair, consumer = filled(2)
    session = consumer.session
    delivery = taken(consumer)
    consumer.acknowledge_through(delivery, 1_000_000)
    pair.run()
    assert not pair.link.packets(Acknowledge)
    session.close_consumer(consumer)
    pair.run()
    assert len(pair.link.packets(Acknowledge)) == 1
    assert len(pair.broker.queues["q"]) == 1


def test_forced_delivery_says_when_there_is_no_more() -> None:
    pair, consumer = filled(2)
    assert texts(consumer) == ["0", "1"]
    forced = consumer.force()
    assert pending(forced)
    pair.run()
    assert forced.done and texts(consumer) == []


def test_a_deleted_queue_fails_its_consumer() -> None:
    pair, consumer = filled(0)
    waiting = consumer.arrival()
    pair.link.send(10, DisconnectConsumer(0))
    pair.run()
    assert waiting.done
    assert isinstance(consumer.failed, QueueDoesNotExist)


def test_questions_are_asked_one_at_a_time_and_answers_never_mixed_up() -> None:
    pair = connected()
    session = pair.session()
    pair.run()
    pair.broker.queues["b"] = deque()
    replies = [session.request(QueueQuery(name)) for name in "abc"]
    exists = session.request(CreateQueueV2(address="b", queue="b"))
    pair.run()
    found = [reply.result() for reply in replies]
    assert [f.exists for f in found if isinstance(f, QueueQueryResponseV3)] == [False, True, False]
    with pytest.raises(QueueExists, match="queue b exists"):
        exists.result()


def test_a_late_answer_belongs_to_its_own_question() -> None:
    pair = connected(call_timeout_ns=5_000_000_000, ping_period_ns=-1)
    session = pair.session()
    pair.run()
    late = session.request(QueueQuery("late"))
    behind = session.request(QueueQuery("behind"))
    pair._out.clear()  # the question is held up in the network
    pair.tick(6)
    assert isinstance(late.error, CallTimedOut) and isinstance(behind.error, CallTimedOut)
    next_one = session.request(QueueQuery("next"))
    pair.link.send(10, QueueQueryResponseV3(exists=False, name="late"))
    pair.run()
    answer = next_one.result()
    assert isinstance(answer, QueueQueryResponseV3) and answer.name == "next"


def test_a_call_timeout_of_minus_1_is_no_limit() -> None:
    pair = connected(call_timeout_ns=-1, ping_period_ns=-1, ttl_ns=-1)
    session = pair.session()
    pair.run()
    reply = session.request(QueueQuery("late"))
    pair._out.clear()  # the question is held up in the network
    pair.tick(1)
    assert not reply.done
    pair.link.send(10, QueueQueryResponseV3(exists=False, name="late"))
    pair.run()
    assert isinstance(reply.result(), QueueQueryResponseV3)


def test_errors_that_answer_no_request_are_told() -> None:
    pair = connected()
    pair.session()
    pair.run()
    pair.link.send(10, ExceptionResponse(106, "gone"))
    pair.run()
    assert [error.code for error in pair.events.errors] == [106]


def test_pings_go_out_and_silence_ends_the_connection() -> None:
    pair = connected(ttl_ns=60_000_000_000, ping_period_ns=30_000_000_000)
    for _ in range(30):
        pair.tick(10)
        pair.run()
    assert len(pair.link.packets(Ping)) == 11
    assert not [told for told in pair.events.told if told.startswith("broken")]
    for _ in range(7):
        pair.tick(10)
    assert pair.events.told[-1] == "broken: nothing was heard for 60 s"


def test_who_stood_still_himself_asks_before_he_complains() -> None:
    pair = connected(ttl_ns=60_000_000_000, ping_period_ns=30_000_000_000)
    pair.tick(300)
    assert pair.events.told == ["ready"]
    pair.run()  # the ping is answered
    pair.tick(1)
    assert pair.events.told == ["ready"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x02ab",
        b"\x7f\xff\xff\xff" + bytes(9),
        b"\x00\x00\x00\x09\x4b" + (10).to_bytes(8, "big"),
        codec.encode(NullResponse(7), 10)[:-3].replace(b"\x00\x00\x00\x11", b"\x00\x00\x00\x0e", 1),
    ],
)
def test_nonsense_ends_the_connection_with_a_reason(data: bytes) -> None:
    pair = connected()
    session = pair.session()
    pair.run()
    session.producer("q").send_message(encoded("x"))
    pair.client.feed(1, data)
    broken = [told for told in pair.events.told if told.startswith("broken")]
    # A short NULL_RESPONSE is none of ours: whatever it says, nobody is waiting for it.
    assert len(broken) == 1 or data[4] == 21


def test_the_topology_follows_the_brokers_word() -> None:
    pair = connected()
    there = TransportConfiguration.tcp("there", "h2", 7)
    pair.link.send(
        0,
        ClusterTopologyV4(
            exit=False, node_id="node-2", event_id=5, primary=there, server_version=136
        ),
    )
    pair.run()
    members = pair.client.topology
    assert [(m.host, m.port) for m in members.values()] == [("127.0.0.1", 61616), ("h2", 7)]
    pair.link.send(
        0, ClusterTopologyV2(exit=True, node_id="node-2", event_id=4)
    )  # older than what is known
    pair.run()
    assert "node-2" in pair.client.topology
    pair.link.send(0, ClusterTopologyV2(exit=True, node_id="node-2", event_id=6))
    pair.run()
    assert list(pair.client.topology) == ["node-1"]


def test_a_member_that_left_while_the_client_was_away_is_forgotten() -> None:
    pair = connected()
    there = TransportConfiguration.tcp("there", "h2", 7)
    pair.link.send(0, ClusterTopologyV4(False, "node-2", 5, there, None, False, None, None, 136))
    pair.run()
    pair.cut()
    assert list(pair.client.topology) == ["node-1", "node-2"]
    pair.dial()  # this broker tells of itself alone
    assert list(pair.client.topology) == ["node-1"]


def test_good_bye_is_told() -> None:
    pair = connected()
    pair.link.good_bye()
    pair.run()
    assert pair.events.told[-2:] == ["disconnected: 4", "broken: the broker said good-bye"]


def test_a_session_with_a_window_confirms_what_it_receives() -> None:
    pair = connected()
    session = pair.session(confirmation_window=500)
    pair.run()
    pair.broker.queues["q"] = deque()
    for number in range(20):
        pair.broker.publish(encoded(str(number)))
    session.start()
    session.consumer("q")
    pair.run()
    assert pair.link.packets(PacketsConfirmed)
    pair.tick(1)
    pair.run()
    # 20 deliveries and the answer to the consumer's creation, counted from 0.
    assert pair.link.packets(PacketsConfirmed)[-1] == PacketsConfirmed(20)


def test_without_resume_a_loss_fails_everything() -> None:
    pair = connected(resume=False)
    session = pair.session()
    pair.run()
    pair.broker.confirm = False
    producer = session.producer("q")
    producer.send_message(encoded("x"))
    pair.run()
    question = session.request(QueueQuery("q"))
    pair.cut()
    assert isinstance(question.error, ConnectionLost)
    assert [type(error) for error in producer.errors] == [ConnectionLost]
    assert not pair.client.sessions


def test_close_tells_who_waits() -> None:
    pair = connected()
    session = pair.session()
    pair.run()
    question = session.request(QueueQuery("q"))
    pair.client.close()
    assert isinstance(question.error, Closed)
    with pytest.raises(Closed):
        session.producer("q")
    assert issubclass(QueueExists, BrokerRefused)
