"""Shapes of clusters other than everybody with everybody: chains, rings, stars; in any order, with stops and crashes.

As in Artemis, what lies behind the next node is told on as long as it is less than max-hops away, and a message goes
from store-and-forward queue to store-and-forward queue; the nodes between need no queue and no client.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from tests.cluster.cluster_rig import cluster_of, count, node_of
from tests.cluster.shapes import (
    Shape,
    chain,
    numbers,
    ring,
    star,
    subscriptions,
    symmetric,
    told,
    two_way_chain,
    two_way_ring,
)


# -- chains -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("length", [3, 5])
def test_a_one_way_chain_carries_messages_to_its_end(length: int) -> None:
    """The nodes between have neither the queue nor a client (OneWayChainClusterTest)."""
    rig = Shape(chain(length), length - 1, [length - 1])
    rig.begin()
    consumer = rig.consumer(length - 1)
    rig.send(0, 10)
    rig.until(lambda: len(consumer.bodies) == 10)
    assert consumer.bodies == numbers(range(10))
    for host in rig.hosts[:-1]:
        broker = node_of(host).broker
        assert "orders" not in broker.queues
        rig.until(lambda broker=broker: not [  # type: ignore[misc]
            name for name, each in broker.queues.items() if each.message_count
        ])  # fmt: skip


def test_one_way_is_one_way() -> None:
    rig = Shape(chain(3), 2, [0, 2])
    rig.begin()
    assert told(rig.hosts[0]) == ["ordersnode-2", "othernode-1"]
    assert told(rig.hosts[2]) == []
    consumer = rig.consumer(0)
    rig.send(2, 4)
    rig.run(2)
    assert consumer.bodies == [] and count(rig.hosts[2], "orders") == 4


@pytest.mark.parametrize(
    ("max_hops", "known"),
    [
        (0, []),
        (1, ["othernode-1"]),
        (2, ["othernode-1", "othernode-2"]),
        (3, ["ordersnode-3", "othernode-1", "othernode-2"]),
    ],
)
def test_max_hops_is_how_far_bindings_are_told_on(max_hops: int, known: list[str]) -> None:
    rig = Shape(chain(4), max_hops, [3])
    rig.begin()
    assert told(rig.hosts[0]) == known


def test_with_max_hops_0_nothing_is_taken_from_others() -> None:
    """Members are known all the same, and clients hear of them."""
    rig = Shape(symmetric(2), 0, [0, 1])
    rig.begin()
    consumer = rig.consumer(1)
    rig.send(0, 4)
    rig.run(2)
    assert consumer.bodies == [] and count(rig.hosts[0], "orders") == 4
    assert len(cluster_of(rig.hosts[0]).topology.members) == 2


def test_consumers_along_a_chain_share() -> None:
    rig = Shape(chain(4), 3, [0, 1, 2, 3])
    rig.begin()
    consumers = [rig.consumer(index) for index in range(4)]
    rig.send(0, 20)
    rig.until(lambda: sum(len(each.bodies) for each in consumers) == 20)
    assert [len(each.bodies) for each in consumers] == [5, 5, 5, 5]
    assert sorted(body for each in consumers for body in each.bodies) == sorted(numbers(range(20)))


def test_subscriptions_along_a_chain_each_get_a_copy() -> None:
    rig = Shape(two_way_chain(4), 3, [])
    for host in rig.hosts:
        host.start()
    rig.stands()
    for index, host in enumerate(rig.hosts):
        client = rig.client(host)
        client.create(f"sub{index}", "prices", MULTICAST)
    rig.run(1)
    consumers = [rig.consumer(index, f"sub{index}") for index in range(4)]
    rig.send(1, 6, "prices", MULTICAST)
    rig.until(lambda: all(len(each.bodies) == 6 for each in consumers))
    assert [each.bodies for each in consumers] == [numbers(range(6))] * 4


def test_a_consumer_behind_the_middle_that_comes_and_goes_is_told_on() -> None:
    rig = Shape(two_way_chain(3), 2, [0, 2], delay_ms=0)
    rig.begin()
    far = rig.consumer(2)
    rig.send(0, 3)
    rig.until(lambda: len(far.bodies) == 3)
    far.close()
    rig.run(1)
    rig.send(0, 3)
    rig.run(1)
    assert count(rig.hosts[0], "orders") == 3
    again = rig.consumer(2)  # redistribution over two hops
    rig.until(lambda: again.bodies == numbers(range(3)))


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_a_chain_stands_whatever_the_order_of_starts(order: tuple[int, ...]) -> None:
    rig = Shape(chain(4), 3, [3])
    rig.begin(list(order), 0.7)
    consumer = rig.consumer(3)
    rig.send(0, 3)
    rig.until(lambda: consumer.bodies == numbers(range(3)))


@pytest.mark.parametrize("graceful", [True, False])
@pytest.mark.parametrize("victim", [1, 2])
def test_a_middle_node_ends_and_comes_back_and_nothing_is_lost(victim: int, graceful: bool) -> None:
    rig = Shape(two_way_chain(4), 3, [0, 3], delay_ms=0)  # it may get messages before it knows the ways again
    rig.begin()
    consumer = rig.consumer(3)
    producer = rig.sender(rig.hosts[0], "orders", [b"%d" % number for number in range(40)], ANYCAST)
    rig.run(0.002)  # in the middle of it
    if graceful:
        rig.hosts[victim].stop()
    else:
        rig.hosts[victim].crash()
    rig.run(1)
    rig.hosts[victim].start()
    rig.stands()

    def accounted() -> bool:
        return len(consumer.bodies) + count(rig.hosts[0], "orders") >= len(producer.answers)

    rig.until(lambda: len(producer.answers) == 40 and accounted())
    assert len(consumer.bodies) == len(dict.fromkeys(consumer.bodies)), "twice"
    assert len(consumer.bodies) + count(rig.hosts[0], "orders") == 40


def test_the_end_of_a_chain_crashes_and_gets_the_rest_when_it_is_back() -> None:
    rig = Shape(chain(3), 2, [2])
    rig.begin()
    first = rig.consumer(2)
    rig.send(0, 3)
    rig.until(lambda: len(first.bodies) == 3)
    rig.run(1)
    rig.hosts[2].crash()
    first.kill()
    rig.run(1)
    rig.send(0, 5)
    rig.run(1)
    rig.hosts[2].start()
    rig.stands()
    again = rig.consumer(2)
    rig.until(lambda: len(again.bodies) == 5)
    assert sorted(again.bodies) == numbers(range(5))


# -- rings ------------------------------------------------------------------------------------------
def test_a_one_way_ring_reaches_everybody_with_enough_hops() -> None:
    rig = Shape(ring(4), 3, [0, 1, 2, 3])
    rig.begin()
    names = [f"ordersnode-{index}" for index in range(4)]
    for index, host in enumerate(rig.hosts):
        assert told(host) == names[:index] + names[index + 1 :]
    consumers = [rig.consumer(index) for index in range(4)]
    rig.send(2, 12)
    rig.until(lambda: sum(len(each.bodies) for each in consumers) == 12)
    assert [len(each.bodies) for each in consumers] == [3, 3, 3, 3]


@pytest.mark.parametrize("max_hops", [2, 4, 9])
def test_in_a_ring_a_queue_is_known_once_and_nothing_goes_round_for_ever(max_hops: int) -> None:
    rig = Shape(two_way_ring(5), max_hops, [0])
    rig.begin()
    for host in rig.hosts[1:]:
        assert told(host).count("ordersnode-0") == 1
    assert "ordersnode-0" not in told(rig.hosts[0])
    consumer = rig.consumer(0)
    for index in (1, 2, 3, 4):
        rig.send(index, 3)
    rig.until(lambda: len(consumer.bodies) == 12)
    rig.run(2)
    assert sorted(consumer.bodies) == sorted(numbers(*[range(3)] * 4))
    for host in rig.hosts:
        queues = node_of(host).broker.queues.values()
        assert sum(each.message_count for each in queues) == 0


def test_a_topic_in_a_ring_reaches_each_subscription_once() -> None:
    rig = Shape(two_way_ring(5), 2, [0, 1, 2, 3, 4], queues=subscriptions())
    rig.begin()
    consumer = rig.client(rig.hosts[3])
    consumer.create("own", "prices", MULTICAST)
    consumer.consume("own")
    rig.run(1)
    rig.send(0, 5, "prices", MULTICAST)
    rig.until(lambda: len(consumer.bodies) >= 5)
    rig.run(1)
    assert consumer.bodies == numbers(range(5))


# -- stars ------------------------------------------------------------------------------------------
def test_a_star_carries_from_ray_to_ray_through_its_middle() -> None:
    rig = Shape(star(5), 2, [1, 2, 3, 4])
    rig.begin()
    consumers = [rig.consumer(index) for index in (2, 3, 4)]
    rig.send(1, 12)
    rig.until(lambda: sum(len(each.bodies) for each in consumers) == 12)
    assert [len(each.bodies) for each in consumers] == [4, 4, 4]
    assert "orders" not in node_of(rig.hosts[0]).broker.queues


def test_the_middle_of_a_star_crashes_and_comes_back() -> None:
    rig = Shape(star(4), 2, [1, 2, 3])
    rig.begin()
    consumers = [rig.consumer(index) for index in (2, 3)]
    rig.send(1, 4)
    rig.until(lambda: sum(len(each.bodies) for each in consumers) == 4)
    rig.hosts[0].crash()
    rig.run(8)
    rig.send(1, 4)  # nobody is reached: they stay
    rig.run(1)
    assert count(rig.hosts[1], "orders") == 4
    rig.hosts[0].start()
    rig.stands()
    rig.send(1, 4)
    rig.until(lambda: sum(len(each.bodies) for each in consumers) == 8)


# -- symmetric --------------------------------------------------------------------------------------
@pytest.mark.parametrize("graceful", [True, False])
def test_a_rolling_restart_of_a_symmetric_cluster(graceful: bool) -> None:
    rig = Shape(symmetric(3), 1, [0, 1, 2])
    rig.begin()
    for index, host in enumerate(rig.hosts):
        if graceful:
            host.stop()
        else:
            host.crash()
        rig.run(3)
        rig.send((index + 1) % 3, 2)
        host.start()
        rig.stands()
    assert sum(count(host, "orders") for host in rig.hosts) == 6
    for host in rig.hosts:
        assert len(cluster_of(host).topology.members) == 3
    consumers = [rig.consumer(index) for index in range(3)]
    rig.send(0, 3)
    rig.until(lambda: sum(len(each.bodies) for each in consumers) == 9)


def test_all_nodes_of_a_symmetric_cluster_crash_at_once() -> None:
    rig = Shape(symmetric(3), 1, [0, 1, 2])
    rig.begin()
    consumer = rig.consumer(2)
    rig.send(0, 3)
    rig.until(lambda: len(consumer.bodies) == 3)
    consumer.kill()
    rig.run(1)
    rig.send(0, 3)
    for host in rig.hosts:
        host.crash()
    rig.begin([2, 0, 1], 5)
    again = rig.consumer(0)
    rig.until(lambda: again.bodies == numbers(range(3)))


def test_a_queue_of_the_middle_joins_those_of_the_ends() -> None:
    """A queue is created while messages pass: from then on the middle has a part in them, as the routing rules say."""
    rig = Shape(two_way_chain(3), 2, [0, 2])
    rig.begin()
    far = rig.consumer(2)
    middle = rig.client(rig.hosts[1])
    middle.create("orders")
    middle.consume("orders")
    rig.run(1)
    rig.send(0, 8)
    rig.until(lambda: len(far.bodies) + len(middle.bodies) == 8)
    assert (len(far.bodies), len(middle.bodies)) == (4, 4)
