"""Messages that cross from node to node: copies, headers on the wire, repeats, and what waits for an absent peer."""

from __future__ import annotations

from atalanta.cluster.links.forward_frame import forward_id, link_bytes
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.message.message import Message
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from atalanta.wire.core.packets.message import SendMessage
from tests.cluster.cluster_rig import (
    Rig,
    cluster_of,
    count,
    node_of,
    queue_of,
    remote_consumers,
    waiting,
)


def forwarded(rig: Rig, source: Host, target: Host) -> list[Message]:
    """Messages that went over the bridge, as they were on the wire."""
    return [
        packet.message
        for channel, packet in rig.packets(source, target)
        if isinstance(packet, SendMessage) and channel == 10
    ]


def test_a_queue_filter_keeps_messages_from_crossing(rig: Rig) -> None:
    rig.node(queues=[queue("archive", "prices", MULTICAST)])
    rig.node(queues=[queue("alerts", "prices", MULTICAST, "delay > 60")])
    rig.form()
    producer = rig.client(rig.hosts[0])
    for delay in (10, 61, 30, 99):
        producer.publish("prices", str(delay).encode(), MULTICAST, delay=delay)
    rig.until(lambda: count(rig.hosts[1], "alerts") == 2)
    assert count(rig.hosts[0], "archive") == 4
    assert [bytes(m.body) for m in forwarded(rig, *rig.hosts)] == [b"61", b"99"]


def test_a_selector_of_a_remote_consumer_keeps_messages_from_crossing(rig: Rig) -> None:
    hosts = rig.cluster(2)
    picky = rig.consuming(hosts[1], "orders", "colour = 'red'", known_at=hosts[0])
    producer = rig.client(hosts[0])
    for colour in ("red", "blue", "red", "blue"):
        producer.publish("orders", colour.encode(), ANYCAST, colour=colour)
    rig.until(lambda: len(picky.bodies) == 2)
    assert picky.bodies == [b"red", b"red"]
    assert count(hosts[0], "orders") == 2


def test_one_copy_crosses_for_several_queues_and_names_them_all(rig: Rig) -> None:
    rig.node(queues=[queue("here", "prices", MULTICAST)])
    rig.node(queues=[queue("one", "prices", MULTICAST), queue("two", "prices", MULTICAST)])
    rig.form()
    producer = rig.client(rig.hosts[0])
    producer.publish("prices", b"x", MULTICAST)
    rig.until(lambda: count(rig.hosts[1], "one") == count(rig.hosts[1], "two") == 1)
    copies = forwarded(rig, *rig.hosts)
    assert len(copies) == 1
    ids = copies[0].properties.get("_AMQ_ROUTE_TO")
    assert isinstance(ids, bytes)
    named = [int.from_bytes(ids[at : at + 8], "big") for at in range(0, len(ids), 8)]
    assert sorted(named) == sorted(queue_of(rig.hosts[1], name).id for name in ("one", "two"))


def test_the_headers_of_the_link_are_on_the_wire_and_gone_behind_it(rig: Rig) -> None:
    hosts = rig.cluster(2)
    consumer = rig.consuming(hosts[1], known_at=hosts[0])
    producer = rig.client(hosts[0])
    producer.publish("orders", b"x", ANYCAST, colour="red", _AMQ_DUPL_ID="mine")
    rig.until(lambda: len(consumer.bodies) == 1)
    sent = forwarded(rig, *hosts)[0]
    assert sent.properties.get("_AMQ_ROUTE_TO") == queue_of(hosts[1], "orders").id.to_bytes(
        8, "big"
    )
    bridge_id = sent.properties.get("_AMQ_BRIDGE_DUP")
    assert bridge_id == forward_id(link_bytes("node-0", "node-1"), int(sent.id))
    assert sent.durable and sent.properties.get("_AMQ_DUPL_ID") == "mine"
    received = consumer.messages[0].message
    assert received.properties.get("colour") == "red"
    assert "_AMQ_ROUTE_TO" not in received.properties
    assert "_AMQ_BRIDGE_DUP" not in received.properties


