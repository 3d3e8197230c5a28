"""Three nodes: symmetric, chain, ring and star; clients stay where they connect."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import Jms
from tests.interop.harness.lineup import Lineup, Shaping
from tests.interop.harness.node import BrokerProcess
from tests.interop.jms_client import Client
from tests.interop.running_nodes import Nodes, running

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


def connected(ways: dict[int, list[int]], hops: int, direct_only: bool = False) -> Shaping:
    """Node i has static connectors to the nodes in ways[i]."""

    def shaping(index: int, ports: list[int]) -> Shape:
        peers = tuple(ports[other] for other in ways[index])
        return Shape(Cluster(peers, max_hops=hops, direct_only=direct_only))

    return shaping


@pytest.fixture(scope="module")
def symmetric(trio: str, brokers: Lineup, jms: Jms) -> Iterator[Nodes]:
    """Everybody knows everybody; the third has a connector to the first only and learns the rest."""
    nodes = running(jms, brokers, trio, connected({0: [], 1: [0], 2: [0]}, 1), 3)
    yield nodes
    for node in nodes:
        node.close()


@pytest.fixture(scope="module")
def chain(trio: str, brokers: Lineup, jms: Jms) -> Iterator[Nodes]:
    """One way, first to third over the second; two hops."""
    nodes = running(jms, brokers, trio, connected({0: [1], 1: [2], 2: []}, 2, True), 1)
    yield nodes
    for node in nodes:
        node.close()


@pytest.fixture(scope="module")
def ring(trio: str, brokers: Lineup, jms: Jms) -> Iterator[Nodes]:
    """Each to the next, round; two hops."""
    nodes = running(jms, brokers, trio, connected({0: [1], 1: [2], 2: [0]}, 2, True), 1)
    yield nodes
    for node in nodes:
        node.close()


@pytest.fixture(scope="module")
def star(trio: str, brokers: Lineup, jms: Jms) -> Iterator[Nodes]:
    """The second is the middle, both ways; two hops."""
    nodes = running(jms, brokers, trio, connected({0: [1], 1: [0, 2], 2: [1]}, 2, True), 1)
    yield nodes
    for node in nodes:
        node.close()


def crosses(
    client: Client, sending: BrokerProcess, consuming: BrokerProcess, in_order: bool = True
) -> None:
    """A hundred messages, each once, and in order unless that is not asked for."""
    queue = "queue:" + client.name(f"q.{sending.name}.{consuming.name}")
    consumer = client.consumer(consuming, queue)
    producer = client.producer(sending, queue)
    client.warm(producer, consumer)
    client.jms.send(producer, range(100))
    (got,) = client.numbers([consumer], 100)
    assert (got if in_order else sorted(got)) == list(range(100))


def test_symmetric_every_way(client: Client, symmetric: Nodes) -> None:
    for sending in symmetric:
        for consuming in symmetric:
            crosses(client, sending, consuming)


def test_symmetric_three_consumers_share(client: Client, symmetric: Nodes) -> None:
    queue = "queue:" + client.name("q")
    consumers = [client.consumer(node, queue) for node in symmetric]
    producer = client.producer(symmetric[0], queue)
    client.warm(producer, consumers[1])
    client.warm(producer, consumers[2])
    for consumer in consumers:
        client.jms.receive(consumer, 1000, 300)
    client.jms.send(producer, range(90))
    shares = client.numbers(consumers, 90)
    assert [len(share) for share in shares] == [30, 30, 30]
    assert sorted(sum(shares, [])) == list(range(90))


def test_symmetric_a_topic_reaches_all(client: Client, symmetric: Nodes) -> None:
    topic = "topic:" + client.name("t")
    consumers = [client.consumer(node, topic) for node in symmetric]
    producer = client.producer(symmetric[2], topic)
    for consumer in consumers:
        client.warm(producer, consumer)
    for consumer in consumers:
        client.jms.receive(consumer, 1000, 300)
    client.jms.send(producer, range(50))
    assert client.numbers(consumers, 150) == [list(range(50))] * 3


def test_symmetric_backlog_is_shared_by_those_who_come(client: Client, symmetric: Nodes) -> None:
    queue = "queue:" + client.name("q")
    client.jms.send(client.producer(symmetric[1], queue), range(120))
    consumers = [client.consumer(symmetric[0], queue), client.consumer(symmetric[2], queue)]
    shares = client.numbers(consumers, 120)
    assert sorted(sum(shares, [])) == list(range(120))


def test_chain_over_a_middle_without_queues(client: Client, chain: Nodes) -> None:
    crosses(client, chain[0], chain[2])
    crosses(client, chain[0], chain[1])
    crosses(client, chain[1], chain[2])


def test_chain_goes_one_way(client: Client, chain: Nodes) -> None:
    queue = client.name("q")
    client.leave(client.consumer(chain[2], "queue:" + queue))
    here = client.consumer(chain[0], "queue:" + queue)
    client.jms.send(client.producer(chain[2], "queue:" + queue), range(20))
    assert client.jms.receive(here, 1, 2000) == []
    assert client.jms.queue(chain[2], queue)[1] == 20


def test_ring_everywhere(client: Client, ring: Nodes) -> None:
    for sending in ring:
        for consuming in ring:
            crosses(client, sending, consuming)


def test_star_over_the_middle(client: Client, star: Nodes) -> None:
    for sending in star:
        for consuming in star:
            # A real Artemis sends every other message round over the middle.
            crosses(client, sending, consuming, in_order=False)
