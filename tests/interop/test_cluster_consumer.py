"""The Python client's consumer at all members, of a cluster that balances nothing"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from atalanta.client import Connecting, Message, connect
from atalanta.client.cluster_consumer import ClusterConsumer
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import PASSWORD, USER
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

ADDRESSES = '<address name="all"><anycast><queue name="all"/></anycast></address>'
EACH = 40
GOES_ON = "reconnectAttempts=-1&initialConnectAttempts=-1&retryInterval=200"


@pytest.fixture
def nodes(lineup: str, brokers: Lineup) -> Iterator[list[BrokerProcess]]:
    def shaping(index: int, ports: list[int]) -> Shape:
        return Shape(Cluster((ports[1 - index],), load_balancing="OFF"), addresses=ADDRESSES)

    started = brokers.cluster(lineup, shaping)
    for node in started:
        node.start()
    yield started
    for node in started:
        node.close()


def at(node: BrokerProcess) -> Connecting:
    url = f"tcp://127.0.0.1:{node.port}?{GOES_ON}&stay=true"
    return connect(url, user=USER, password=PASSWORD)


async def send(node: BrokerProcess, *texts: str) -> None:
    async with at(node) as connection, await connection.producer("all") as producer:
        for text in texts:
            await producer.send(Message(text=text))


async def take(consumer: ClusterConsumer, found: Counter[str], wanted: int) -> None:
    """Takes until so many different messages have come, each acknowledged with an answer."""
    while len(found) < wanted:
        message = await asyncio.wait_for(consumer.receive(), 60)
        assert message is not None
        await message.acknowledge()
        found[str(message.text)] += 1


@pytest.mark.parametrize("window", [1 << 20, 0, 2_000])
def test_each_message_of_each_member_comes_once(nodes: list[BrokerProcess], window: int) -> None:
    async def main() -> None:
        servers = ",".join(f"tcp://127.0.0.1:{node.port}" for node in nodes)
        url = f"({servers})?{GOES_ON}&blockOnAcknowledge=true&consumerWindowSize={window}"
        async with connect(url, user=USER, password=PASSWORD) as connection:
            while len(connection.topology) < len(nodes):
                await asyncio.sleep(0.1)
            texts = [[f"{number}/{index}" for index in range(EACH)] for number in range(len(nodes))]
            for node, own in zip(nodes, texts, strict=True):
                await send(node, *own)
            consumer = await connection.consumer("all", members="all")
            assert isinstance(consumer, ClusterConsumer)
            found: Counter[str] = Counter()
            await take(consumer, found, EACH * len(nodes))
            arrived = list(found)
            for own in texts:
                assert [each for each in arrived if each in own] == own
            assert await consumer.receive(0) is None
            for end in (BrokerProcess.kill, BrokerProcess.stop):
                for number, node in enumerate(nodes):
                    end(node)
                    node.start()
                    await send(node, f"{end.__name__}/{number}")
                    await take(consumer, found, len(found) + 1)
            async with asyncio.timeout(60):
                while len(consumer.members) < len(nodes):
                    await asyncio.sleep(0.1)
            assert set(found.values()) == {1}

    asyncio.run(main())
