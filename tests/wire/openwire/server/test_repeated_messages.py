"""Messages that differ in id, times and body only are converted by comparison: nobody sees a difference."""

from __future__ import annotations

import pytest

from atalanta.wire.openwire.bodies import text_content
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue, ActiveMQTempQueue
from atalanta.wire.openwire.commands.identifiers import MessageId, ProducerId
from atalanta.wire.openwire.commands.messages import ActiveMQTextMessage, OpenWireMessage
from atalanta.wire.openwire.encoding.primitives import encode_map
from tests.wire.openwire.server.openwire_rig import OpenWireClient, OpenWireServer, id_of

NOW = 1_790_000_000_000
TEXTS = ["", "a", "text", "längere", "null\0", "𝄞", "x" * 128, "y" * 1000]


def made(
    client: OpenWireClient, number: int, producer: int = 1, changes: dict[str, object] | None = None
) -> OpenWireMessage:
    producer_id = ProducerId(client.id, producer, 1)
    message = ActiveMQTextMessage(
        producer_id, ActiveMQQueue("a"), message_id=MessageId(None, producer_id, number), persistent=True, priority=4,
        timestamp=NOW + number, content=text_content(TEXTS[number % len(TEXTS)]),
    )  # fmt: skip
    for name, value in (changes or {}).items():
        setattr(message, name, value)
    return message


def same(sent: OpenWireMessage, dispatch: MessageDispatch) -> None:
    """The delivery has what was sent."""
    got = dispatch.message
    assert got is not None
    for name in (
        "destination", "timestamp", "expiration", "priority", "persistent", "content", "marshalled_properties",
        "jms_type", "correlation_id", "reply_to", "group_id", "producer_id",
    ):  # fmt: skip
        assert getattr(got, name) == getattr(sent, name), name
    assert sent.message_id is not None
    assert id_of(dispatch).producer_sequence_id == sent.message_id.producer_sequence_id
    assert id_of(dispatch).producer_id == sent.producer_id


@pytest.fixture
def server() -> OpenWireServer:
    return OpenWireServer()


@pytest.mark.parametrize("failover", [False, True])
def test_each_message_arrives_as_it_was_sent(server: OpenWireServer, failover: bool) -> None:
    """Numbers with one to three digits; producers in turns; a failover client's ids are checked for repeats, too."""
    sender, consumer = server.openwire_client("s", fault_tolerant=failover), server.openwire_client("c")
    consumer.consume("a")
    for number in range(1, 130):
        sent = made(sender, number, 1 + number // 40 % 2)
        sender.send(sent, True)
        (got,) = consumer.dispatches()
        same(sent, got)
        consumer.ack(got, first=got)
    assert server.broker.queues["a"].message_count == 0


def test_a_repeat_of_a_failover_client_is_found(server: OpenWireServer) -> None:
    sender = server.openwire_client("s", fault_tolerant=True)
    for number in (11, 12, 13, 14, 15, 15, 13, 16):
        sender.succeeds(made(sender, number))
    assert server.broker.queues["a"].message_count == 6


def test_what_differs_is_seen(server: OpenWireServer) -> None:
    sender, consumer = server.openwire_client("s"), server.openwire_client("c")
    consumer.consume("a")
    changes: list[dict[str, object]] = [
        {"correlation_id": "c"}, {"priority": 7}, {"persistent": False}, {"reply_to": ActiveMQQueue("r")},
        {"jms_type": "t"},
        {"marshalled_properties": encode_map("p", {"n": 1})}, {"expiration": NOW * 2}, {"group_id": "g"},
        {"reply_to": ActiveMQTempQueue("ID:gone:1")}, {"content": None},
    ]  # fmt: skip
    number = 10
    for change in changes:
        for more in (None, None, None, change, change, change, None):
            number += 1
            sent = made(sender, number, changes=more)
            sender.send(sent)
            (got,) = consumer.dispatches()
            if isinstance(sent.reply_to, ActiveMQTempQueue):
                sent.reply_to = ActiveMQQueue("ID:gone:1")
            same(sent, got)


def test_core_clients_see_the_same_ids(server: OpenWireServer) -> None:
    """The id of a message that was converted by comparison is that of one that was not."""
    sender = server.openwire_client("s")
    for number in (21, 22, 23, 24):
        sender.succeeds(made(sender, number))
    other = server.openwire_client("t", connection_id=sender.id[3:])
    other.succeeds(made(sender, 24))
    queue = server.broker.queues["a"]
    messages = [reference.message for reference in queue.references]
    assert messages[-1].user_id == messages[-2].user_id
    assert len({message.user_id for message in messages}) == 4


def test_a_message_that_comes_back_is_marked(server: OpenWireServer) -> None:
    sender, consumer = server.openwire_client("s"), server.openwire_client("c")
    for number in range(10, 20):
        sender.succeeds(made(sender, number))
    first = consumer.consume("a")
    got = consumer.dispatches()
    assert [each.redelivery_counter for each in got] == [0] * 10
    consumer.close(first, id_of(got[-1]).broker_sequence_id)
    consumer.consume("a")
    again = consumer.dispatches()
    assert [each.redelivery_counter for each in again] == [1] * 10
    assert [id_of(each).producer_sequence_id for each in again] == list(range(10, 20))
