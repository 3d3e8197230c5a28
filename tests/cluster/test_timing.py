"""Wildcard addresses, diverts and scheduled messages where more than one node takes part."""

from __future__ import annotations

from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.sim.nodes import queue
from tests.cluster.cluster_rig import Rig, count, node_of, queue_of, remote_consumers


def test_a_wildcard_queue_of_another_node_receives_what_is_sent_here(rig: Rig) -> None:
    here = rig.node(queues=[queue("orders", "orders", ANYCAST)])
    there = rig.node(queues=[queue("all", "news.#", MULTICAST)])
    rig.form(here, there)
    reader = rig.consuming(there, "all", known_at=here)
    sender = rig.client(here)
    sender.publish("news.eu", b"eu", MULTICAST)
    sender.publish("other", b"other", MULTICAST)
    sender.publish("news.us.today", b"us", MULTICAST)
    rig.until(lambda: len(reader.bodies) == 2)
    assert reader.bodies == [b"eu", b"us"]
    assert reader.messages[0].message.address == "news.eu"


def test_the_same_wildcard_queue_at_two_nodes_gets_a_message_once(rig: Rig) -> None:
    here, there = rig.cluster(2, queues=[queue("all", "news.#", MULTICAST)])
    readers = [rig.client(here), rig.client(there)]
    for reader in readers:
        reader.consume("all")
    rig.until(lambda: remote_consumers(here, there, "all") == 1)
    sender = rig.client(here)
    for number in range(6):
        sender.publish(f"news.{number}", b"x%d" % number, MULTICAST)
    rig.until(lambda: sum(len(reader.bodies) for reader in readers) == 6)
    assert [len(reader.bodies) for reader in readers] == [3, 3]


def test_an_exclusive_divert_takes_what_another_node_forwards(rig: Rig) -> None:
    here, there = rig.cluster(
        2, queues=[queue("orders", "orders", ANYCAST), queue("away", "away", ANYCAST)]
    )
    config = DivertConfig("d", "orders", "away", ANYCAST, exclusive=True)
    node_of(there).broker.diverts.create(config, False)
    reader = rig.consuming(there, known_at=here)
    rig.client(here).publish("orders", b"x", ANYCAST)
    rig.until(lambda: count(there, "away") == 1)
    rig.run(1)
    assert reader.bodies == []
    assert (count(here, "orders"), count(here, "away")) == (0, 0)


def test_a_scheduled_message_for_another_node_is_there_at_its_time(rig: Rig) -> None:
    here, there = rig.cluster(2)
    reader = rig.consuming(there, known_at=here)
    at_ms = rig.world.now // 1_000_000 + 5_000
    sender = rig.client(here)
    sender.publish("orders", b"later", ANYCAST, _AMQ_SCHED_DELIVERY=at_ms)
    rig.run(4)
    assert reader.bodies == []
    rig.until(lambda: reader.bodies == [b"later"])
    assert at_ms <= rig.world.now // 1_000_000 < at_ms + 1_500
    assert queue_of(there, "orders").scheduled_count == 0
