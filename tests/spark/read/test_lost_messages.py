"""Messages that leave the queue between the plan of a batch and its tasks."""

from __future__ import annotations

import pytest

from atalanta.spark.errors import DataLost, LeaseTaken
from tests.spark.fake_node import FakeCluster
from tests.spark.read.query_rig import Json, Query, add
from tests.spark.read.streaming_rig import QUEUE


def planned(cluster: FakeCluster, query: Query) -> tuple[Json, Json]:
    add(cluster, 3)
    start = query.reader.initialOffset()
    return start, query.plan(start)


def take_away(cluster: FakeCluster) -> None:
    """A consumer gets a message after the lease has ended."""
    queue = cluster.nodes[0].queue(QUEUE)
    del queue.messages[2]
    queue.lost.append((2, 2, "acknowledged by another consumer"))


def test_a_repeated_batch_that_came_back_smaller_stops_the_query(cluster: FakeCluster) -> None:
    start, end = planned(cluster, Query(cluster))
    take_away(cluster)
    with pytest.raises(DataLost, match=r"left the queue after they were planned: 2 to 2 \(acknowledged"):
        Query(cluster).read(start, end)


def test_a_repeated_batch_is_read_without_them_if_that_is_asked_for(cluster: FakeCluster) -> None:
    start, end = planned(cluster, Query(cluster))
    take_away(cluster)
    assert sorted(Query(cluster, failOnDataLoss="false").read(start, end)) == [1, 1, 2, 3, 3]


def test_a_fenced_task_names_the_other_query(cluster: FakeCluster) -> None:
    query = Query(cluster)
    start, end = planned(cluster, query)
    parts = query.reader.partitions(start, end)
    for node in cluster.nodes:
        epoch = node.do_lease(QUEUE, "spark", "another", 1000, 0).epoch
        node.do_ack_through(QUEUE, "inc-1", "spark", epoch, 3)
    with pytest.raises(LeaseTaken, match="another query took over group 'spark'"):
        list(query.reader.read(parts[0]))


def test_a_queue_that_was_created_again_is_told_once(cluster: FakeCluster) -> None:
    start, end = planned(cluster, Query(cluster))
    cluster.nodes[0].queue(QUEUE).incarnation = "inc-2"
    with pytest.raises(DataLost, match="is inc-2"):
        Query(cluster).read(start, end)
    assert Query(cluster, failOnDataLoss="false").read(start, end) == [1, 2, 3]
