"""Message groups in a cluster of three with grouping handlers: each group is read at one node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import Jms
from tests.interop.harness.lineup import Lineup, Shaping
from tests.interop.harness.node import BrokerProcess
from tests.interop.jms_client import Client
from tests.interop.running_nodes import running

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

Nodes = list[BrokerProcess]
HANDLER = """<grouping-handler name="groups"><type>{type}</type><address>groups</address>
<timeout>5000</timeout></grouping-handler>"""


def deciding(local: int) -> Shaping:
    """The node of that index has the LOCAL handler."""

    def shaping(index: int, ports: list[int]) -> Shape:
        kind = "LOCAL" if index == local else "REMOTE"
        peers = tuple(port for at, port in enumerate(ports) if at != index)
        return Shape(Cluster(peers), -1, core=HANDLER.format(type=kind))

    return shaping


@pytest.fixture(scope="module", params=[0, 1], ids=["first decides", "second decides"])
def nodes(
    request: pytest.FixtureRequest, trio: str, brokers: Lineup, jms: Jms
) -> Iterator[Nodes]:
    """In the mixed line-up the second is the real one."""
    made = running(jms, brokers, trio, deciding(request.param), 3)
    yield made
    for node in made:
        node.close()


def ready(client: Client, nodes: Nodes) -> tuple[str, list[str]]:
    """A queue with a consumer at every node, known to all."""
    queue = "queue:" + client.name("q")
    consumers = [client.consumer(node, queue) for node in nodes]
    for node in nodes:
        probe = client.producer(node, queue)
        for consumer in consumers:
            client.warm(probe, consumer)
        client.leave(probe)
    for consumer in consumers:
        client.jms.receive(consumer, 1000, 300)
    return queue, consumers


def places(shares: list[list[int]], size: int) -> list[int]:
    """How many nodes read messages of each group; a group is `size` numbers."""
    found: dict[int, dict[int, bool]] = {}
    for node, numbers in enumerate(shares):
        for number in numbers:
            found.setdefault(number // size, {})[node] = True
    return [len(each) for each in found.values()]


def test_a_group_from_every_node_in_turn(client: Client, nodes: Nodes) -> None:
    queue, consumers = ready(client, nodes)
    producers = [client.producer(node, queue) for node in nodes]
    for group in range(6):
        for turn in range(9):
            number = group * 9 + turn
            producer = producers[(group + turn) % 3]
            client.jms.send(producer, range(number, number + 1), JMSXGroupID=f"g{group}")
    shares = client.numbers(consumers, 54)
    assert places(shares, 9) == [1] * 6
    for share in shares:
        for group in range(6):
            for sender in range(3):  # those of one producer are in order
                mine = [each for each in share if each // 9 == group and each % 3 == sender]
                assert mine == sorted(mine)


@pytest.mark.differs("artemis", "a group splits when its first messages reach several nodes at once")
def test_a_group_from_every_node_at_once(client: Client, nodes: Nodes) -> None:
    queue, consumers = ready(client, nodes)
    producers = [client.producer(node, queue, "blockOnDurableSend=false") for node in nodes]
    for group in range(12):
        for at, producer in enumerate(producers):
            client.jms.send(producer, range(group * 3 + at, group * 3 + at + 1), JMSXGroupID=f"h{group}")
    assert places(client.numbers(consumers, 36), 3) == [1] * 12


def test_a_group_in_one_transaction(client: Client, nodes: Nodes) -> None:
    queue, consumers = ready(client, nodes)
    for at, node in enumerate(nodes):
        producer = client.transacted(node, queue)
        client.jms.send(producer, range(10 * at, 10 * at + 10), JMSXGroupID="t")
        client.jms("commit", producer)
    assert places(client.numbers(consumers, 30), 30) == [1]


def test_the_node_of_a_group_is_killed_and_comes_back(client: Client, nodes: Nodes) -> None:
    """The third never decides. Its queue gets the group: it is the only one with a consumer."""
    queue = "queue:" + client.name("q")
    for node in nodes:
        client.leave(client.consumer(node, queue))
    consumer = client.consumer(nodes[2], queue)
    probe = client.producer(nodes[0], queue)
    client.warm(probe, consumer)
    client.jms.send(probe, range(5), JMSXGroupID="k")
    assert client.numbers([consumer], 5) == [list(range(5))]
    client.leave(consumer)
    nodes[2].kill()
    client.jms.send(probe, range(5, 10), JMSXGroupID="k")
    nodes[2].start()
    consumer = client.consumer(nodes[2], queue)
    client.jms.send(probe, range(10, 15), JMSXGroupID="k")
    (got,) = client.numbers([consumer], 10, redeliveries=True)
    assert sorted(got) == list(range(5, 15))
