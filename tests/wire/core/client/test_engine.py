"""The client's engine against a broker in memory: handshake, requests, topology, endings."""

from __future__ import annotations

from collections import deque

import pytest

from atalanta.wire.core.client.errors import (
    BrokerRefused,
    CallTimedOut,
    Closed,
    ConnectionLost,
    NotAuthorized,
    QueueExists,
)
from atalanta.wire.core.client.settings import SessionSettings
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.connection import (
    ExceptionResponse,
    NullResponse,
    PacketsConfirmed,
    Ping,
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
from tests.wire.core.client.engine_rig import Pair, connected, encoded


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


def test_what_a_server_says_at_first_counts_whatever_its_number() -> None:
    """A deposed broker had told this client of itself once more, with a number that nobody else has heard."""
    pair = connected()
    deposed = TransportConfiguration.tcp("there", "deposed", 7)
    pair.link.send(0, ClusterTopologyV4(False, "node-1", 9, deposed, None, False, None, None, 136))
    pair.run()
    assert pair.client.topology["node-1"].host == "deposed"
    pair.cut()
    pair.dial()  # to the broker that serves: its number is 1
    member = pair.client.topology["node-1"]
    assert (member.host, member.event_id) == ("127.0.0.1", 1)


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
