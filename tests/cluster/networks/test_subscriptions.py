"""Durable subscriptions over a network: messages wait here while the subscriber at the other node is away."""

from __future__ import annotations

from tests.cluster.cluster_rig import node_of
from tests.cluster.networks.network_rig import (
    NEWS,
    NetworkRig,
    bridges_of,
    connector,
    depth,
)

KEPT = "NC_n1_inbound_n0.NC-DS_n0_news"


def test_messages_wait_for_a_durable_subscriber(rig: NetworkRig) -> None:
    """Also when the other node is away, and over a restart of this one."""
    a, b = rig.start([connector(1)], [])
    subscriber = rig.user(b, "reader")
    subscriber.consume(NEWS, subscription_name="s", client_id="reader")
    rig.demand(a, NEWS)
    subscriber.kill()
    rig.run(0.5)
    producer = rig.user(a)
    producer.send("while the subscriber is away", NEWS)
    rig.until(lambda: depth(b, "reader.s") == 1)
    b.crash()
    producer.send("while the node is away", NEWS)
    rig.until(producer.all_confirmed)
    a.crash()
    a.start()
    producer = rig.user(a)
    producer.send("after a restart", NEWS)
    rig.until(lambda: depth(a, KEPT) == 2)
    b.start()
    subscriber = rig.user(b, "reader")
    subscriber.consume(NEWS, subscription_name="s", client_id="reader")
    rig.until(lambda: len(subscriber.texts) == 3)
    assert subscriber.texts == ["while the subscriber is away", "while the node is away", "after a restart"]
    rig.run(1)
    assert len(subscriber.texts) == 3 and depth(a, KEPT) == 0


def test_the_end_of_the_subscription_ends_it_here(rig: NetworkRig) -> None:
    a, b = rig.start([connector(1)], [])
    subscriber = rig.user(b, "reader")
    consumer_id = subscriber.consume(NEWS, subscription_name="s", client_id="reader")
    rig.demand(a, NEWS)
    subscriber.close(consumer_id)
    rig.run(1)
    assert KEPT in node_of(a).broker.queues
    subscriber.unsubscribe("s")
    rig.until(lambda: KEPT not in node_of(a).broker.queues)


def test_a_durable_subscription_takes_over_from_a_plain_one(rig: NetworkRig) -> None:
    a, b = rig.start([connector(1)], [])
    plain = rig.consumer(b, NEWS)
    rig.demand(a, NEWS)
    subscriber = rig.user(b, "reader")
    subscriber.consume(NEWS, subscription_name="s", client_id="reader")
    rig.until(lambda: KEPT in node_of(a).broker.queues)
    rig.demand(a, NEWS)
    rig.user(a).send("m", NEWS)
    rig.until(lambda: plain.texts == ["m"] and subscriber.texts == ["m"])
    rig.run(1)
    assert bridges_of(a)[0].sent() == 1


def test_dynamic_only_keeps_messages_but_sends_none_without_a_subscriber(rig: NetworkRig) -> None:
    a, b = rig.start([connector(1, dynamic_only=True)], [])
    subscriber = rig.user(b, "reader")
    subscriber.consume(NEWS, subscription_name="s", client_id="reader")
    rig.demand(a, NEWS)
    subscriber.kill()
    rig.demand(a, NEWS, 0)
    rig.user(a).send("m", NEWS)
    rig.until(lambda: depth(a, KEPT) == 1)
    subscriber = rig.user(b, "reader")
    subscriber.consume(NEWS, subscription_name="s", client_id="reader")
    rig.until(lambda: subscriber.texts == ["m"])
