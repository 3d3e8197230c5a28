"""Classic's statisticsBrokerPlugin: figures by message."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.tasks import TASKS_TIMER
from atalanta.management.statistics import REQUESTS_MAX
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.encoding.primitives import decode_map
from tests.config.harmless.classic_node import ClassicFile
from tests.wire.classic_server import ThreeProtocols
from tests.wire.openwire.server.openwire_rig import OpenWireClient

PLUGIN = "<plugins><statisticsBrokerPlugin/></plugins>"
END = "ActiveMQ.Statistics.Destination.List.End.With.Null"
GUARDED = (
    "<plugins><statisticsBrokerPlugin/><simpleAuthenticationPlugin><users>"
    "<authenticationUser username='monitor' password='monitor' groups='monitors'/>"
    "<authenticationUser username='other' password='other' groups='others'/></users></simpleAuthenticationPlugin>"
    "<authorizationPlugin><map><authorizationMap><authorizationEntries>"
    "<authorizationEntry queue='&gt;' read='admins' write='admins' admin='admins'/>"
    "<authorizationEntry queue='ActiveMQ.Statistics.&gt;' read='monitors' write='monitors' admin='monitors'/>"
    "</authorizationEntries></authorizationMap></map></authorizationPlugin></plugins>"
)


@pytest.fixture
def server(tmp_path: Path) -> ThreeProtocols:
    return ClassicFile('brokerName="shop"', PLUGIN).node(tmp_path)


def asked(client: OpenWireClient, name: str, topic: bool = False, **more: object) -> list[dict[str, object]]:
    """The answers to a request, in a temporary queue."""
    replies = client.temporary_queue(client.consumers + 1)
    client.consume(replies)
    destination: ActiveMQDestination = ActiveMQTopic(name) if topic else ActiveMQQueue(name)
    client.succeeds(client.message("", destination, reply_to=replies, correlation_id="7", **more))  # type: ignore[arg-type]
    found: list[dict[str, object]] = []
    for each in client.dispatches():
        message = each.message
        assert message is not None and message.code() == codes.MAP_MESSAGE
        assert (message.correlation_id, message.jms_type, message.persistent) == ("7", "Advisory", False)
        found.append({} if not message.content else decode_map(message.content, "map", 100, 0))
    return found


def test_the_figures_of_the_broker(server: ThreeProtocols) -> None:
    client = server.openwire_client()
    for name in ("a", "a", "b"):
        client.publish("text", name)
    client.consume("a", prefetch=1)
    (got,) = client.dispatches()
    client.ack(got)
    client.dispatches()
    (figures,) = asked(client, "ActiveMQ.Statistics.Broker")
    assert figures["brokerName"] == "shop" and figures["brokerId"] == client.broker.broker_id.value  # type: ignore[union-attr]
    assert [figures[name] for name in ("size", "enqueueCount", "dequeueCount", "inflightCount")] == [2, 3, 1, 1]


def test_the_figures_of_destinations(server: ThreeProtocols) -> None:
    client = server.openwire_client()
    for name in ("shop.a", "shop.b", "other"):
        client.publish("text", name)
    client.consume(ActiveMQTopic("shop.news"))
    named = asked(client, "ActiveMQ.Statistics.Destination.shop.a")
    assert [(each["destinationName"], each["size"]) for each in named] == [("queue://shop.a", 1)]
    listed = asked(client, f"ActiveMQ.Statistics.Destination.shop.>{END}")
    assert [each.get("destinationName") for each in listed] == ["queue://shop.a", "queue://shop.b", None]
    topics = asked(client, "ActiveMQ.Statistics.Destination.>", topic=True, properties={END: True})
    assert [(each.get("destinationName"), each.get("consumerCount")) for each in topics] == [
        ("topic://shop.news", 1), (None, None),
    ]  # fmt: skip
    assert asked(client, "ActiveMQ.Statistics.Destination.absent") == []


def test_the_figures_of_consumers(server: ThreeProtocols) -> None:
    client, reader = server.openwire_client("c"), server.openwire_client("r")
    reader.consume("q", selector="color = 'red'")
    client.publish("1", "q", properties={"color": "red"})
    reader.dispatches()
    found = asked(client, "ActiveMQ.Statistics.Subscription")
    (figures,) = [each for each in found if each["destinationName"] == "q"]
    assert (figures["clientId"], figures["selector"], figures["dispatchedQueueSize"]) == ("r", "color = 'red'", 1)


def test_only_who_may_send_there_is_answered_and_only_where_it_may_send(tmp_path: Path) -> None:
    server = ClassicFile(inside=GUARDED).node(tmp_path)
    monitor, other = server.openwire_client("m", "monitor"), server.openwire_client("o", "other")
    assert len(asked(monitor, "ActiveMQ.Statistics.Broker")) == 1
    kind, _ = other.fails(other.message("", "ActiveMQ.Statistics.Broker", reply_to=other.temporary_queue()))
    assert kind == "java.lang.SecurityException"
    kind, _ = monitor.fails(monitor.message("", "ActiveMQ.Statistics.Broker", reply_to=ActiveMQQueue("orders")))
    assert kind == "java.lang.SecurityException" and "orders" not in server.broker.queues


def test_answers_end_where_their_address_is_full_or_absent(tmp_path: Path) -> None:
    server = ClassicFile(inside=PLUGIN, policy='memoryLimit="50kb"').node(tmp_path)
    client = server.openwire_client()
    for number in range(60):
        client.publish("text", f"shop.{number}")
    client.publish("text", "replies")
    for name in ("replies", "absent"):
        request = client.message("", ActiveMQQueue("ActiveMQ.Statistics.Destination.>"), reply_to=ActiveMQQueue(name))
        client.succeeds(request)
        told = [event for event, _ in server.trace.events if event.startswith("statistics_")]
        assert told == ["statistics_reply_lost"] * (1 + (name == "absent"))
    assert 2 < server.broker.queues["replies"].message_count < 60


def test_over_stomp(tmp_path: Path) -> None:
    server = ClassicFile(inside=PLUGIN, scheme="auto").node(tmp_path)
    client = server.stomp_client()
    client.subscribe("/temp-queue/replies")
    client.receipt("SEND", "", destination="/queue/ActiveMQ.Statistics.Broker", reply_to="/temp-queue/replies")
    (answer,) = client.messages()
    assert b'"brokerName": "localhost"' in answer.body


def test_without_the_plugin_it_is_a_queue(tmp_path: Path) -> None:
    server = ClassicFile().node(tmp_path)
    client = server.openwire_client()
    assert asked(client, "ActiveMQ.Statistics.Broker") == []
    assert server.broker.queues["ActiveMQ.Statistics.Broker"].message_count == 1


def test_many_answers_go_in_turns_and_none_is_lost(server: ThreeProtocols) -> None:
    core = server.login()
    for number in range(300):
        core.create_queue(f"q{number}")
    core.create_queue("replies")
    request = server.message("ActiveMQ.Statistics.Destination.q*")
    request.put_property("JMSReplyTo", "replies")
    server.session().send(server.now, request, SILENT)
    assert len(server.broker.store.tasks.waiting) == 1
    turns = 0
    while server.broker.store.tasks.waiting:
        server.broker.on_timer(server.now, TASKS_TIMER)
        server.broker.flush(server.now)
        turns += 1
    server.settle()
    assert turns > 1 and server.broker.queues["replies"].message_count == 300


def test_a_client_cannot_have_any_number_of_answers_made(server: ThreeProtocols) -> None:
    client = server.openwire_client()
    replies = client.temporary_queue()
    handler = server.broker.session_services.request_prefixes["ActiveMQ.Statistics."]
    handler.__self__.unanswered = REQUESTS_MAX  # type: ignore[attr-defined]
    _, text = client.fails(client.message("", "ActiveMQ.Statistics.Broker", reply_to=replies))
    assert "100 requests" in text


def test_a_full_address_gets_no_answers(tmp_path: Path) -> None:
    full = "<destinationPolicy><policyMap><policyEntries><policyEntry queue='replies' memoryLimit='20kb'>"
    full += "<pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy></policyEntry></policyEntries></policyMap>"
    server = ClassicFile(inside=PLUGIN + full + "</destinationPolicy>").node(tmp_path)
    core, client = server.login(), server.openwire_client()
    for number in range(100):
        core.create_queue(f"q{number}")
    core.create_queue("replies")
    request = client.message("", "ActiveMQ.Statistics.Destination.>", reply_to=ActiveMQQueue("replies"))
    client.succeeds(request)
    assert 0 < server.broker.addresses["replies"].account.bytes < 25_000
    assert "statistics_reply_lost" in [name for name, _ in server.trace.events]


def test_requests_are_answered_although_somebody_consumes_from_their_queue(server: ThreeProtocols) -> None:
    thief = server.openwire_client("t")
    thief.consume("ActiveMQ.Statistics.Broker")
    assert len(asked(server.openwire_client(), "ActiveMQ.Statistics.Broker")) == 1
    assert thief.dispatches() == []