def test_messages_that_were_answered_by_nobody_are_sent_again_and_the_repeats_dropped(rig: Rig) -> None:
    hosts = rig.cluster(2)
    consumer = rig.consuming(hosts[1], known_at=hosts[0])
    producer = rig.client(hosts[0])
    producer.publish("orders", b"first", ANYCAST)
    rig.until(lambda: consumer.bodies == [b"first"] and waiting(hosts[0], "node-1") == 0)
    rig.network.block("n1", "n0")  # The messages arrive, the answers do not.
    for number in range(8):
        producer.publish("orders", bytes([number]), ANYCAST)
    rig.until(lambda: len(consumer.bodies) == 9)
    assert waiting(hosts[0], "node-1") == 8
    for connection in sorted(rig.network.streams):
        stream = rig.network.streams[connection]
        if stream.source in hosts and stream.target in hosts:
            rig.network.cut_connection(connection)
    rig.run(0.1)
    rig.network.heal()
    rig.until(lambda: waiting(hosts[0], "node-1") == 0)
    rig.run(2)
    assert len(forwarded(rig, *hosts)) == 17
    assert consumer.bodies[1:] == [bytes([number]) for number in range(8)]
    assert hosts[1].trace.counters["duplicates_dropped"] == 8


def test_a_crashed_peer_attracts_nothing_and_gets_what_was_on_its_way_when_it_is_back(rig: Rig) -> None:
    hosts = rig.cluster(2)
    consumer = rig.consuming(hosts[1], known_at=hosts[0])
    producer = rig.client(hosts[0])
    rig.network.block("n0", "n1")
    for number in range(3):
        producer.publish("orders", bytes([number]), ANYCAST)
    rig.until(lambda: waiting(hosts[0], "node-1") == 3)
    hosts[1].crash()
    rig.network.heal()
    rig.run(1)
    # The binding stays, but is not connected: new messages stay here.
    assert "ordersnode-1" in cluster_of(hosts[0]).peers["node-1"].bindings.bindings
    for number in range(3, 6):
        producer.publish("orders", bytes([number]), ANYCAST)
    rig.run(1)
    assert count(hosts[0], "orders") == 3
    assert waiting(hosts[0], "node-1") == 3
    assert producer.answers == [1, 2, 3, 4, 5, 6]
    hosts[1].start()
    rig.until(lambda: waiting(hosts[0], "node-1") == 0)
    consumer = rig.consuming(hosts[1])
    rig.until(lambda: consumer.bodies == [b"\0", b"\1", b"\2"])
    assert count(hosts[0], "orders") == 3, "redistribution is not configured"


def test_what_waits_for_a_peer_survives_a_crash_of_the_sender(rig: Rig) -> None:
    hosts = rig.cluster(2)
    consumer = rig.consuming(hosts[1], known_at=hosts[0])
    producer = rig.client(hosts[0])
    rig.network.block("n0", "n1")
    for number in range(4):
        producer.publish("orders", bytes([number]), ANYCAST)
    rig.until(lambda: len(producer.answers) == 4)
    hosts[0].crash()
    rig.run(1)
    rig.network.heal()
    hosts[0].start()
    rig.until(lambda: len(consumer.bodies) == 4)
    assert sorted(consumer.bodies) == [bytes([number]) for number in range(4)]


def test_peers_hear_of_a_queue_only_once_it_is_durable(rig: Rig) -> None:
    """Else a crash could leave stored messages with the id of a queue that was never there."""
    hosts = rig.cluster(2)
    hosts[1].disk.slow = 1_000
    before = hosts[1].disk.commits

    node_of(hosts[1]).broker.queue_registry.create(rig.world.now, QueueSpec("new", "new", ANYCAST))
    node_of(hosts[1]).flush(rig.world.now)
    rig.run(0.01)
    known = cluster_of(hosts[0]).peers["node-1"].bindings.bindings
    assert hosts[1].disk.commits == before and "newnode-1" not in known
    rig.until(lambda: "newnode-1" in known)
    assert hosts[1].disk.commits > before


def test_ids_of_queues_are_never_used_for_others_after_a_restart(rig: Rig) -> None:
    hosts = rig.cluster(2)
    first = {node_of(hosts[0]).broker.bindings.next_id}
    first.update(node_of(hosts[0]).broker.bindings.remotes)
    hosts[0].crash()
    hosts[0].start()
    rig.formed()
    assert not first.intersection(node_of(hosts[0]).broker.bindings.remotes)


