"""A queue that several peers reach: when the way that is used fails, another one is taken, and none goes in circles."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import cluster_of, count, node_of
from tests.cluster.shapes import Shape, numbers, told, two_way_chain, two_way_ring


def way(host: Host, cluster_name: str) -> str:
    """By which peer the queue is reached; "" if by none."""
    return cluster_of(host).owner_of(cluster_name) or ""


def consumers_known(host: Host, cluster_name: str) -> int:
    peer = way(host, cluster_name)
    return cluster_of(host).peers[peer].bindings.bindings[cluster_name].consumer_count


@pytest.mark.parametrize("how", ["crash", "stop", "link"])
def test_in_a_ring_messages_go_the_other_way_round_when_a_node_between_is_gone(how: str) -> None:
    """n0 and n2 are opposite each other; the one of n1 and n3 that carries their messages goes."""
    rig = Shape(two_way_ring(4), 2, [2])
    rig.begin()
    consumer = rig.consumer(2)
    rig.send(0, 3)
    rig.until(lambda: len(consumer.bodies) == 3)
    used = way(rig.hosts[0], "ordersnode-2")
    number = int(used[-1])
    assert number in (1, 3)
    if how == "crash":
        rig.hosts[number].crash()
    elif how == "stop":
        rig.hosts[number].stop()
    else:
        for one, other in (("n0", f"n{number}"), (f"n{number}", "n0")):
            rig.network.block(one, other)
    rig.run(12)
    assert way(rig.hosts[0], "ordersnode-2") == f"node-{4 - number}"
    rig.send(0, 5)
    rig.until(lambda: len(consumer.bodies) == 8)
    if how == "link":
        rig.network.heal()
    else:
        rig.hosts[number].start()
    rig.stands()
    rig.run(5)
    rig.send(0, 4)
    rig.until(lambda: len(consumer.bodies) == 12)
    assert sorted(consumer.bodies) == sorted(numbers(range(3), range(5), range(4)))
    assert consumers_known(rig.hosts[0], "ordersnode-2") == 1
    for host in rig.hosts:
        assert told(host).count("ordersnode-2") == (0 if host is rig.hosts[2] else 1)


def test_the_shorter_way_is_taken_again_when_it_is_back() -> None:
    """A triangle: n0 reaches n1 by itself, or through n2."""
    rig = Shape(two_way_ring(3), 2, [1])
    rig.begin()
    consumer = rig.consumer(1)
    assert way(rig.hosts[0], "ordersnode-1") == "node-1"
    for one, other in (("n0", "n1"), ("n1", "n0")):
        rig.network.block(one, other)
    rig.run(12)
    assert way(rig.hosts[0], "ordersnode-1") == "node-2"
    rig.send(0, 5)
    rig.until(lambda: len(consumer.bodies) == 5)
    rig.network.heal()
    rig.stands()
    rig.run(5)
    assert way(rig.hosts[0], "ordersnode-1") == "node-1"
    rig.send(0, 5)
    rig.until(lambda: len(consumer.bodies) == 10)
    assert consumer.bodies == numbers(range(5), range(5))


@pytest.mark.parametrize("max_hops", [2, 4, 9])
def test_nothing_goes_in_circles_when_the_owner_itself_is_gone(max_hops: int) -> None:
    rig = Shape(two_way_ring(4), max_hops, [0, 2])
    rig.begin()
    consumer = rig.consumer(2)
    rig.send(0, 4)
    rig.until(lambda: len(consumer.bodies) == 4)
    rig.run(1)
    rig.hosts[2].crash()
    consumer.kill()
    rig.run(12)
    rig.send(0, 4)
    rig.run(5)
    # Nobody is left who wants them: they stay where they were sent.
    assert count(rig.hosts[0], "orders") == 4
    for host in (rig.hosts[1], rig.hosts[3]):
        assert sum(each.message_count for each in node_of(host).broker.queues.values()) == 0
    rig.hosts[2].start()
    rig.stands()
    again = rig.consumer(2)
    rig.run(3)
    rig.send(0, 4)
    rig.until(lambda: len(again.bodies) == 4)
    rig.run(3)
    assert again.bodies == numbers(range(4))


def test_a_queue_that_is_deleted_is_forgotten_by_every_way() -> None:
    rig = Shape(two_way_ring(5), 9, [])
    for host in rig.hosts:
        host.start()
    rig.stands()
    client = rig.client(rig.hosts[0])
    client.create("short", durable=False, temporary=True)
    rig.run(3)
    assert all("shortnode-0" in told(host) for host in rig.hosts[1:])
    client.kill()
    rig.run(15)
    for host in rig.hosts:
        assert "shortnode-0" not in told(host)
        assert not [
            name
            for record in cluster_of(host).peers.values()
            for name in record.bindings.spares
            if name.startswith("short")
        ]


def test_a_link_that_is_mended_counts_no_consumer_twice_further_away() -> None:
    """n1 tells the consumers of n2 anew: n0 must have heard that the old ones are closed."""
    rig = Shape(two_way_chain(3), 2, [0, 2])
    rig.begin()
    consumer = rig.consumer(2)
    for _ in range(3):
        for one, other in (("n1", "n2"), ("n2", "n1")):
            rig.network.block(one, other)
        rig.run(12)
        assert consumers_known(rig.hosts[0], "ordersnode-2") == 0
        rig.network.heal()
        rig.stands()
        assert consumers_known(rig.hosts[0], "ordersnode-2") == 1
    consumer.close()
    rig.run(1)
    assert consumers_known(rig.hosts[0], "ordersnode-2") == 0
    producer = rig.client(rig.hosts[0])
    producer.publish("orders", b"x", ANYCAST)
    rig.run(1)
    assert count(rig.hosts[0], "orders") == 1
