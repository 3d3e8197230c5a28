"""The consumers of the client's engine: credits, acknowledgements, large messages."""

from __future__ import annotations

from collections import deque

import pytest

from atalanta.message.message import Message
from atalanta.wire.core.client.consumer import FORCES_MAX, ClientConsumer
from atalanta.wire.core.client.errors import (
    QueueDoesNotExist,
)
from atalanta.wire.core.packets.consumer import (
    Acknowledge,
    ConsumerClose,
    DisconnectConsumer,
    FlowToken,
    IndividualAcknowledge,
)
from atalanta.wire.core.packets.message import (
    ReceiveContinuation,
    ReceiveLargeMessage,
)
from tests.wire.core.client.engine_rig import Pair, connected, encoded, pending, taken


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
    """Takes the texts from the buffer."""
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
    # An Artemis node waits for this when its operator has closed the consumer.
    assert [str(packet) for packet in pair.link.packets(ConsumerClose)] == [str(ConsumerClose(0))]
