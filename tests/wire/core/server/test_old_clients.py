"""Clients 1.0 to 1.5: other layouts, names with prefixes, and a session's address that only the first message names."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.message.message import Message
from atalanta.wire.core.packets.connection import (
    DisconnectV2,
    DisconnectV3,
    ExceptionResponse,
)
from atalanta.wire.core.packets.consumer import DisconnectConsumer, ForceConsumerDelivery
from atalanta.wire.core.packets.message import ReceiveLargeMessage, ReceiveMessage, SendMessage
from atalanta.wire.core.packets.query import (
    BindingQuery,
    BindingQueryResponse,
    BindingQueryResponseV2,
    BindingQueryResponseV3,
    QueueQuery,
    QueueQueryResponse,
    QueueQueryResponseV2,
)
from atalanta.wire.core.packets.queue import CreateQueue
from atalanta.wire.core.packets.session import AddMetadata
from atalanta.wire.core.packets.topology import (
    ClusterTopology,
    ClusterTopologyV2,
    ClusterTopologyV3,
    ClusterTopologyV4,
    SubscribeTopologyV2,
)
from atalanta.wire.endpoint import AcceptorConfig
from tests.wire.core.server.large_rig import send_large
from tests.wire.core.server.server_rig import Client, Server, text_message

PREFIXES = AcceptorConfig(
    "a", "127.0.0.1", 1, anycast_prefix="jms.queue.", multicast_prefix="jms.topic."
)


@pytest.fixture
def server() -> Server:
    return Server(acceptor=PREFIXES)


def old_client(server: Server, version: int = 128, jms: bool = True, **more: bool) -> Client:
    """A client of that version with a session on channel 10."""
    client = server.greeted()
    client.version = version
    client.send(SubscribeTopologyV2(False, version), 0)
    answer = client.open_session(10, "admin", "admin", version=version, **more)
    assert not isinstance(answer, ExceptionResponse), answer
    if jms:
        client.succeeds(AddMetadata("jms-session", ""))
    return client


def created(client: Client, name: str, temporary: bool = False) -> None:
    """A queue of such a client, which has no routing type."""
    client.succeeds(CreateQueue(name, name, None, not temporary, temporary, True))


def send(client: Client, address: str, body: str) -> None:
    message = text_message(address, body)
    if not address:
        message = Message.create("", message.body, 3, True, 0, 4)
    client.succeeds(SendMessage(message, requires_response=True))


def received(client: Client) -> list[tuple[str, str]]:
    """(address, text) of each message."""
    client.server.settle()
    return [(each.message.address, each.message.text() or "") for each in client.deliveries()]


@pytest.mark.parametrize("version", [121, 122, 124, 126, 127, 128])
def test_messages_go_there_and_back_in_every_old_version(server: Server, version: int) -> None:
    client = old_client(server, version)
    created(client, "jms.queue.orders")
    send(client, "jms.queue.orders", "é" * 300)
    client.consume("jms.queue.orders")
    assert received(client) == [("jms.queue.orders", "é" * 300)]


def test_an_old_and_a_new_client_share_a_queue_each_by_its_names(server: Server) -> None:
    old, new = old_client(server), server.login()
    created(old, "jms.queue.orders")
    send(old, "jms.queue.orders", "from old")
    new.consume("orders")
    assert received(new) == [("orders", "from old")]
    new.create_queue("answers")
    old.consume("jms.queue.answers")
    new.publish("answers", "from new", kind="x")
    assert received(old) == [("jms.queue.answers", "from new")]


def test_a_core_client_without_jms_gets_the_names_as_they_are(server: Server) -> None:
    client = old_client(server, jms=False)
    created(client, "jms.queue.orders")
    send(client, "jms.queue.orders", "x")
    client.consume("orders")
    assert received(client) == [("orders", "x")]


def test_a_message_without_an_address_is_for_the_one_of_the_first(server: Server) -> None:
    client = old_client(server)
    created(client, "jms.queue.orders")
    created(client, "jms.queue.others")
    send(client, "jms.queue.orders", "1")
    send(client, "", "2")
    send(client, "jms.queue.others", "3")
    send(client, "", "4")
    client.consume("orders")
    assert received(client) == [("jms.queue.orders", text) for text in "124"]
    client.consume("others", 1)
    assert received(client) == [("jms.queue.others", "3")]


def test_a_queue_is_for_one_receiver_and_a_topic_for_all(server: Server) -> None:
    client = old_client(server)
    created(client, "jms.queue.a")
    created(client, "jms.tempqueue.b", temporary=True)
    client.succeeds(CreateQueue("jms.topic.c", "sub", None, False, True, True))
    kinds = {name: server.broker.queues[name].spec.routing_type for name in ("a", "jms.tempqueue.b", "sub")}
    assert kinds == {"a": ANYCAST, "jms.tempqueue.b": ANYCAST, "sub": MULTICAST}
    assert server.broker.queues["jms.tempqueue.b"].spec.temporary


def test_without_prefixes_at_the_acceptor_the_names_stay_as_they_are() -> None:
    server = Server()
    client = old_client(server)
    created(client, "jms.queue.orders")
    send(client, "jms.queue.orders", "x")
    client.consume("jms.queue.orders")
    assert received(client) == [("jms.queue.orders", "x")]
    assert list(server.broker.queues) == ["jms.queue.orders"]


@pytest.mark.parametrize(
    ("version", "queue", "binding"),
    [
        (125, QueueQueryResponse, BindingQueryResponse),
        (126, QueueQueryResponseV2, BindingQueryResponseV2),
        (127, QueueQueryResponseV2, BindingQueryResponseV3),
        (128, QueueQueryResponseV2, BindingQueryResponseV3),
    ],
)
def test_queries_are_answered_as_that_version_reads_them(
    server: Server, version: int, queue: type[QueueQueryResponse], binding: type[BindingQueryResponse]
) -> None:
    client = old_client(server, version)
    created(client, "jms.queue.orders")
    found = client.call(QueueQuery("jms.queue.orders"))
    assert type(found) is queue and found.exists
    assert (found.name, found.address) == ("orders", "jms.queue.orders")
    assert isinstance(found := client.consume("jms.queue.orders"), queue) and found.address == "orders"
    missing = client.call(QueueQuery("jms.queue.missing"))
    assert type(missing) is queue and not missing.exists
    bound = client.call(BindingQuery("jms.queue.orders"))
    assert type(bound) is binding and bound.exists and bound.queue_names == ["jms.queue.orders"]


def test_a_large_message_goes_both_ways(server: Server) -> None:
    client = old_client(server)
    created(client, "jms.queue.orders")
    body = bytes(range(256)) * 1_000
    send_large(client, "jms.queue.orders", body)
    server.settle()
    client.consume("jms.queue.orders")
    server.settle()
    heads = client.packets(ReceiveLargeMessage)
    assert [(head.message.address, head.body_size) for head in heads] == [("jms.queue.orders", len(body))]


def test_a_receive_without_wait_ends_with_its_marker(server: Server) -> None:
    client = old_client(server)
    created(client, "jms.queue.orders")
    client.consume("jms.queue.orders")
    client.send(ForceConsumerDelivery(0, 7))
    server.settle()
    (marker,) = client.packets(ReceiveMessage)
    assert marker.message.properties.get("_hornetq.forced.delivery.seq") == 7
    assert marker.message.address == "jms.queue.orders"


def test_the_message_in_the_queue_keeps_its_address_for_the_next_receiver(server: Server) -> None:
    old = old_client(server)
    created(old, "jms.queue.orders")
    send(old, "jms.queue.orders", "x")
    old.consume("jms.queue.orders", browse=True)
    assert received(old) == [("jms.queue.orders", "x")]
    new = server.login()
    new.consume("orders")
    assert received(new) == [("orders", "x")]


@pytest.mark.parametrize(
    ("version", "kind"),
    [(121, ClusterTopology), (122, ClusterTopologyV2), (125, ClusterTopologyV3), (131, ClusterTopologyV4)],
)
def test_the_topology_comes_in_the_clients_generation(
    server: Server, version: int, kind: type[ClusterTopology]
) -> None:
    client = server.greeted()
    client.version = version
    client.send(SubscribeTopologyV2(False, version), 0)
    assert [type(each) for each in client.packets(ClusterTopology)] == [kind]


@pytest.mark.parametrize(
    ("version", "kind"), [(126, DisconnectV2), (128, DisconnectV2), (130, DisconnectV2), (131, DisconnectV3)]
)
def test_a_node_that_stops_says_so_in_the_clients_generation(server: Server, version: int, kind: type) -> None:
    client = old_client(server, version)
    server.connection(client.conn).stop(server.now)
    assert [type(each) for _, each in client.receive()] == [kind]


@pytest.mark.parametrize(("version", "told"), [(123, 0), (124, 1)])
def test_a_lost_consumer_is_told_to_who_can_read_it(server: Server, version: int, told: int) -> None:
    client = old_client(server, version)
    created(client, "jms.topic.orders")
    client.consume("orders")
    client.receive()
    server.broker.queue_registry.delete(server.now, "orders", "test")
    assert len(client.packets(DisconnectConsumer)) == told
    assert client.closed is None
