"""Acknowledging in the background: what goes wrong there stops the query before its next batch, and loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.errors import Fenced, NodeTimeout
from atalanta.spark.options import read_options
from atalanta.spark.read.partition_reader import RangePartition
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from tests.spark.fake_node import FakeCluster, FakeGateway

QUEUE = "flights::archive"
Json = dict[str, Any]


class Query:
    """Calls the source as Spark does, batch after batch, without Spark."""

    def __init__(self, cluster: FakeCluster, **options: str) -> None:
        settings = {"servers": cluster.servers, "queue": QUEUE, "nodeTimeout": "20s"}
        settings |= {"positionCache": "0s"} | options
        self.reader = AtalantaStreamReader(read_options(settings), COLUMNS, FakeGateway)

    def plan(self, start: Json) -> Json:
        return self.reader.latestOffset(start, ReadAllAvailable())

    def read(self, start: Json, end: Json) -> list[int]:
        found = []
        for part in self.reader.partitions(start, end):
            assert isinstance(part, RangePartition)
            for batch in self.reader.read(part):
                found.extend(batch.column("sequence").to_pylist())
        return found


@pytest.fixture
def queries(cluster: FakeCluster) -> Iterator[list[Query]]:
    """Those that are to be stopped."""
    made: list[Query] = []
    yield made
    for query in made:
        query.reader.stop()


def add(cluster: FakeCluster, count: int) -> None:
    for node in cluster.nodes:
        for _ in range(count):
            node.queue(QUEUE).add("row")


def waiting(cluster: FakeCluster) -> list[int]:
    return [len(node.queue(QUEUE).messages) for node in cluster.nodes]


def after_one_batch(cluster: FakeCluster, query: Query) -> Json:
    """Its end; nothing is acknowledged yet, and more is there."""
    add(cluster, 3)
    start = query.reader.initialOffset()
    end = query.plan(start)
    assert sorted(query.read(start, end)) == [1, 1, 2, 2, 3, 3]
    add(cluster, 2)
    return end


def test_the_batch_begins_when_the_one_before_is_acknowledged(
    cluster: FakeCluster, queries: list[Query]
) -> None:
    queries.append(Query(cluster))
    start = after_one_batch(cluster, queries[0])
    end = queries[0].plan(start)
    assert sorted(queries[0].read(start, end)) == [4, 4, 5, 5]
    assert waiting(cluster) == [2, 2]


def test_a_query_that_was_fenced_meanwhile_begins_no_other_batch(
    cluster: FakeCluster, queries: list[Query]
) -> None:
    queries.append(Query(cluster))
    start = after_one_batch(cluster, queries[0])
    cluster.nodes[1].do_lease(QUEUE, "spark", "another", 1000, 0)
    end = queries[0].plan(start)
    with pytest.raises(Fenced, match="another query took over group 'spark'"):
        queries[0].read(start, end)
    assert waiting(cluster)[1] == 5
    # And never again, should Spark ask once more.
    with pytest.raises(Fenced):
        queries[0].read(start, end)
    with pytest.raises(Fenced):
        queries[0].plan(start)


def test_a_node_that_is_gone_when_it_should_acknowledge_stops_the_query_and_a_new_one_reads_all(
    cluster: FakeCluster, queries: list[Query]
) -> None:
    queries.append(Query(cluster, nodeTimeout="300ms"))
    start = after_one_batch(cluster, queries[0])
    cluster.nodes[1].dies_at["ack"] = 0
    end = queries[0].plan(start)
    with pytest.raises(NodeTimeout, match="node-2"):
        queries[0].read(start, end)
    cluster.nodes[1].start()
    # Of the same checkpoint: the batch that was planned comes first, then it goes on.
    queries.append(Query(cluster))
    assert sorted(queries[1].read(start, end)) == [4, 4, 5, 5]
    assert queries[1].plan(end) == end
    assert queries[1].plan(end) == end
    assert waiting(cluster) == [0, 0]


def test_a_node_that_returns_meanwhile_is_waited_for(
    cluster: FakeCluster, queries: list[Query]
) -> None:
    queries.append(Query(cluster))
    start = after_one_batch(cluster, queries[0])
    node = cluster.nodes[0]
    node.dies_at["ack"] = 0
    end = queries[0].plan(start)
    assert node.stopped.wait(10)
    node.start()
    assert sorted(queries[0].read(start, end)) == [4, 4, 5, 5]
    assert waiting(cluster) == [2, 2]
