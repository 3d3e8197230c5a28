"""A chain of nodes, each connected to the next only: with max-hops 2 messages reach the end of it."""

from __future__ import annotations

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import cluster_of, count, node_of
from tests.cluster.connection.chain_rig import chain


def known(host: Host) -> list[str]:
    return sorted(
        name for record in cluster_of(host).peers.values() for name in record.bindings.bindings
    )


def test_with_one_hop_nobody_knows_what_lies_behind_the_next_node() -> None:
    _, hosts = chain(1)
    assert known(hosts[0]) == ["othernode-1"]


def test_bindings_are_told_on_and_messages_cross_two_bridges() -> None:
    rig, hosts = chain(2)
    assert [sorted(cluster_of(host).peers) for host in hosts] == [
        ["node-1"],
        ["node-0", "node-2"],
        ["node-1"],
    ]
    assert "ordersnode-2" in known(hosts[0])
    consumer = rig.consuming(hosts[2])
    rig.run(1)
    rig.sender(hosts[0], "orders", [bytes([number]) for number in range(5)], ANYCAST)
    rig.until(lambda: len(consumer.bodies) == 5)
    assert consumer.bodies == [bytes([number]) for number in range(5)]
    assert "orders" not in node_of(hosts[1]).broker.queues


def test_what_the_end_no_longer_has_is_forgotten_along_the_chain() -> None:
    rig, hosts = chain(2)
    consumer = rig.consuming(hosts[2])
    rig.run(1)
    consumer.close()
    rig.run(1)
    producer = rig.client(hosts[0])
    producer.publish("orders", b"x", ANYCAST)
    rig.until(lambda: count(hosts[0], "orders") == 1)
    hosts[2].stop()
    rig.run(1)
    assert "ordersnode-2" not in known(hosts[1])
    assert "ordersnode-2" not in known(hosts[0])


def test_the_middle_may_restart_with_messages_on_their_way() -> None:
    """Binding ids that n0 has stored must mean the same, or nothing, to n1 after its restart."""
    rig, hosts = chain(2)
    consumer = rig.consuming(hosts[2])
    rig.run(1)
    producer = rig.client(hosts[0])
    producer.publish("orders", b"first", ANYCAST)
    rig.until(lambda: consumer.bodies == [b"first"])
    hosts[1].crash()
    hosts[1].start()
    rig.run(5)
    producer.publish("orders", b"second", ANYCAST)
    rig.until(lambda: b"second" in consumer.bodies or count(hosts[0], "orders") == 1)
    rig.run(5)
    producer.publish("orders", b"third", ANYCAST)
    rig.until(lambda: b"third" in consumer.bodies)


def test_a_middle_that_has_just_restarted_keeps_what_it_cannot_route_yet() -> None:
    """n0's messages come at once with the link; what lies behind n1 is told to it only later. Artemis drops them."""
    rig, hosts = chain(2)
    consumer = rig.consuming(hosts[2])
    rig.run(1)
    for host in hosts:
        node_of(host).broker.settings.add("#", {"redistribution_delay_ms": 0})
    rig.network.block("n0", "n1")
    rig.stored(hosts[0], "orders", [bytes([number]) for number in range(5)], ANYCAST)
    hosts[1].crash()
    hosts[2].crash()
    consumer.kill()
    rig.network.heal()
    hosts[1].start()
    node_of(hosts[1]).broker.settings.add("#", {"redistribution_delay_ms": 0})
    rig.run(5)
    hosts[2].start()
    consumer.start()
    rig.until(lambda: consumer.ready)
    consumer.consume("orders")
    here = rig.client(hosts[0])
    rig.until(lambda: len(consumer.bodies) + count(hosts[0], "orders") >= 5, 30)
    here.consume("orders")
    rig.until(lambda: len(consumer.bodies) + len(here.bodies) == 5)
