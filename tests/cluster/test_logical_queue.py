"""Clients see a cluster as one broker: queues, topics, subscriptions, temporary queues, diverts, full names."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.message.message import Message
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from atalanta.wire.core.packets.query import BindingQuery, BindingQueryResponseV5
from atalanta.wire.core.packets.queue import CreateSharedQueueV2, DeleteQueue
from tests.cluster.cluster_rig import Client, Rig, cluster_of, count, node_of


def sends(rig: Rig, host: Host, number: int, address: str, kind: int = ANYCAST) -> Client:
    return rig.stored(host, address, [b"%d" % each for each in range(number)], kind)


def in_all(clients: list[Client]) -> list[bytes]:
    return sorted((body for client in clients for body in client.bodies), key=int)


def numbers(count_: int) -> list[bytes]:
    return [b"%d" % each for each in range(count_)]


# -- queues -----------------------------------------------------------------------------------------
def test_queues_of_one_name_on_three_nodes_are_one_for_producers_and_consumers(rig: Rig) -> None:
    """Whoever sends where, a consumer anywhere gets it all; nothing is left and nothing comes twice."""
    hosts = rig.cluster(3, delay_ms=0)
    for number, host in enumerate(hosts):
        producer = rig.sender(host, "orders", [b"%d" % (10 * number + each) for each in range(10)], ANYCAST)
        rig.until(lambda producer=producer: len(producer.answers) == 10)  # type: ignore[misc]
    consumer = rig.consuming(hosts[1])
    rig.until(lambda: len(consumer.bodies) == 30)
    rig.run(1)
    assert in_all([consumer]) == numbers(30)
    assert [count(host, "orders") for host in hosts] == [0, 0, 0]


def test_consumers_on_all_nodes_share_evenly_whoever_sends(rig: Rig) -> None:
    hosts = rig.cluster(3)
    consumers = [rig.client(host) for host in hosts]
    for consumer in consumers:
        consumer.consume("orders")
    rig.run(1)
    sends(rig, hosts[0], 30, "orders")
    rig.until(lambda: len(in_all(consumers)) == 30)
    assert [len(each.bodies) for each in consumers] == [10, 10, 10]
    assert in_all(consumers) == numbers(30)


def test_several_consumers_of_one_node_count_as_one_binding(rig: Rig) -> None:
    """Round robin is over queues, not over consumers (BindingsImpl): three here and one there share half and half."""
    hosts = rig.cluster(2)
    here = [rig.client(hosts[0]) for _ in range(3)]
    there = rig.client(hosts[1])
    for consumer in (*here, there):
        consumer.consume("orders")
    rig.run(1)
    sends(rig, hosts[0], 12, "orders")
    rig.until(lambda: len(in_all([*here, there])) == 12)
    assert (sum(len(each.bodies) for each in here), len(there.bodies)) == (6, 6)


# -- topics and subscriptions -------------------------------------------------------------------------
def test_a_topic_reaches_subscribers_of_all_nodes_once(rig: Rig) -> None:
    hosts = rig.cluster(3)
    subscribers = []
    for number, host in enumerate(hosts):
        for each in range(2):
            client = rig.client(host)
            client.create(f"s{number}{each}", "prices", MULTICAST, durable=False, temporary=True)
            client.consume(f"s{number}{each}")
            subscribers.append(client)
    rig.run(1)
    sends(rig, hosts[1], 5, "prices", MULTICAST)
    rig.until(lambda: all(len(each.bodies) == 5 for each in subscribers))
    assert all(each.bodies == numbers(5) for each in subscribers)


def shared(client: Client, durable: bool = True) -> None:
    client.send(
        CreateSharedQueueV2(
            address="prices", queue="app.sub", durable=durable, routing_type=MULTICAST
        )
    )
    client.consume("app.sub")


@pytest.mark.parametrize("durable", [True, False])
def test_a_subscription_shared_across_nodes_gets_each_message_once(rig: Rig, durable: bool) -> None:
    """Same name on several nodes: they compete, and everybody else has a copy."""
    hosts = rig.cluster(3)
    sharing = [rig.client(host) for host in (hosts[0], hosts[1], hosts[1])]
    for client in sharing:
        shared(client, durable)
    alone = rig.client(hosts[2])
    alone.create("alone", "prices", MULTICAST)
    alone.consume("alone")
    rig.run(1)
    sends(rig, hosts[2], 12, "prices", MULTICAST)
    rig.until(lambda: len(in_all(sharing)) == 12 and len(alone.bodies) == 12)
    rig.run(1)
    assert in_all(sharing) == numbers(12)
    assert [len(each.bodies) for each in sharing] == [6, 3, 3]


def test_a_durable_subscriber_goes_on_at_another_node(rig: Rig) -> None:
    """With redistribution, what was kept for the subscription where it was comes after it."""
    hosts = rig.cluster(3, delay_ms=0)
    first = rig.client(hosts[0])
    shared(first)
    rig.run(1)
    sends(rig, hosts[2], 3, "prices", MULTICAST)
    rig.until(lambda: len(first.bodies) == 3)
    rig.run(1)
    first.kill()
    rig.run(1)
    sends(rig, hosts[2], 4, "prices", MULTICAST)
    rig.until(lambda: count(hosts[0], "app.sub") == 4)
    second = rig.client(hosts[1])
    shared(second)
    rig.until(lambda: second.bodies == numbers(4))
    assert count(hosts[0], "app.sub") == 0


def test_an_unsubscribed_subscription_is_forgotten_everywhere(rig: Rig) -> None:
    hosts = rig.cluster(2)
    client = rig.client(hosts[1])
    shared(client)
    rig.run(1)
    address = node_of(hosts[0]).broker.addresses["prices"]
    assert "app.sub" in address.groups
    client.close()
    client.send(DeleteQueue("app.sub"))
    rig.run(1)
    assert "app.sub" not in address.groups


# -- temporary queues, request and reply ------------------------------------------------------------------
def asks(rig: Rig, host: Host) -> Client:
    client = rig.client(host)
    client.create("reply-1", "reply-1", ANYCAST, durable=False, temporary=True)
    client.consume("reply-1")
    rig.run(1)
    return client


def test_a_request_is_answered_by_another_node(rig: Rig) -> None:
    """The temporary queue is known there before its name arrives, so nothing is made of it by itself."""
    hosts = rig.cluster(3)
    server = rig.consuming(hosts[2])
    client = asks(rig, hosts[0])
    for number in range(4):
        client.publish("orders", b"ask %d" % number, ANYCAST, JMSReplyTo="temp-queue://reply-1")
        rig.until(lambda number=number: len(server.bodies) == number + 1)  # type: ignore[misc]
        server.publish("reply-1", b"answer %d" % number, ANYCAST)
    rig.until(lambda: len(client.bodies) == 4)
    assert client.bodies == [b"answer %d" % number for number in range(4)]
    assert [node_of(host).broker.queues.get("reply-1") is not None for host in hosts] == [
        True, False, False,
    ]  # fmt: skip


def test_a_temporary_queue_of_another_node_is_listed_and_forgotten(rig: Rig) -> None:
    hosts = rig.cluster(2)
    client = asks(rig, hosts[0])
    other = rig.client(hosts[1])
    heard: list[BindingQueryResponseV5] = []
    on_packet = other.on_packet

    def listen(packet: object) -> None:
        if isinstance(packet, BindingQueryResponseV5):
            heard.append(packet)
        else:
            on_packet(packet)  # type: ignore[arg-type]

    other.on_packet = listen  # type: ignore[method-assign]
    other.send(BindingQuery("reply-1"))
    rig.until(lambda: len(heard) == 1)
    assert heard[0].queue_names == ["reply-1node-0"]
    client.kill()
    rig.until(lambda: "reply-1" not in node_of(hosts[1]).broker.addresses)
    assert not [
        name for name in cluster_of(hosts[1]).peers["node-0"].bindings.bindings if "reply" in name
    ]


def test_an_answer_to_a_client_that_is_gone_is_lost_and_nothing_else(rig: Rig) -> None:
    hosts = rig.cluster(2)
    client = asks(rig, hosts[0])
    server = rig.client(hosts[1])
    rig.network.block("n1", "n0")  # the answer is on its way while the client goes
    server.publish("reply-1", b"late", ANYCAST)
    server.publish("orders", b"kept", ANYCAST)
    client.kill()
    rig.run(1)
    rig.network.heal()
    rig.until(lambda: len(server.answers) == 2)
    rig.run(10)
    assert not [name for host in hosts for name in node_of(host).broker.queues if "reply" in name]
    reader = rig.consuming(hosts[0])
    rig.run(1)
    server.publish("orders", b"next", ANYCAST)
    rig.until(lambda: b"next" in reader.bodies)


# -- diverts ----------------------------------------------------------------------------------------------
def diverting(exclusive: bool, at: tuple[int, ...]) -> tuple[Rig, list[Host]]:
    rig = Rig()
    names = ("orders", "copies")
    hosts = rig.cluster(2, queues=[queue(name, name, ANYCAST) for name in names])
    for index in at:
        config = DivertConfig("d", "orders", "copies", ANYCAST, exclusive=exclusive)
        node_of(hosts[index]).broker.diverts.create(config, False)
    return rig, hosts


@pytest.mark.parametrize("at", [(0,), (1,), (0, 1)])
def test_a_divert_copies_at_the_sender_only(at: tuple[int, ...]) -> None:
    """A message that another node forwards has been through the diverts there (BindingsImpl.route)."""
    rig, hosts = diverting(False, at)
    reader = rig.consuming(hosts[1], known_at=hosts[0])
    sends(rig, hosts[0], 3, "orders")
    rig.until(lambda: len(reader.bodies) == 3)
    rig.run(1)
    copies = count(hosts[0], "copies") + count(hosts[1], "copies")
    assert copies == (3 if 0 in at else 0)


def test_copies_of_a_divert_are_shared_like_any_message() -> None:
    rig, hosts = diverting(False, (0,))
    readers = [rig.client(host) for host in hosts]
    for reader in readers:
        reader.consume("copies")
    rig.run(1)
    sends(rig, hosts[0], 6, "orders")
    rig.until(lambda: len(in_all(readers)) == 6)
    assert [len(each.bodies) for each in readers] == [3, 3]
    assert count(hosts[0], "orders") == 6


def test_an_exclusive_divert_at_the_sender_leads_to_another_nodes_consumer() -> None:
    rig, hosts = diverting(True, (0,))
    reader = rig.consuming(hosts[1], "copies")
    rig.run(1)
    sends(rig, hosts[0], 4, "orders")
    rig.until(lambda: len(reader.bodies) == 4)
    assert [count(host, "orders") for host in hosts] == [0, 0]
    assert reader.bodies == numbers(4)


# -- full names ---------------------------------------------------------------------------------------------
def full_names(kind: int) -> tuple[Rig, list[Host]]:
    rig = Rig()
    # Whose queue it is, is seen by the length of a real node id.
    here = rig.node(queues=[queue("eu", "orders", kind)], node_id="a" * 36)
    there = rig.node(
        queues=[queue("eu", "orders", kind), queue("us", "orders", kind)], node_id="b" * 36
    )
    rig.form(here, there)
    return rig, [here, there]


@pytest.mark.parametrize("kind", [ANYCAST, MULTICAST])
def test_a_full_name_reaches_that_queue_wherever_it_is(kind: int) -> None:
    rig, hosts = full_names(kind)
    readers = [rig.client(hosts[1]) for _ in range(2)]
    readers[0].consume("orders::us")
    readers[1].consume("orders::eu")
    rig.run(1)
    sends(rig, hosts[0], 5, "orders::us", kind)
    rig.until(lambda: len(readers[0].bodies) == 5)
    rig.run(1)
    assert readers[0].bodies == numbers(5)
    assert readers[1].bodies == [] and count(hosts[0], "eu") == 0


def test_queues_of_one_full_name_on_two_nodes_share() -> None:
    rig, hosts = full_names(MULTICAST)
    readers = [rig.client(host) for host in hosts]
    for reader in readers:
        reader.consume("orders::eu")
    rig.run(1)
    sends(rig, hosts[0], 6, "orders::eu", MULTICAST)
    rig.until(lambda: len(in_all(readers)) == 6)
    assert [len(each.bodies) for each in readers] == [3, 3]
    assert count(hosts[1], "us") == 0


def test_a_message_keeps_what_it_carries_over_the_cluster(rig: Rig) -> None:
    hosts = rig.cluster(2)
    reader = rig.consuming(hosts[1], known_at=hosts[0])
    producer = rig.client(hosts[0])
    producer.publish(
        "orders", b"body", ANYCAST, colour="red", number=7, _AMQ_DUPL_ID="once", price=1.5
    )
    rig.until(lambda: len(reader.messages) == 1)
    message: Message = reader.messages[0].message
    found = {name: message.properties.get(name) for name in ("colour", "number", "price")}
    assert found == {"colour": "red", "number": 7, "price": 1.5}
    assert message.durable and message.address == "orders" and message.priority == 4
    assert not [
        name for name in message.properties.entries if "ROUTE_TO" in name or "BRIDGE" in name
    ]
