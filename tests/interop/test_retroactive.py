"""Retroactive addresses: who subscribes late gets the last messages, in order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.jms_client import Client, Pair, start

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

KEPT = 5
SETTINGS = (
    f'<address-setting match="late.#"><retroactive-message-count>{KEPT}</retroactive-message-count>'
    "</address-setting>"
)


def running(lineup: str, brokers: Lineup, jms: Jms, load_balancing: str) -> Pair:
    def shaping(index: int, ports: list[int]) -> Shape:
        cluster = Cluster((ports[1 - index],), load_balancing=load_balancing)
        return Shape(cluster, settings=SETTINGS)

    first, second = brokers.cluster(lineup, shaping)
    start(jms, (first, second))
    return first, second


@pytest.fixture(scope="module")
def pair(lineup: str, brokers: Lineup, jms: Jms) -> Iterator[Pair]:
    nodes = running(lineup, brokers, jms, "ON_DEMAND")
    yield nodes
    for node in nodes:
        node.close()


@pytest.fixture(params=["first", "second"])
def way(request: pytest.FixtureRequest, pair: Pair) -> Pair:
    """(where messages are sent, the other one)"""
    return pair if request.param == "first" else (pair[1], pair[0])


def test_a_late_subscriber_gets_the_last_messages_in_order(client: Client, way: Pair) -> None:
    topic = "topic:" + client.name("late.plain")
    producer = client.producer(way[0], topic)
    client.jms.send(producer, range(0, 20))
    consumer = client.consumer(way[0], topic)
    assert client.numbers([consumer], KEPT) == [[15, 16, 17, 18, 19]]
    client.jms.send(producer, range(20, 23))
    assert client.numbers([consumer], 3) == [[20, 21, 22]]
    assert client.numbers([client.consumer(way[0], topic)], KEPT) == [[18, 19, 20, 21, 22]]


def test_a_late_durable_subscription_keeps_them_and_a_selector_chooses(
    client: Client, way: Pair
) -> None:
    topic = client.name("late.durable")
    producer = client.producer(way[0], "topic:" + topic)
    client.jms.send(producer, range(0, 4), colour="red")
    client.jms.send(producer, range(4, 8), colour="blue")
    reds = client.consumer(way[0], "topic:" + topic, "colour = 'red'")
    assert client.numbers([reds], 1) == [[3]]
    client.leave(client.durable(way[0], topic, "mine"))
    client.jms.send(producer, range(8, 10))
    assert client.numbers([client.durable(way[0], topic, "mine")], 7) == [[3, 4, 5, 6, 7, 8, 9]]


def test_each_node_keeps_what_was_sent_to_it(client: Client, way: Pair) -> None:
    topic = "topic:" + client.name("late.elsewhere")
    producer = client.producer(way[0], topic)
    client.jms.send(producer, range(0, 8))
    there = client.consumer(way[1], topic)
    assert client.numbers([there], 0) == [[]]
    until(
        "the sender's node knows the subscription",
        lambda: len(client.jms.bindings(way[0], client.name("late.elsewhere"))) == 1,
    )
    client.jms.send(producer, range(8, 10))
    assert client.numbers([there], 2) == [[8, 9]]
    assert client.numbers([client.consumer(way[0], topic)], KEPT) == [[5, 6, 7, 8, 9]]


@pytest.mark.differs("artemis", "the rings of both nodes share the messages")
def test_with_strict_balancing_a_node_keeps_all_that_was_sent_to_it(
    lineup: str, brokers: Lineup, client: Client
) -> None:
    nodes = running(lineup, brokers, client.jms, "STRICT")
    for node, other in (nodes, nodes[::-1]):
        topic = "topic:" + client.name(f"late.strict.{node.port}")
        producer = client.producer(node, topic)
        elsewhere = client.producer(other, topic)
        client.jms.send(producer, range(0, 10))
        client.jms.send(elsewhere, range(100, 110))  # from here on both nodes have rings
        client.jms.send(producer, range(10, 20))
        assert client.numbers([client.consumer(node, topic)], KEPT) == [[15, 16, 17, 18, 19]]
    for node in nodes:
        node.close()


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_they_are_kept_over_a_restart(
    lineup: str, brokers: Lineup, client: Client, ending: str
) -> None:
    nodes = running(lineup, brokers, client.jms, "ON_DEMAND")
    topic = client.name("late.again")
    for node in nodes:
        producer = client.producer(node, "topic:" + topic)
        client.jms.send(producer, range(0, 9))
        client.leave(producer)
        client.leave(client.durable(node, topic, f"before-{node.port}"))
        getattr(node, ending)()
        node.start()
        assert client.numbers([client.durable(node, topic, f"before-{node.port}")], KEPT) == [
            [4, 5, 6, 7, 8]
        ]
        assert client.numbers([client.consumer(node, "topic:" + topic)], KEPT) == [
            [4, 5, 6, 7, 8]
        ]
    for node in nodes:
        node.close()
