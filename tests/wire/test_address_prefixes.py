"""anycastPrefix and multicastPrefix of an acceptor: such names mean the plain address and its routing type."""

from __future__ import annotations

import pytest

from atalanta.config.acceptors import parse_acceptor
from atalanta.kernel.errors import SECURITY
from atalanta.kernel.memory.memory import WAITING_ADDRESSES_MAX
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.message.message import Message
from atalanta.wire.address_prefixes import AddressPrefixes
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets.producer import ProducerCredits, RequestProducerCredits
from atalanta.wire.core.packets.query import (
    BindingQuery,
    BindingQueryResponseV5,
    QueueQuery,
    QueueQueryResponseV3,
)
from atalanta.wire.core.packets.queue import (
    CreateAddress,
    CreateQueue,
    CreateQueueV2,
    CreateSharedQueueV2,
    DeleteQueue,
)
from tests.wire.core.server.large_rig import body_of, send_large
from tests.wire.core.server.server_rig import Client, Server

ACCEPTOR = "tcp://0.0.0.0:61616?anycastPrefix=jms.queue.;multicastPrefix=jms.topic.,topic://"


def connected(server: Server | None = None, user: str = "admin") -> tuple[Server, Client]:
    server = server or Server(acceptor=parse_acceptor("old", ACCEPTOR))
    return server, server.login(user)


def publish(client: Client, address: str, body: bytes) -> None:
    client.succeeds(
        SendMessage(
            Message.create(address, body, 4, True, 0, 4),
            requires_response=True,
            correlation=1,
            sender_id=1,
        )
    )


def test_a_message_to_a_prefixed_name_reaches_the_plain_address_with_its_routing_type() -> None:
    server, client = connected()
    client.create_queue("orders", "both", ANYCAST)
    client.create_queue("archive", "both", MULTICAST)
    publish(client, "jms.queue.both", b"one")
    publish(client, "jms.topic.both", b"many")
    publish(client, "topic://both", b"more")
    publish(client, "both", b"all")
    queues = server.broker.queues
    assert [r.message.body for r in queues["orders"].references] == [b"one", b"all"]
    assert [r.message.body for r in queues["archive"].references] == [b"many", b"more", b"all"]
    assert {r.message.address for r in queues["archive"].references} == {"both"}


def test_what_is_created_by_itself_has_the_plain_name() -> None:
    server, client = connected()
    publish(client, "jms.queue.orders", b"x")
    assert list(server.broker.queues) == ["orders"]
    assert server.broker.queues["orders"].spec.routing_type == ANYCAST
    client.send(CreateConsumer(consumer_id=0, queue="jms.queue.orders", requires_response=False))
    client.send(FlowToken(0, -1))
    (got,) = client.packets(ReceiveMessage)
    assert (bytes(got.message.body), got.message.address) == (b"x", "orders")


@pytest.mark.parametrize(
    ("request_", "queue", "address", "routing_type"),
    [
        (
            CreateQueueV2(address="jms.queue.a", queue="jms.queue.q", routing_type=MULTICAST),
            "q",
            "a",
            ANYCAST,
        ),
        (CreateQueueV2(address="jms.topic.a", queue="q", routing_type=-1), "q", "a", MULTICAST),
        (CreateQueueV2(address="a", queue="q", routing_type=ANYCAST), "q", "a", ANYCAST),
        (CreateQueue(address="jms.queue.a", queue="q"), "q", "a", ANYCAST),
        (CreateQueue(address="topic://a", queue="q"), "q", "a", MULTICAST),
        (CreateSharedQueueV2(address="jms.topic.a", queue="jms.topic.q"), "q", "a", MULTICAST),
    ],
)
def test_queues_are_made_and_deleted_under_their_plain_names(
    request_: CreateQueue | CreateSharedQueueV2, queue: str, address: str, routing_type: int
) -> None:
    server, client = connected()
    client.succeeds(request_)
    spec = server.broker.queues[queue].spec
    assert (spec.address, spec.routing_type) == (address, routing_type)
    client.succeeds(DeleteQueue("jms.queue." + queue))
    assert queue not in server.broker.queues


