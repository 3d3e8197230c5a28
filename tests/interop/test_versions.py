"""Real Artemis nodes of other versions, in a cluster with a node of ours and for our clients."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from atalanta.client import Connecting, Message, blocking, connect
from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.source import AtalantaDataSource
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import PASSWORD, USER
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.wal_steps import query_at

pytestmark = [pytest.mark.interop, pytest.mark.versions, pytest.mark.timeout(300)]

VERSIONS = ("2.6.4", "2.16.0", "2.28.0", "2.36.0", "2.37.0", "2.44.0", "2.56.0")
QUEUE = '<address name="both"><anycast><queue name="both"/></anycast></address>'
COUNT = 40
LARGE = 300_000
WAIT_SECONDS = 30

Pair = tuple[BrokerProcess, BrokerProcess]


@pytest.fixture(scope="module", params=VERSIONS)
def pair(request: pytest.FixtureRequest, brokers: Lineup) -> Iterator[Pair]:
    """(ours, the real one), running, in one cluster."""

    def shaping(index: int, ports: list[int]) -> Shape:
        return Shape(Cluster(peers=(ports[1 - index],)), addresses=QUEUE)

    ours, real = brokers.cluster(f"atalanta+artemis-{request.param}", shaping)
    for node in (real, ours):
        node.launch()
    for node in (real, ours):
        node.await_ready()
    yield ours, real
    for node in (ours, real):
        node.close()


def opened(node: BrokerProcess) -> Connecting:
    return connect(f"tcp://127.0.0.1:{node.port}", user=USER, password=PASSWORD)


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


def test_spark_reads_a_batch_and_a_stream(pair: Pair, tmp_path: Path) -> None:
    server = f"127.0.0.1:{pair[1].port}"
    with blocking.connect(f"tcp://{server}", user=USER, password=PASSWORD) as connection:
        producer = connection.producer("spark", routing="anycast")
        for number in range(COUNT):
            producer.send(Message(text=str(number)))
    options = {"servers": server, "user": USER, "password": PASSWORD, "queue": "spark"}
    reader = AtalantaDataSource(options).reader(COLUMNS)
    batches: list[Any] = [batch for part in reader.partitions() for batch in reader.read(part)]
    texts = [text for batch in batches for text in batch.column("text").to_pylist()]
    assert texts == [str(number) for number in range(COUNT)]
    query = query_at(server, "spark", str(tmp_path))
    query.run()
    assert query.queues == {"spark": COUNT}


def test_the_command_line_lists_its_queues(pair: Pair) -> None:
    login = ["--url", f"tcp://127.0.0.1:{pair[1].port}", "--user", USER, "--password", PASSWORD]
    words = ["queue", "stat", *login, "--json"]
    done = subprocess.run([sys.executable, "-m", "atalanta", *words], capture_output=True, text=True, timeout=60)
    assert "both" in [row["name"] for row in json.loads(done.stdout)], done.stderr
