"""The limit maxBytesPerTrigger holds over all nodes and queues; only a first message may exceed it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxBytes

from atalanta.message.message import BYTES, Message
from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.options import read_options
from atalanta.spark.read.batch_room import PlaceOrder
from atalanta.spark.read.several_queues import QueuesStreamReader
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from atalanta.spark.wal.wal_stream_reader import WalStreamReader
from tests.spark.fake_node import FakeCluster, FakeGateway
from tests.spark.wal.fake_broker import FakeBroker, FakeServers

Json = dict[str, Any]
Reader = AtalantaStreamReader | QueuesStreamReader | WalStreamReader
LIMIT = 10_000


class Run:
    """Reads to the end of the queues; keeps the bodies of each batch, with node and queue."""

    def __init__(self, reader: Reader) -> None:
        self.batches: list[list[tuple[str, str, int]]] = []
        reader.getDefaultReadLimit()
        start = first = reader.initialOffset()
        while (end := reader.latestOffset(start, ReadMaxBytes(LIMIT))) != start:
            if start != first:
                reader.commit(start)
            rows = []
            for part in reader.partitions(start, end):
                for batch in reader.read(part):
                    columns = batch.select(["node", "queue", "body"]).to_pydict()
                    rows += [(node, queue, len(body)) for node, queue, body in zip(*columns.values(), strict=True)]
            self.batches.append(rows)
            start = end
        reader.stop()

    def sizes(self) -> list[list[int]]:
        return [[size for _, _, size in batch] for batch in self.batches]

    def places(self) -> list[tuple[str, str]]:
        return [batch[0][:2] for batch in self.batches]


def reader(cluster: FakeCluster, queues: str) -> Reader:
    given = {"servers": cluster.servers, "queue": queues, "maxBytesPerTrigger": str(LIMIT), "positionCache": "0s"}
    options = read_options(given)
    kind: Callable[..., Reader] = QueuesStreamReader if options.several else AtalantaStreamReader
    return kind(options, COLUMNS, FakeGateway)


@pytest.mark.parametrize("queues", ["one", "one,two"])
def test_a_batch_has_one_message_that_exceeds_the_limit_not_one_of_each_node(
    cluster: FakeCluster, queues: str
) -> None:
    for node in cluster.nodes:
        for queue in queues.split(","):
            for _ in range(3):
                node.queue(queue).add(bytes(2 * LIMIT))
    run = Run(reader(cluster, queues))
    count = 6 * len(queues.split(","))
    assert run.sizes() == [[2 * LIMIT]] * count
    everywhere = {(node.node_id, queue) for node in cluster.nodes for queue in queues.split(",")}
    for at in range(0, count, len(everywhere)):  # nobody waits longer than for all others
        assert set(run.places()[at : at + len(everywhere)]) == everywhere


@pytest.mark.parametrize("queues", ["one", "one,two"])
def test_small_messages_fill_a_batch_up_to_the_limit_beside_large_ones(cluster: FakeCluster, queues: str) -> None:
    for queue in queues.split(","):
        for _ in range(40):
            cluster.nodes[0].queue(queue).add(bytes(500))
        for _ in range(3):
            cluster.nodes[1].queue(queue).add(bytes(2 * LIMIT))
    sizes = Run(reader(cluster, queues)).sizes()
    assert sum(len(batch) for batch in sizes) == 43 * len(queues.split(","))
    assert all(sum(batch) <= LIMIT or batch == [2 * LIMIT] for batch in sizes)
    assert min(sum(batch) for batch in sizes[:-1]) > LIMIT // 3


def test_batches_of_a_real_artemis_have_the_limit_too(tmp_path: Path) -> None:
    brokers = [FakeBroker(name, "one", "two") for name in ("node-1", "node-2")]
    for broker in brokers:
        for queue in ("one", "two"):
            broker.add(3, queue)
        for number in range(1, 4):
            broker.changed[number] = Message.create("q", bytes(2 * LIMIT if number > 1 else 500), BYTES)
    servers = FakeServers(a=brokers[0], b=brokers[1])
    given = {"servers": servers.names, "queue": "one,two", "walLocation": str(tmp_path)}
    given |= {"maxBytesPerTrigger": str(LIMIT)}
    stream = WalStreamReader(read_options(given), COLUMNS, servers)
    stream.prepareForTriggerAvailableNow()  # a message that had no room is not given up
    sizes = Run(stream).sizes()
    assert sorted(size for batch in sizes for size in batch) == [500] * 4 + [2 * LIMIT] * 8
    assert all(sum(batch) <= LIMIT or batch == [2 * LIMIT] for batch in sizes)
    assert not any(broker.prepared or any(broker.queues.values()) for broker in brokers)


def test_those_that_waited_are_the_first() -> None:
    turns = PlaceOrder()
    for place in ("c", "b"):
        turns.wait(place)
    assert turns.order(["a", "b", "c", "d"]) == ["c", "b", "a", "d"]
    turns.serve("c")
    turns.wait("a")
    assert turns.order(["a", "b", "c", "d"]) == ["b", "a", "c", "d"]