def test_an_address_has_the_routing_type_of_its_prefix() -> None:
    server, client = connected()
    client.succeeds(CreateAddress(address="jms.topic.news", routing_types=[ANYCAST]))
    address = server.broker.addresses["news"]
    assert (address.anycast, address.multicast) == (False, True)


def test_questions_are_about_the_plain_names() -> None:
    _, client = connected()
    client.create_queue("orders")
    found = client.call(QueueQuery("jms.queue.orders"))
    assert isinstance(found, QueueQueryResponseV3)
    assert (found.exists, found.name, found.address) == (True, "orders", "orders")
    bound = client.call(BindingQuery("jms.queue.orders"))
    assert isinstance(bound, BindingQueryResponseV5)
    assert (bound.exists, bound.queue_names) == (True, ["orders"])


def test_credits_come_under_the_name_they_were_asked_for() -> None:
    _, client = connected()
    client.create_queue("orders")
    for name in ("jms.queue.orders", "orders", "jms.topic.orders"):
        client.send(RequestProducerCredits(1_000, name))
        assert [each.address for each in client.packets(ProducerCredits)] == [name]


def test_a_large_message_too() -> None:
    server, client = connected()
    client.create_queue("orders")
    send_large(client, "jms.queue.orders", body_of(300_000), True)
    server.settle()
    (reference,) = server.broker.queues["orders"].references
    assert (reference.message.address, reference.message.routing_type) == ("orders", ANYCAST)


def test_full_names_keep_their_queue() -> None:
    server, client = connected()
    client.create_queue("eu", "orders", ANYCAST)
    client.create_queue("us", "orders", ANYCAST)
    for number in range(3):
        publish(client, "jms.queue.orders::us", b"%d" % number)
    assert server.broker.queues["us"].message_count == 3


def test_permissions_are_those_of_the_plain_address() -> None:
    server, admin = connected()
    admin.create_queue("orders")
    server.security.add_rule("orders", {"send": ["guest", "admin"]})
    _, guest = connected(server, "guest")
    publish(guest, "jms.queue.orders", b"x")
    code, text = guest.fails(
        SendMessage(
            Message.create("jms.queue.secret", b"", 4, True, 0, 4),
            requires_response=True,
            correlation=1,
            sender_id=1,
        )
    )
    assert code == SECURITY and "secret" in text


def test_without_prefixes_names_are_as_written() -> None:
    server = Server(acceptor=parse_acceptor("new", "tcp://0.0.0.0:61616"))
    client = server.login()
    publish(client, "jms.queue.orders", b"x")
    assert list(server.broker.addresses) == ["jms.queue.orders"]


def test_the_longest_prefix_counts() -> None:
    prefixes = AddressPrefixes("jms.,jms.queue.", "jms.topic. , ,")
    assert prefixes.split("jms.queue.a") == ("a", ANYCAST)
    assert prefixes.split("jms.topic.a") == ("a", MULTICAST)
    assert prefixes.split("jms.a") == ("a", ANYCAST)
    assert prefixes.split("a.jms.") == ("a.jms.", -1)


def test_who_asks_again_and_again_while_it_waits_is_answered_once_under_its_own_name() -> None:
    """And what is remembered of it does not grow."""
    server, client = connected()
    client.create_queue("orders", "orders", ANYCAST)
    server.broker.memory.set_disk_full(True)
    for _ in range(100):
        client.send(RequestProducerCredits(1, "jms.queue.orders"))
    for number in range(2 * WAITING_ADDRESSES_MAX):
        client.send(RequestProducerCredits(1, f"jms.queue.a{number}"))
    (connection,) = server.cores()
    (session,) = connection.sessions.values()
    assert session.prefixes is not None
    assert session.prefixes.asked["orders"] == ["jms.queue.orders"]
    assert len(session.prefixes.asked) <= WAITING_ADDRESSES_MAX
