"""What cannot be encoded for a client of CORE or STOMP costs nobody a connection, or its own client alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.message.properties import SHORT, Int
from atalanta.wire.core.packets.query import QueueQueryResponseV3
from atalanta.wire.core.transport import TransportConfiguration
from tests.wire.stomp.stomp_rig import StompServer


@pytest.fixture
def server() -> Iterator[StompServer]:
    made = StompServer()
    yield made
    validate(made.broker)


def spoil(server: StompServer, text: str) -> None:
    """Gives the message with the body a property that no encoding can have."""
    for message in server.broker.store.messages.values():
        if message.text() == text:
            message.properties.entries["n"] = (SHORT, 1 << 20)
            message.properties_changed()


def reported(server: StompServer, name: str) -> list[dict[str, object]]:
    return [fields for event, fields in server.trace.events if event == name]


@pytest.mark.parametrize("pre_acknowledge", [False, True])
def test_a_message_that_cannot_be_encoded_is_set_aside_for_a_core_client(
    server: StompServer, pre_acknowledge: bool
) -> None:
    sender, receiver = server.login("admin"), server.login("admin", pre_acknowledge=pre_acknowledge)
    sender.create_queue("a")
    sender.publish("a", "spoiled")
    sender.publish("a", "good")
    spoil(server, "spoiled")
    receiver.consume("a")
    server.settle()
    assert receiver.bodies() == ["good"]
    assert sender.closed is None and receiver.closed is None
    (fields,) = reported(server, "message_not_convertible")
    assert fields["queue"] == "a"
    server.settle()
    assert server.broker.queues["a"].message_count == (0 if pre_acknowledge else 1)


def test_topology_and_answers_of_core(server: StompServer) -> None:
    receiver, other = server.login("admin"), server.login("admin")
    connection = server.core(receiver.conn)
    for _ in range(2):
        connection.member_down("node", 1 << 70)
    connection.member_up("node", 1 << 70, TransportConfiguration("c"), None, True, None, None)
    server.settle()
    assert receiver.closed is None
    assert server.trace.counters["commands_left_out"] == 3
    assert [fields["command"] for fields in reported(server, "command_left_out")] == [
        "CLUSTER_TOPOLOGY_V2", "CLUSTER_TOPOLOGY_V4",
    ]  # fmt: skip
    server.trace.expects_failures = True
    connection.sessions[10].reply(QueueQueryResponseV3(exists=True, message_count=1 << 70))
    server.settle()
    assert server.wire.closed.keys() == {receiver.conn} and other.conn in server.connections
    assert "command_failed" in server.wire.closed[receiver.conn]
    (fields,) = reported(server, "command_failed")
    assert fields["protocol"] == "CORE"


def test_a_message_that_cannot_be_encoded_is_set_aside_for_a_stomp_client(server: StompServer) -> None:
    sender, receiver = server.login("admin"), server.stomp_client()
    sender.create_queue("a")
    sender.publish("a", "spoiled")
    sender.publish("a", "good")
    for message in server.broker.store.messages.values():
        if message.text() == "spoiled":
            message.properties.entries[5] = (SHORT, 1)  # type: ignore[index]
    receiver.subscribe("a", ack="client")
    assert receiver.texts() == ["good"]
    assert sender.closed is None and receiver.closed is None
    (fields,) = reported(server, "message_not_convertible")
    assert fields["queue"] == "a"
    assert server.broker.queues["a"].message_count == 1


def test_a_notification_that_cannot_be_encoded_is_left_out(server: StompServer) -> None:
    listener = server.login("admin")
    listener.create_queue("n", "activemq.notifications", 0)
    listener.consume("n")
    server.settle()
    listener.receive()
    notifications = server.management.notifications
    for name in ("TOO_LARGE", "GOOD"):
        notifications.publish(server.now, name, {"count": Int(1 << 40 if name == "TOO_LARGE" else 1)})
    server.settle()
    found = [each.message.properties.get("_AMQ_NotifType") for each in listener.deliveries()]
    assert found == ["GOOD"] and listener.closed is None
    (fields,) = reported(server, "command_left_out")
    assert fields["command"] == "notification TOO_LARGE"
