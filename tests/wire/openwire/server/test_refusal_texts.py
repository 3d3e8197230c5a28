"""Texts of refusals, which JMS clients show: names as ActiveMQ writes them, nothing of the language of the broker."""

from __future__ import annotations

import re

import pytest

from atalanta.wire.openwire.commands.brokers import BrokerInfo
from atalanta.wire.openwire.commands.connections import ConnectionError, RemoveInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo, MessagePull
from atalanta.wire.openwire.commands.deliveries import MessageAck
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTempTopic,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import BrokerId, ConsumerId, MessageId, ProducerId
from atalanta.wire.openwire.commands.transactions import XATransactionId
from atalanta.wire.openwire.encoding.structure import Command, DataStructure
from tests.kernel.broker_rig import SECOND, RecordingEndpoint
from tests.wire.openwire.server.openwire_rig import OpenWireServer

PYTHON = re.compile(r"None|True|False|b'|_id|_name|Error\b|\w+\(\w+=|object at")
CONSUMER = ConsumerId("ID:h-1-2-3:1", 2, 3)
MESSAGE = MessageId(None, ProducerId("ID:h-1-2-3:1", 2, 3), 4, 99)


@pytest.mark.parametrize(
    ("structure", "text"),
    [
        (ActiveMQQueue("q"), "queue://q"), (ActiveMQTopic("t"), "topic://t"),
        (ActiveMQTempQueue("ID:1"), "temp-queue://ID:1"), (ActiveMQTempTopic("ID:1"), "temp-topic://ID:1"),
        (CONSUMER, "ID:h-1-2-3:1:2:3"), (MESSAGE, "ID:h-1-2-3:1:2:3:4"), (MessageId("ID:view"), "ID:view"),
        (BrokerId("one"), "one"), (XATransactionId(1, b"\1", b"\2"), "1:01:02"), (ConsumerInfo(), "ConsumerInfo"),
    ],
)  # fmt: skip
def test_identifiers_are_written_as_activemq_writes_them(structure: DataStructure, text: str) -> None:
    assert f"{structure}" == text


@pytest.mark.parametrize(
    "command",
    [
        MessagePull(CONSUMER, ActiveMQQueue("q")),
        MessagePull(None, ActiveMQQueue("q")),
        MessageAck(ActiveMQQueue("q"), None, CONSUMER, 2, MESSAGE, MESSAGE, 1),
        RemoveInfo(MESSAGE),
        RemoveInfo(None),
        ConsumerInfo(CONSUMER, destination=ActiveMQTopic("t"), subscription_name="x" * 5_000),
        BrokerInfo(),
    ],
    ids=str,
)
def test_refusals_have_no_python_in_them(server: OpenWireServer, command: Command) -> None:
    _, text = server.openwire_client().fails(command)
    assert text and not PYTHON.search(text), text


@pytest.mark.parametrize("value", [True, 1.5, "soon", "x" * 500])
def test_a_property_that_is_no_number(server: OpenWireServer, value: object) -> None:
    client = server.openwire_client()
    message = client.message("1", "a", properties={"AMQ_SCHEDULED_DELAY": value})
    _, text = client.fails(message)
    assert "AMQ_SCHEDULED_DELAY" in text and not PYTHON.search(text) and len(text) < 120, text


def test_a_deleted_queue_is_named_to_its_consumer(server: OpenWireServer) -> None:
    client = server.openwire_client()
    destination: ActiveMQDestination = ActiveMQQueue("q")
    client.consume(destination)
    broker = server.broker
    broker.queue_registry.delete(server.now, "q", "deleted by an operator")
    told = [each for each in client.output() if isinstance(each, ConnectionError)]
    assert told[0].exception is not None
    text = told[0].exception.message or ""
    assert "the consumer of queue://q has ended" in text and not PYTHON.search(text)


def test_a_consumer_of_a_leased_queue_is_told_for_how_long_and_how_to_end_it(server: OpenWireServer) -> None:
    server.queue("q")
    server.broker.log_views.lease(server.now, "q", "spark", "vm/1/ab", 300 * SECOND, 0, RecordingEndpoint(), 1)
    server.settle()
    client = server.openwire_client()
    kind, text = client.fails(client.consumer_info("q"))
    assert "is leased to the log-view group spark of vm/1/ab for 300 s more" in text
    assert "`atalanta queue end-lease q` ends it and removes no message" in text and not PYTHON.search(text)
    server.broker.log_views.end_lease(server.now, server.broker.queues["q"], "user admin from h:1", -1)
    server.settle()
    client.consume("q")
