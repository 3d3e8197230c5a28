"""Acknowledging in the background: what goes wrong there stops the query before its next batch, and loses nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.spark.errors import LeaseTaken, NodeTimeout
from tests.spark.fake_node import FakeCluster
from tests.spark.read.query_rig import Json, Query, add
from tests.spark.read.streaming_rig import QUEUE, waiting


@pytest.fixture
def queries(cluster: FakeCluster) -> Iterator[list[Query]]:
    """Those that are to be stopped."""
    made: list[Query] = []
    yield made
    for query in made:
        query.reader.stop()


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
    with pytest.raises(LeaseTaken, match="another query took over group 'spark'"):
        queries[0].read(start, end)
    assert waiting(cluster)[1] == 5
    # And never again, should Spark ask once more.
    with pytest.raises(LeaseTaken):
        queries[0].read(start, end)
    with pytest.raises(LeaseTaken):
        queries[0].plan(start)


def test_a_node_that_is_gone_when_it_should_acknowledge_stops_the_query_and_a_new_one_reads_all(
    cluster: FakeCluster, queries: list[Query]
) -> None:
    queries.append(Query(cluster, nodeTimeout="300ms"))
    start = after_one_batch(cluster, queries[0])
    cluster.nodes[1].dies_at["ack_through"] = 0
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
    node.dies_at["ack_through"] = 0
    end = queries[0].plan(start)
    assert node.stopped.wait(10)
    node.start()
    assert sorted(queries[0].read(start, end)) == [4, 4, 5, 5]
    assert waiting(cluster) == [2, 2]
