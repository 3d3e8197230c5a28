"""A broker with bridges to both members of a CORE cluster: no message comes twice, and none goes round."""

from __future__ import annotations

from typing import Any

import pytest

from atalanta.cluster.networks.settings import NetworkSettings
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import linked
from tests.cluster.networks.network_rig import (
    NEWS,
    ORDERS,
    NetworkRig,
    bridges_of,
    connector,
    depth,
    network_consumers,
)


def world(rig: NetworkRig, **options: Any) -> tuple[Host, Host, Host]:
    """The two members, and the broker with bridges to both."""
    first, second = rig.cluster(2)
    outside = rig.single([connector(0, 1, **options)])
    outside.start()
    rig.until(lambda: all(bridge.connected() for bridge in bridges_of(outside)))
    return first, second, outside


def inside_out(rig: NetworkRig, **options: Any) -> tuple[Host, Host, Host]:
    """The other broker, and the two members with bridges to it."""
    outside = rig.single([])
    first, second = [
        rig.node(peers=[] if index == 1 else [1], networks=NetworkSettings([connector(0, **options)]))
        for index in (1, 2)
    ]
    for host in rig.hosts:
        host.start()
    rig.until(lambda: all(linked(host) == 1 for host in (first, second)))
    rig.until(lambda: all(bridge.connected() for host in (first, second) for bridge in bridges_of(host)))
    return first, second, outside


@pytest.mark.parametrize("duplex", [False, True])
def test_each_subscriber_gets_each_message_of_a_topic_once(rig: NetworkRig, duplex: bool) -> None:
    first, second, outside = world(rig, duplex=duplex, network_ttl=3)
    subscribers = [rig.consumer(host, NEWS) for host in (first, second, outside)]
    rig.demand(outside, NEWS, 2)
    rig.run(1)
    rig.user(outside).send("from outside", NEWS)
    rig.user(first).send("from a member", NEWS)
    rig.run(2)
    both = ["from a member", "from outside"]
    found = [sorted(str(text) for text in subscriber.texts) for subscriber in subscribers]
    assert found == [both, both, both if duplex else ["from outside"]]


def test_members_with_bridges_of_their_own_double_nothing(rig: NetworkRig) -> None:
    first, second, outside = inside_out(rig, duplex=True, network_ttl=3)
    subscribers = [rig.consumer(host, NEWS) for host in (first, second, outside)]
    rig.run(2)
    for host in (first, second, outside):
        rig.user(host).send(f"from {host.name}", NEWS)
    rig.run(2)
    expected = ["from n0", "from n1", "from n2"]
    assert [sorted(str(text) for text in subscriber.texts) for subscriber in subscribers] == [expected] * 3


@pytest.mark.parametrize(("ttl", "ways"), [(1, 1), (2, 2)])
def test_consumers_at_another_member_are_one_demand_with_a_longer_path(rig: NetworkRig, ttl: int, ways: int) -> None:
    _, second, outside = world(rig, network_ttl=ttl)
    consumers = [rig.consumer(second, ORDERS) for _ in range(3)]
    rig.demand(outside, ORDERS, ways)
    rig.run(1)
    assert network_consumers(outside, ORDERS) == ways
    producer = rig.user(outside)
    for number in range(30):
        producer.send(f"m{number}", ORDERS)
    rig.until(lambda: sum(len(consumer.texts) for consumer in consumers) == 30)
    rig.run(1)
    got = sorted(str(text) for consumer in consumers for text in consumer.texts)
    assert got == sorted(f"m{number}" for number in range(30)) and depth(outside, "orders") == 0
    for consumer in consumers:
        consumer.kill()
    rig.demand(outside, ORDERS, 0)


def test_demand_from_outside_does_not_come_back_through_the_other_member(rig: NetworkRig) -> None:
    """A consumer outside is demand at both members; neither member tells the other broker of it."""
    first, second, outside = world(rig, duplex=True, network_ttl=5)
    consumer = rig.consumer(outside, ORDERS)
    rig.demand(first, ORDERS)
    rig.demand(second, ORDERS)
    rig.run(2)
    assert network_consumers(outside, ORDERS) == 0
    for host in (first, second, outside):
        producer = rig.user(host)
        for number in range(5):
            producer.send(f"{host.name}.{number}", ORDERS)
    rig.until(lambda: len(consumer.texts) == 15)
    rig.run(1)
    assert len(set(consumer.texts)) == len(consumer.texts) == 15


def test_a_queue_at_a_member_without_a_bridge_is_reached_through_the_other_one(rig: NetworkRig) -> None:
    first, second = rig.cluster(2)
    outside = rig.single([connector(1, duplex=True)])
    outside.start()
    rig.until(lambda: all(bridge.connected() for bridge in bridges_of(outside)))
    consumer = rig.consumer(outside, ORDERS)
    rig.demand(second, ORDERS)
    rig.run(1)
    producer = rig.user(first)
    for number in range(5):
        producer.send(f"m{number}", ORDERS)
    rig.until(lambda: len(consumer.texts) == 5)
    assert sorted(str(text) for text in consumer.texts) == [f"m{number}" for number in range(5)]
