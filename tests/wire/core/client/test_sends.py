"""The producers of the client's engine: confirmations, credits, large messages."""

from __future__ import annotations

from collections import deque

from atalanta.wire.core.client.errors import (
    AddressFull,
    NotAuthorized,
)
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.packets.message import (
    SendContinuation,
    SendMessage,
)
from atalanta.wire.core.packets.producer import (
    CreateProducer,
    ProducerFailCredits,
    RequestProducerCredits,
)
from tests.wire.core.client.engine_rig import connected, encoded


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
    assert (producer.refused_count, producer.unconfirmed) == (1, 0)  # the other one has its reply


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
