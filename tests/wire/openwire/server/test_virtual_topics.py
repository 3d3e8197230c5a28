"""Virtual topics: the queues of an acceptor's own patterns, wildcards in the topic, and queues that know selectors."""

from __future__ import annotations

import pytest

from atalanta.kernel.routing.virtual_topics import CLASSIC, virtual_topics
from atalanta.wire.openwire.commands.connections import RemoveInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import BrokerId, ConnectionId
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.commands.producers import DestinationInfo
from atalanta.wire.openwire.server.sessions.subscription import NOTHING_DELIVERED
from tests.wire.openwire.server.bridge_rig import bridge
from tests.wire.openwire.server.openwire_rig import OpenWireClient, OpenWireServer, properties


def served(forms: str) -> OpenWireServer:
    made = OpenWireServer()
    made.broker.config.virtual_topic_forms = forms
    return made


@pytest.mark.parametrize(
    ("forms", "queue", "topic"),
    [
        (CLASSIC, "Consumer.A.VirtualTopic.T", "VirtualTopic.T"),
        (CLASSIC, "Consumer.A.VirtualTopic.a.b.c", "VirtualTopic.a.b.c"),
        (CLASSIC, "Consumer.A.VirtualTopic.a.>", "VirtualTopic.a.>"),
        (CLASSIC, "Consumer.A.VirtualTopic.*.b", "VirtualTopic.*.b"),
        (CLASSIC, "Consumer.*.VirtualTopic.T", None),  # consumes from several queues
        (CLASSIC, "Consumer.A.VirtualTopic", None),
        (CLASSIC, "Consumer.A.Other.T", None),
        ("VTC.*.>;2", "VTC.A.anything", "anything"),
        ("VTC.*.>;2", "VTC.A", None),
        ("A.>;1,B.*.>;2,C.*.*.*.EE;3", "A.SomeTopic", "SomeTopic"),
        ("A.>;1,B.*.>;2,C.*.*.*.EE;3", "B.b.SomeTopic.B", "SomeTopic.B"),
        ("A.>;1,B.*.>;2,C.*.*.*.EE;3", "C.c.c.SomeTopic.EE", "SomeTopic.EE"),
        ("A.>;1,B.*.>;2,C.*.*.*.EE;3", "C.c.c.SomeTopic.other", None),
        ("", "Consumer.A.VirtualTopic.T", None),
    ],
)
def test_the_topic_of_a_queue_is_what_stands_behind_the_prefix(forms: str, queue: str, topic: str | None) -> None:
    found = virtual_topics(forms).topic_of(queue)
    assert (None if found is None else found.name) == topic


@pytest.mark.parametrize("damaged", ["A.>", "A.>;x", "A.>;0", "A.>;9", "A..>;1", "A.>;1;selector=true"])
def test_a_damaged_form_is_named(damaged: str) -> None:
    with pytest.raises(ValueError, match="NAME;NUMBER|selectorAware"):
        virtual_topics(damaged)


def test_a_queue_of_a_prefix_of_its_own_gets_what_is_published() -> None:
    server = served("VTC.*.>;2")
    client = server.openwire_client()
    client.consume("VTC.A.prices")
    client.publish("1", ActiveMQTopic("prices"))
    assert client.texts() == ["1"]
    client.publish("only this queue", "VTC.A.prices")
    assert client.texts() == ["only this queue"]
    client.consume("Consumer.A.VirtualTopic.T")
    client.publish("2", ActiveMQTopic("VirtualTopic.T"))
    assert client.texts() == []


def test_a_consumer_of_a_virtual_topic_with_wildcards_has_one_queue(server: OpenWireServer) -> None:
    client = server.openwire_client()
    consumer = client.consume("Consumer.1.VirtualTopic.T.>")
    other = server.openwire_client("o")
    other.consume("Consumer.1.VirtualTopic.T.>")
    for number in range(4):
        client.publish(str(number), ActiveMQTopic(f"VirtualTopic.T.{number}"))
    assert sorted([*client.texts(), *other.texts()], key=str) == ["0", "1", "2", "3"]
    client.close(consumer, NOTHING_DELIVERED)
    assert server.broker.queues["Consumer.1.VirtualTopic.T.>"].spec.address == "VirtualTopic.T.#"


def test_a_queue_that_knows_selectors_takes_what_its_consumers_select() -> None:
    server = served("Consumer.*.VirtualTopic.>;2;selectorAware=true")
    client = server.openwire_client()
    topic = ActiveMQTopic("VirtualTopic.T")
    queue = "Consumer.A.VirtualTopic.T"
    first = client.consume(queue, selector="color = 'red'")
    second = client.consume(queue, selector="color = 'blue'")
    for color in ("red", "green", "blue"):
        client.publish(color, topic, properties={"color": color})
    assert client.texts() == ["red", "blue"]
    client.close(first, NOTHING_DELIVERED)
    client.close(second, NOTHING_DELIVERED)
    assert server.broker.queues[queue].message_count == 2
    spec = server.broker.queues[queue].spec
    taken = spec.filter_text
    browser = client.consume(queue, browser=True, selector="color = 'green'")
    client.close(browser, NOTHING_DELIVERED)
    client.output()
    client.succeeds(DestinationInfo(ConnectionId(client.id), ActiveMQQueue(queue), 0))
    assert spec.filter_text == taken and taken  # who only looks changes nothing
    for color in ("red", "green"):
        client.publish(color, topic, properties={"color": color})
    assert server.broker.queues[queue].message_count == 3
    client.consume(queue)
    client.publish("green", topic, properties={"color": "green"})
    assert client.texts() == ["red", "blue", "red", "green"]


