"""One node in two clusters, each with its own acceptor and addresses; what an address list leaves out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.jms_client import Client
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

Nodes = list[BrokerProcess]
WEST = """         <cluster-connection name="west">
            <address>west,!west.private</address>
            <connector-ref>west-self</connector-ref>
            <retry-interval>200</retry-interval>
            <static-connectors><connector-ref>west-peer</connector-ref></static-connectors>
         </cluster-connection>"""


@pytest.fixture(scope="module")
def nodes(trio: str, brokers: Lineup, jms: Jms) -> Iterator[Nodes]:
    """The second is in a cluster with the first (`east`) and in another one with the third (`west`)."""
    west_port = free_port()

    def shaping(index: int, ports: list[int]) -> Shape:
        if index == 0:
            return Shape(Cluster((ports[1],), address="east"))
        if index == 2:
            return Shape(Cluster((west_port,), address="west,!west.private"))
        return Shape(
            Cluster((ports[0],), address="east", others=WEST),
            connectors=(("west-self", west_port), ("west-peer", ports[2])),
            acceptors=f'<acceptor name="west">tcp://127.0.0.1:{west_port}?protocols=CORE;'
            "clusterConnection=west</acceptor>",
        )

    made = brokers.cluster(trio, shaping)
    for node in made:
        node.launch()
    for node in made:
        node.await_ready()
    until("both clusters stand", lambda: all(len(jms.topology(node)) == 2 for node in made))
    yield made
    for node in made:
        node.close()


def both_ways(client: Client, queue: str, one: BrokerProcess, other: BrokerProcess) -> None:
    for sending, consuming in ((one, other), (other, one)):
        consumer = client.consumer(consuming, queue)
        producer = client.producer(sending, queue)
        client.warm(producer, consumer)
        client.jms.send(producer, range(50))
        assert client.numbers([consumer], 50) == [list(range(50))]
        client.leave(consumer)


def test_each_cluster_has_its_own_topology(jms: Jms, nodes: Nodes) -> None:
    east, middle, west = (jms.topology(node) for node in nodes)
    assert east == middle
    assert len(west) == 2 and len(west.keys() & east.keys()) == 1


def test_messages_cross_in_the_cluster_of_their_address(client: Client, nodes: Nodes) -> None:
    both_ways(client, "queue:east." + client.name("q"), nodes[0], nodes[1])
    both_ways(client, "queue:west." + client.name("q"), nodes[1], nodes[2])


def test_they_do_not_cross_in_the_other(client: Client, nodes: Nodes) -> None:
    queue = "east." + client.name("q")
    consumer = client.consumer(nodes[2], "queue:" + queue)
    client.jms.send(client.producer(nodes[1], "queue:" + queue), range(10))
    assert client.jms.receive(consumer, 1, 1000) == []
    assert client.jms.queue(nodes[1], queue)[1] == 10


def test_an_excluded_address_stays_at_home(client: Client, nodes: Nodes) -> None:
    queue = "west.private." + client.name("q")
    consumer = client.consumer(nodes[2], "queue:" + queue)
    client.jms.send(client.producer(nodes[1], "queue:" + queue), range(10))
    assert client.jms.receive(consumer, 1, 1000) == []
    assert client.jms.queue(nodes[1], queue)[1] == 10
