"""Chains and triangles of our nodes: how far messages and demand go, and that nothing goes round."""

from __future__ import annotations

from typing import Any

import pytest

from atalanta.wire.openwire.commands.destinations import ActiveMQQueue
from tests.cluster.networks.network_rig import (
    NEWS,
    ORDERS,
    NetworkRig,
    bridges_of,
    connector,
    depth,
    network_consumers,
)


@pytest.mark.parametrize(("ttl", "reached"), [(1, False), (2, True), (-1, True)])
def test_a_chain_is_as_long_as_the_ttl_allows(rig: NetworkRig, ttl: int, reached: bool) -> None:
    options: dict[str, Any] = {"consumer_ttl": ttl, "message_ttl": ttl}
    a, b, c = rig.start([connector(1, **options)], [connector(2, **options)], [])
    consumer = rig.consumer(c, ORDERS)
    rig.demand(b, ORDERS)
    rig.user(a).send("m", ORDERS)
    rig.run(1)
    assert (consumer.texts == ["m"]) == reached
    assert network_consumers(a, ORDERS) == reached
    if reached:
        assert [each.value for each in consumer.messages[0].broker_path or []] == ["node-0", "node-1"]


def test_a_message_goes_no_farther_than_its_ttl(rig: NetworkRig) -> None:
    """Demand comes from far, but the message stays behind its last bridge."""
    options: dict[str, Any] = {"consumer_ttl": 2, "message_ttl": 1}
    a, b, c = rig.start([connector(1, **options)], [connector(2, **options)], [])
    consumer = rig.consumer(c, ORDERS)
    rig.demand(a, ORDERS)
    rig.user(a).send("m", ORDERS)
    rig.until(lambda: depth(b, "orders") == 1)
    rig.run(1)
    assert consumer.texts == []


def triangle(rig: NetworkRig, **options: Any) -> None:
    rig.start(*[[connector(*[to for to in range(3) if to != node], network_ttl=3, **options)] for node in range(3)])


def test_a_triangle_gives_each_subscriber_each_message_once(rig: NetworkRig) -> None:
    triangle(rig)
    a, b, c = rig.hosts
    subscribers = [rig.consumer(host, NEWS) for host in rig.hosts]
    rig.run(1)
    producers = [rig.user(host) for host in rig.hosts]
    for number, producer in enumerate(producers):
        for each in range(5):
            producer.send(f"{number}.{each}", NEWS)
    expected = sorted(f"{number}.{each}" for number in range(3) for each in range(5))
    rig.until(lambda: all(len(subscriber.texts) >= 15 for subscriber in subscribers))
    rig.run(1)
    for subscriber in subscribers:
        assert sorted(str(each) for each in subscriber.texts) == expected


def test_the_longer_way_is_used_when_the_shorter_one_ends(rig: NetworkRig) -> None:
    """Only the direct bridge serves the subscriber, until it is lost."""
    options: dict[str, Any] = {"network_ttl": 3}
    a, b, c = rig.start(
        [connector(2, name="direct", **options), connector(1, name="around", **options)],
        [connector(2, **options)],
        [],
    )
    subscriber = rig.consumer(c, NEWS)
    rig.run(1)
    assert network_consumers(a, NEWS) == 1
    producer = rig.user(a)
    producer.send("direct", NEWS)
    rig.until(lambda: subscriber.texts == ["direct"])
    direct = bridges_of(a)[0]
    direct.stopped = True
    assert direct.link is not None
    direct.link.fail("ends")
    rig.hosts[0].flush_later()
    rig.until(lambda: direct.link is None)
    rig.demand(a, NEWS)
    producer.send("around", NEWS)
    rig.until(lambda: subscriber.texts == ["direct", "around"])
    assert len(subscriber.messages[1].broker_path or []) == 2