def test_a_local_virtual_topic_keeps_out_what_a_bridge_brings() -> None:
    """`local` of ActiveMQ Classic: each broker of a network has queues of its own for the same topic."""
    server = served("Local.*.>;2;local=true,Consumer.*.VirtualTopic.>;2;selectorAware=true")
    client = server.openwire_client()
    client.consume("Local.A.prices")
    client.consume(ActiveMQTopic("prices"))
    client.consume("Consumer.A.VirtualTopic.T")
    other = bridge(server)
    for name, body in (("prices", "1"), ("VirtualTopic.T", "2")):
        other.succeeds(carried(other, body, ActiveMQTopic(name)))
    assert client.texts() == ["1", "2"]  # the topic's own subscriber
    other.succeeds(carried(other, "3", ActiveMQQueue("Local.A.prices")))  # for the queue itself
    client.publish("4", ActiveMQTopic("prices"))
    assert sorted(client.texts(), key=str) == ["3", "4", "4"]


def carried(other: OpenWireClient, body: str, destination: ActiveMQDestination) -> OpenWireMessage:
    """A message that a bridge brings from its own broker."""
    made = other.message(body, destination)
    made.broker_path = [BrokerId("ID:a")]
    return made


def test_a_local_queue_stays_local_after_a_restart() -> None:
    server = served("Local.*.>;2;local=true")
    client = server.openwire_client()
    client.consume("Local.A.prices")
    client.output()
    server.restart()
    other = bridge(server)
    other.succeeds(carried(other, "1", ActiveMQTopic("prices")))
    assert server.broker.queues["Local.A.prices"].message_count == 0


# -- demand -----------------------------------------------------------------------------------------
def test_a_consumer_of_a_virtual_topic_is_told_as_one_of_the_topic() -> None:
    server = served(CLASSIC)
    server.broker.config.virtual_demand = True
    other, client, stomp = bridge(server), server.openwire_client(), server.login()
    topic = "ActiveMQ.Advisory.VirtualDestination.Consumer.Topic.VirtualTopic.T"
    other.consume(ActiveMQTopic("ActiveMQ.Advisory.VirtualDestination.>"))
    consumer = client.consume("Consumer.A.VirtualTopic.T", selector="color = 'red'")
    client.consume(ActiveMQTopic("VirtualTopic.T"))
    stomp.create_queue("plain")
    stomp.consume("plain")
    (told,) = other.dispatches()
    assert told.message is not None and told.message.destination == ActiveMQTopic(topic)
    info = told.message.data_structure
    assert isinstance(info, ConsumerInfo) and (info.consumer_id, info.selector) == (consumer, "color = 'red'")
    assert info.destination == ActiveMQTopic("VirtualTopic.T") and properties(told)["consumerCount"] == 1
    late = bridge(server, BrokerId("ID:c"), "c")
    late.consume(ActiveMQTopic(f"{topic},ActiveMQ.Advisory.Consumer.Topic.none"))
    assert len(late.dispatches()) == 1
    client.close(consumer)
    (told,) = other.dispatches()
    assert told.message is not None and isinstance(told.message.data_structure, RemoveInfo)


def test_without_the_option_it_is_not() -> None:
    server = served(CLASSIC)
    other, client = bridge(server), server.openwire_client()
    other.consume(ActiveMQTopic("ActiveMQ.Advisory.VirtualDestination.>"))
    client.consume("Consumer.A.VirtualTopic.T")
    assert other.dispatches() == []


def test_a_message_of_a_virtual_topic_says_to_which_topic_it_was_sent(server: OpenWireServer) -> None:
    client = server.openwire_client()
    queue = "Consumer.A.VirtualTopic.T"
    client.consume(queue)
    for text in ("1", "2", "3"):
        client.publish(text, ActiveMQTopic("VirtualTopic.T"))
    client.publish("4", ActiveMQTopic("VirtualTopic.T,other"))
    client.publish("only this queue", queue)
    messages = [each.message for each in client.dispatches()]
    assert [each and each.destination for each in messages] == [ActiveMQQueue(queue)] * 5
    assert [each and each.original_destination for each in messages] == [ActiveMQTopic("VirtualTopic.T")] * 4 + [None]


def test_a_wildcard_consumer_of_a_virtual_topic_sees_each_topic(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.consume("Consumer.A.VirtualTopic.>")
    topics = [ActiveMQTopic(f"VirtualTopic.{name}") for name in ("a", "b", "a", "b")]
    for topic in topics:
        client.publish("m", topic)
    assert [each.message and each.message.original_destination for each in client.dispatches()] == topics
