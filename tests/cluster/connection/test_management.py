"""A cluster connection by management message: what it is, whom it forwards to, what waits for whom."""

from __future__ import annotations

import json

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import Rig, node_of, waiting


def get(host: Host, name: str) -> object:
    return node_of(host).management.resources.cluster_connections["test"].attribute(name)


def links(rig: Rig, host: Host) -> list[dict[str, object]]:
    return node_of(host).management.resources.cluster_connections["test"].links(rig.world.now)


def test_definition_and_members() -> None:
    rig = Rig()
    hosts = rig.cluster(2)
    assert get(hosts[1], "Name") == "test" and get(hosts[1], "MaxHops") == 1
    assert get(hosts[1], "MessageLoadBalancingType") == "ON_DEMAND"
    assert get(hosts[1], "StaticConnectors") == ["n0"]
    assert json.loads(str(get(hosts[1], "StaticConnectorsAsJSON"))) == ["n0"]
    assert get(hosts[0], "Nodes") == {"node-1": "n1:61616"}
    assert {row["nodeID"] for row in json.loads(str(get(hosts[0], "Topology")))} == {
        "node-0",
        "node-1",
    }


def test_counts_of_a_bridge_and_what_waits_for_a_member_that_is_away() -> None:
    rig = Rig()
    hosts = rig.cluster(2)
    consumer = rig.consuming(hosts[1], known_at=hosts[0])
    producer = rig.client(hosts[0])
    producer.publish("orders", b"1", ANYCAST)
    rig.until(lambda: consumer.bodies and waiting(hosts[0], "node-1") == 0)
    listed = node_of(hosts[0]).management.resources.cluster_connections["test"]
    assert listed.metrics_of("node-1") == {
        "messagesPendingAcknowledgement": 0,
        "messagesAcknowledged": 1,
    }
    assert listed.metrics_of("nobody") is None
    assert get(hosts[0], "MessagesAcknowledged") == 1
    rig.network.block("n1", "n0")
    producer.publish("orders", b"2", ANYCAST)
    rig.until(lambda: len(consumer.bodies) == 2)
    assert get(hosts[0], "Metrics") == {
        "messagesPendingAcknowledgement": 1,
        "messagesAcknowledged": 1,
    }
    hosts[1].crash()
    rig.network.heal()
    rig.run(1)
    (row,) = links(rig, hosts[0])
    assert (row["nodeID"], row["state"], row["address"]) == ("node-1", "away", "n1:61616")
    assert (row["waiting"], row["mayHaveArrived"], row["confirmed"]) == (1, 1, 1)
    since = row["awaySince"]
    assert isinstance(since, int) and 0 < rig.world.now // 1_000_000 - since <= 1_100
    hosts[1].start()
    rig.formed()
    (row,) = links(rig, hosts[0])
    assert (row["state"], row["awaySince"], row["waiting"]) == ("linked", 0, 0)


def test_a_member_of_which_only_messages_are_left_is_listed() -> None:
    rig = Rig()
    hosts = rig.cluster(2)
    rig.consuming(hosts[1], known_at=hosts[0])
    rig.network.block("n0", "n1")
    rig.client(hosts[0]).publish("orders", b"1", ANYCAST)
    rig.until(lambda: waiting(hosts[0], "node-1") == 1)
    hosts[1].stop()
    rig.run(1)
    (row,) = links(rig, hosts[0])
    assert (row["nodeID"], row["state"], row["waiting"]) == ("node-1", "away", 1)