def test_queues_of_a_triangle_lose_and_double_nothing(rig: NetworkRig) -> None:
    triangle(rig)
    consumers = [rig.consumer(host, ORDERS) for host in rig.hosts]
    rig.run(1)
    producers = [rig.user(host) for host in rig.hosts]
    for each in range(30):
        for number, producer in enumerate(producers):
            producer.send(f"{number}.{each}", ORDERS)
    rig.until(lambda: sum(len(each.texts) for each in consumers) >= 90)
    rig.run(1)
    found = sorted(str(text) for each in consumers for text in each.texts)
    assert found == sorted(f"{number}.{each}" for number in range(3) for each in range(30))


def test_stuck_messages_return(rig: NetworkRig) -> None:
    """The consumer of B goes to A: what has come to B follows, though it has been at A."""
    a, b = rig.start([connector(1)], [connector(0)])
    at_b = rig.user(b)
    at_b.acknowledges = False
    at_b.consume(ORDERS, prefetch=1)
    rig.demand(a, ORDERS)
    producer = rig.user(a)
    for number in range(10):
        producer.send(f"m{number}", ORDERS)
    rig.until(lambda: depth(b, "orders") == 10)
    at_b.kill()
    at_a = rig.consumer(a, ORDERS)
    rig.until(lambda: len(at_a.texts) == 10)
    rig.run(2)
    assert sorted(map(str, at_a.texts)) == [f"m{number}" for number in range(10)]
    assert depth(b, "orders") == depth(a, "orders") == 0
    # And there again, for a consumer of B.
    at_a.kill()
    at_b = rig.consumer(b, ORDERS)
    producer.send("once more", ORDERS)
    rig.until(lambda: at_b.texts == ["once more"])


def test_stuck_messages_wait_for_consumers_that_come_back_soon(rig: NetworkRig) -> None:
    a, b = rig.start([connector(1)], [connector(0, replay_delay_ms=5_000)])
    at_b = rig.consumer(b, ORDERS, prefetch=1)
    at_b.acknowledges = False
    rig.demand(a, ORDERS)
    producer = rig.user(a)
    for number in range(4):
        producer.send(f"m{number}", ORDERS)
    rig.until(lambda: depth(b, "orders") == 4)
    at_a = rig.consumer(a, ORDERS)
    at_b.kill()
    rig.run(3)
    at_b = rig.consumer(b, ORDERS)
    rig.until(lambda: len(at_b.texts) == 4)
    rig.run(10)
    assert at_a.texts == []


def test_replay_can_be_switched_off(rig: NetworkRig) -> None:
    a, b = rig.start([connector(1)], [connector(0, replay_when_no_consumers=False)])
    at_b = rig.user(b)
    at_b.acknowledges = False
    at_b.consume(ORDERS, prefetch=1)
    rig.demand(a, ORDERS)
    rig.user(a).send("m", ORDERS)
    rig.until(lambda: depth(b, "orders") == 1)
    at_b.kill()
    at_a = rig.consumer(a, ORDERS)
    rig.run(20)
    assert at_a.texts == [] and depth(b, "orders") == 1


@pytest.mark.parametrize("hops", [1, 2])
def test_request_and_reply_over_hops(rig: NetworkRig, hops: int) -> None:
    """Temporary queues are known to the brokers in between, and their messages find the way back."""
    forth = [connector(1, network_ttl=2)], [connector(2, network_ttl=2), connector(0, network_ttl=2, name="back")]
    a, b, c = rig.start(*forth, [connector(1, network_ttl=2)])
    replier = rig.user((b, c)[hops - 1])
    replier.replies = True
    replier.consume(ActiveMQQueue("requests"))
    rig.demand(a, ActiveMQQueue("requests"))
    requestor = rig.user(a)
    replies = requestor.temporary_queue()
    requestor.consume(replies)
    rig.run(1)
    requestor.send("question", ActiveMQQueue("requests"), reply_to=replies)
    rig.until(lambda: requestor.texts == ["answer to question"])
    requestor.kill()
    rig.run(1)
    name = replies.physical_name or ""
    assert all(name not in each.node.broker.queues for each in rig.hosts if each.node is not None)