def test_a_message_for_a_queue_that_is_gone_is_no_second_copy_for_the_others(rig: Rig) -> None:
    """Subscriptions of one address have got their copies by themselves; one that was deleted is owed nothing."""
    rig.node(queues=[queue("archive", "prices", MULTICAST)])
    rig.node(queues=[queue("archive", "prices", MULTICAST), queue("gone", "prices", MULTICAST)])
    rig.form()
    producer = rig.client(rig.hosts[0])
    rig.network.block("n0", "n1")
    producer.publish("prices", b"x", MULTICAST)
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == 1)

    node_of(rig.hosts[1]).broker.queue_registry.delete(rig.world.now, "gone", "test")
    rig.network.heal()
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == 0)
    assert rig.events("n1 route_to_unknown_binding")
    assert count(rig.hosts[0], "archive") == 1
    assert count(rig.hosts[1], "archive") == 0


def test_the_address_of_a_cluster_connection_says_what_is_shared() -> None:
    for prefixes, shared in (
        ("orders", ["ordersnode-1"]),
        ("!orders", ["archivenode-1"]),
        ("ord,pri", ["archivenode-1", "ordersnode-1"]),
        ("elsewhere", []),
    ):
        rig = Rig()
        hosts = rig.cluster(
            2, change=lambda config, text=prefixes: setattr(config, "address", text)
        )
        assert sorted(cluster_of(hosts[0]).peers["node-1"].bindings.bindings) == shared, prefixes


def test_without_duplicate_detection_the_link_adds_no_id(rig: Rig) -> None:
    hosts = rig.cluster(2, change=lambda config: setattr(config, "use_duplicate_detection", False))
    consumer = rig.consuming(hosts[1], known_at=hosts[0])
    rig.client(hosts[0]).publish("orders", b"x", ANYCAST)
    rig.until(lambda: consumer.bodies == [b"x"])
    assert "_AMQ_BRIDGE_DUP" not in forwarded(rig, *hosts)[0].properties


def test_two_nodes_full_of_messages_for_each_other_do_not_wait_for_ever(rig: Rig) -> None:
    """Messages that wait for a peer are no reason to withhold credits from that peer."""
    for name in ("first", "second"):
        rig.node(queues=[queue(name, "prices", MULTICAST)], memory_bytes=4_000)
    rig.form()
    clients = [rig.client(host) for host in rig.hosts]
    for client, name in zip(clients, ("first", "second"), strict=True):
        client.consume(name)
    rig.network.block("n0", "n1")
    rig.network.block("n1", "n0")
    for client in clients:
        for number in range(40):
            client.publish("prices", bytes([number]) * 100, MULTICAST)
    rig.run(1)
    assert (waiting(rig.hosts[0], "node-1"), waiting(rig.hosts[1], "node-0")) == (40, 40)
    rig.network.heal()
    rig.until(lambda: [len(client.bodies) for client in clients] == [80, 80])


def test_headers_of_a_leaving_node_mean_nothing_from_a_client(rig: Rig) -> None:
    """Else a client's message is lost: taken for a repeat, for acknowledged, or sent to queues of a third node."""
    hosts = rig.cluster(3)
    consumer, third = rig.client(hosts[1]), rig.client(hosts[2])
    consumer.consume("orders")
    third.create("private")
    rig.until(lambda: remote_consumers(hosts[0], hosts[1], "orders") == 1)
    rig.until(lambda: "private" in node_of(hosts[2]).broker.queues)
    headers: list[dict[str, bytes | str]] = [
        {"_AMQ_SCALEDOWN_DUP": b"same"},
        {"_AMQ_SCALEDOWN_DUP": b"same"},
        {"_AMQ_ACK_ROUTE_TO": queue_of(hosts[1], "orders").id.to_bytes(8, "big")},
        {
            "_AMQ_SCALEDOWN_TO": queue_of(hosts[2], "private").id.to_bytes(8, "big"),
            "_AMQ_SCALEDOWN_NODE": cluster_of(hosts[2]).local.node_id,
        },
    ]
    producer = rig.client(hosts[0])
    for number, properties in enumerate(headers):
        producer.publish("orders", bytes([number]), ANYCAST, **properties)
    rig.until(lambda: len(producer.answers) == len(headers))
    rig.run(3)
    assert consumer.bodies == [bytes([number]) for number in range(len(headers))]
    assert count(hosts[2], "private") == 0
