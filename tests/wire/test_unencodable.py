"""What cannot be encoded for a client costs nobody a connection, or its own client alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.message.properties import SHORT, Int
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.consumer import ConsumerClose
from atalanta.wire.core.packets.query import QueueQueryResponseV3
from atalanta.wire.core.packets.queue import DeleteQueue
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.openwire.commands.destinations import ActiveMQTopic
from atalanta.wire.openwire.server.advisories.tolerant_observer import TolerantObserver
from tests.wire.classic_server import ThreeProtocols
from tests.wire.stomp.stomp_rig import StompServer

OBSERVED = (
    "on_consumer_added", "on_consumer_removed", "on_queue_added", "on_queue_removed", "on_address_added",
    "on_address_removed", "on_remote_consumers", "on_expired", "on_consumer_slow", "on_session_created",
    "on_connection_destroyed",
)  # fmt: skip


@pytest.fixture
def server() -> Iterator[StompServer]:
    made = StompServer()
    yield made
    validate(made.broker)


def spoil(server: StompServer | ThreeProtocols, text: str) -> None:
    """Gives the message with the body a property that no encoding can have."""
    for message in server.broker.store.messages.values():
        if message.text() == text:
            message.properties.entries["n"] = (SHORT, 1 << 20)
            message.properties_changed()


def reported(server: StompServer | ThreeProtocols, name: str) -> list[dict[str, object]]:
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
            message.properties.entries["x"] = (SHORT,)  # type: ignore[assignment]
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


# -- OpenWire --------------------------------------------------------------------------------------
@pytest.fixture
def three() -> Iterator[ThreeProtocols]:
    made = ThreeProtocols()
    yield made
    validate(made.broker)


@pytest.mark.parametrize("name", ["a,,b", ",", "a,b"])
def test_a_name_that_openwire_clients_would_take_for_several_is_no_matter_of_advisories(
    three: ThreeProtocols, name: str
) -> None:
    """The client of another protocol gets the answer to its own command, and nobody else a refusal."""
    watcher, client = three.openwire_client("w"), three.login("admin")
    watcher.consume(ActiveMQTopic("ActiveMQ.Advisory.>"))
    watcher.dispatches()
    client.create_queue(name)
    client.create_queue("subscription", f"t{name}", 0)
    for number, queue in enumerate((name, "subscription")):
        assert not isinstance(client.consume(queue, number), ExceptionResponse)
        client.succeeds(ConsumerClose(number))
        client.succeeds(DeleteQueue(queue))
    assert not three.broker.queues and f"t{name}" not in three.broker.addresses
    assert not [each for each in watcher.dispatches() if "," in str(each.message.data_structure)]  # type: ignore[union-attr]
    bridge = three.openwire_client("late")
    bridge.consume(ActiveMQTopic("ActiveMQ.Advisory.>"))
    assert client.closed is None and watcher.closed is None


def test_what_advisories_cannot_tell_ends_nobody(three: ThreeProtocols) -> None:
    """The observers of the kernel hear of it when it has changed: nothing may go wrong there."""
    three.trace.expects_failures = True
    called: list[str] = []

    class Failing(ClientObserver):
        pass

    def failure(name: str) -> Callable[..., None]:
        def fails(*_: object) -> None:
            called.append(name)
            raise ValueError(name)

        return fails

    for name in OBSERVED:
        setattr(Failing, name, failure(name))
    advisories = three.openwire.node_clients.advisories
    three.broker.add_observer(TolerantObserver(advisories.watchers, Failing()))
    client = three.login("admin")
    client.create_queue("a")
    assert not isinstance(client.consume("a"), ExceptionResponse)
    client.succeeds(ConsumerClose(0))
    client.succeeds(DeleteQueue("a"))
    three.lost(client.conn)
    assert {"on_queue_added", "on_consumer_added", "on_queue_removed", "on_connection_destroyed"} < set(called)
    assert three.trace.counters["commands_left_out"] == len(called)
    (fields,) = reported(three, "command_left_out")
    assert fields["protocol"] == "OPENWIRE" and fields["command"] == "advisories by Failing"
    assert client.closed is None and "a" not in three.broker.addresses


def test_the_guard_of_advisories_passes_on_all_that_they_tell_of(three: ThreeProtocols) -> None:
    """One that it did not pass on would not be told."""
    for guard in three.openwire.node_clients.advisories.observers:
        assert isinstance(guard, TolerantObserver)
        kind = type(guard.inner)
        for name in dir(ClientObserver):
            if name.startswith("on_") and getattr(kind, name) is not getattr(ClientObserver, name):
                assert name in OBSERVED and name in vars(TolerantObserver), (kind, name)


@pytest.mark.parametrize("origin", [False, True])
def test_a_message_that_cannot_be_encoded_is_set_aside_for_an_openwire_client(
    three: ThreeProtocols, origin: bool
) -> None:
    """Also where its id is found, and the broker's own header is left out."""
    sender, receiver = three.login("admin"), three.openwire_client("r")
    sender.create_queue("a")
    three.broker.origins.seen = origin
    for number in range(20):  # some go by a pattern
        sender.publish("a", "spoiled" if number % 5 == 3 else "good")
    spoil(three, "spoiled")
    receiver.consume("a")
    assert receiver.texts() == ["good"] * 16
    assert sender.closed is None and receiver.closed is None
    assert [fields["queue"] for fields in reported(three, "message_not_convertible")] == ["a"] * 4
    assert three.broker.queues["a"].message_count == 16
