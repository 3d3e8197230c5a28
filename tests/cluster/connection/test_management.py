"""A cluster connection by management message: what it is, whom it forwards to, what waits for whom."""

from __future__ import annotations

import json

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import Rig, waiting

CLUSTER = "clusterconnection.test"


def links(rig: Rig, host: Host) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(rig.ask(host, CLUSTER, "listLinks"))
    return found


def test_definition_and_members(rig: Rig) -> None:
    hosts = rig.cluster(2)
    assert rig.get(hosts[1], CLUSTER, "Name") == "test" and rig.get(hosts[1], CLUSTER, "MaxHops") == 1
    assert rig.get(hosts[1], CLUSTER, "MessageLoadBalancingType") == "ON_DEMAND"
    assert rig.get(hosts[1], CLUSTER, "StaticConnectors") == ["n0"]
    assert json.loads(str(rig.get(hosts[1], CLUSTER, "StaticConnectorsAsJSON"))) == ["n0"]
    assert rig.get(hosts[0], CLUSTER, "Nodes") == {"node-1": "n1:61616"}
    assert {row["nodeID"] for row in json.loads(str(rig.get(hosts[0], CLUSTER, "Topology")))} == {
        "node-0",
        "node-1",
    }


def test_counts_of_a_bridge_and_what_waits_for_a_member_that_is_away(rig: Rig) -> None:
    hosts = rig.cluster(2)
    consumer = rig.consuming(hosts[1], known_at=hosts[0])
    producer = rig.client(hosts[0])
    producer.publish("orders", b"1", ANYCAST)
    rig.until(lambda: consumer.bodies and waiting(hosts[0], "node-1") == 0)
    assert rig.ask(hosts[0], CLUSTER, "getBridgeMetrics", "node-1") == {
        "messagesPendingAcknowledgement": 0,
        "messagesAcknowledged": 1,
    }
    assert rig.ask(hosts[0], CLUSTER, "getBridgeMetrics", "nobody") is None
    assert rig.get(hosts[0], CLUSTER, "MessagesAcknowledged") == 1
    rig.network.block("n1", "n0")
    producer.publish("orders", b"2", ANYCAST)
    rig.until(lambda: len(consumer.bodies) == 2)
    assert rig.get(hosts[0], CLUSTER, "Metrics") == {
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


def test_a_member_of_which_only_messages_are_left_is_listed(rig: Rig) -> None:
    hosts = rig.cluster(2)
    rig.consuming(hosts[1], known_at=hosts[0])
    rig.network.block("n0", "n1")
    rig.client(hosts[0]).publish("orders", b"1", ANYCAST)
    rig.until(lambda: waiting(hosts[0], "node-1") == 1)
    hosts[1].stop()
    rig.run(1)
    (row,) = links(rig, hosts[0])
    assert (row["nodeID"], row["state"], row["waiting"]) == ("node-1", "away", 1)
