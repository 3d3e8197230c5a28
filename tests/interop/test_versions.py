"""Real Artemis nodes and JMS clients of other versions, beside a node of ours and for our clients."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.client import Connecting, Message, connect
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.embedded import PROGRAM, EmbeddedArtemis, client_jars
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess, free_port
from tests.interop.harness.tools import SMALL_JVM, java

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

VERSIONS = ("2.6.4", "2.16.0", "2.28.0", "2.36.0", "2.56.0")
QUEUE = '<address name="both"><anycast><queue name="both"/></anycast></address>'
COUNT = 40
LARGE = 300_000
WAIT_SECONDS = 30

STEPS = ["old producer", "new producer", "temporary queue", "topic", "transaction"]

Pair = tuple[BrokerProcess, BrokerProcess]


@pytest.fixture(scope="module", params=VERSIONS)
def pair(request: pytest.FixtureRequest, brokers: Lineup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """(ours, the real one), running, in one cluster."""
    version: str = request.param
    port = free_port()
    cluster = Cluster(peers=(port,))
    (ours,) = brokers.cluster("atalanta", lambda index, ports: Shape(cluster, addresses=QUEUE))
    folder: Path = tmp_path_factory.mktemp("embedded") / version
    real = EmbeddedArtemis(folder, version, port, ours.port)
    real.configure()
    for node in (real, ours):
        node.launch()
    for node in (real, ours):
        node.await_ready()
    yield ours, real
    for node in (ours, real):
        node.close()


def opened(node: BrokerProcess) -> Connecting:
    return connect(f"tcp://127.0.0.1:{node.port}", user="admin", password="admin")


async def crossed(sender: BrokerProcess, receiver: BrokerProcess) -> list[object]:
    """The numbers of the messages that were sent at one node and consumed at the other."""
    async with opened(receiver) as there, opened(sender) as here:
        consumer = await there.consumer("both")
        producer = await here.producer("both", routing="anycast")
        numbers: list[object] = []
        for number in range(COUNT):
            await producer.send(Message(text="x" * (LARGE if number % 10 == 3 else 10), properties={"number": number}))
        while len(numbers) < COUNT:
            message = await consumer.receive(WAIT_SECONDS)
            assert message is not None, f"{len(numbers)} of {COUNT}"
            numbers.append(message.properties["number"])
            await message.acknowledge()
        return numbers


@pytest.mark.parametrize("way", ["ours-to-real", "real-to-ours"])
def test_messages_cross(pair: Pair, way: str) -> None:
    sender, receiver = pair if way == "ours-to-real" else (pair[1], pair[0])
    # In any order: what was sent before the sender knew of the consumer is redistributed.
    found = asyncio.run(crossed(sender, receiver))
    assert len(found) == COUNT and set(found) == set(range(COUNT))


def test_the_python_client_commits_and_manages(pair: Pair) -> None:
    async def conversation() -> tuple[list[str | None], object]:
        async with opened(pair[1]) as connection:
            consumer = await connection.consumer("both")
            async with connection.transaction() as transaction:
                for text in ("a", "b"):
                    await transaction.send("both", Message(text=text), routing="anycast")
            texts = []
            for _ in range(2):
                message = await consumer.receive(WAIT_SECONDS)
                assert message is not None
                texts.append(message.text)
                await message.acknowledge()
            return texts, await connection.management().get("queue.both", "RoutingType")

    assert asyncio.run(conversation()) == (["a", "b"], "ANYCAST")


@pytest.mark.parametrize("ending", ["stop", "kill"])
@pytest.mark.parametrize("version", ["2.6.4", "2.16.0", "2.28.0", "2.40.0"])
def test_a_jms_client_goes_on_when_its_node_is_back(brokers: Lineup, version: str, ending: str) -> None:
    """Its login after a reconnect names the node's version, not its own."""
    (node,) = brokers.cluster("atalanta", lambda index, ports: Shape(Cluster(), addresses=QUEUE))
    node.start()
    url = f"tcp://127.0.0.1:{node.port}?ha=true&reconnectAttempts=-1&retryInterval=200&callTimeout=5000"
    program = str(PROGRAM.with_name("Reconnect.java"))
    command = [java(), *SMALL_JVM, "-cp", f"{client_jars(version)}/*", program, url]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True) as client:
        assert client.stdin is not None and client.stdout is not None
        seen = [client.stdout.readline()]
        while seen[-1] not in ("before\n", ""):
            seen.append(client.stdout.readline())
        getattr(node, ending)()
        node.start()
        rest, _ = client.communicate("\n")
    steps = [line for line in rest.splitlines() if line in STEPS]
    assert steps == STEPS, "".join(seen) + rest
    node.stop()
