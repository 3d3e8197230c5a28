"""The bounds of a batch read, and of its tasks."""

from __future__ import annotations

import json

import pytest

from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.options import read_options
from atalanta.spark.read.batch import AtalantaBatchReader
from atalanta.spark.read.several_queues import QueuesBatchReader
from tests.spark.fake_node import FakeCluster, FakeGateway
from tests.spark.read.query_rig import Query, add
from tests.spark.read.streaming_rig import QUEUE


@pytest.fixture
def seconds(cluster: FakeCluster) -> FakeCluster:
    """A message at each second, 0 to 9, at both nodes."""
    for node in cluster.nodes:
        for name in (QUEUE, "second"):
            for second in range(10):
                node.queue(name).add("row", timestamp_ms=second * 1000)
    return cluster


def tasks(cluster: FakeCluster, **options: str) -> list[list[tuple[str, int]]]:
    given = read_options({"servers": cluster.servers, "queue": QUEUE} | options)
    kind = QueuesBatchReader if given.several else AtalantaBatchReader
    reader = kind(given, COLUMNS, FakeGateway)
    found = []
    for part in reader.partitions():
        batches = [batch.select(["node", "sequence"]).to_pydict() for batch in reader.read(part)]
        found.append([row for batch in batches for row in zip(*batch.values(), strict=True)])
    return found


def sequences(cluster: FakeCluster, **options: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for task in tasks(cluster, **options):
        for node, sequence in task:
            found.setdefault(node, []).append(sequence)
    return found


def test_a_batch_between_two_times(seconds: FakeCluster) -> None:
    found = sequences(seconds, startingTimestamp="3000", endingTimestamp="6000")
    assert found == {"node-1": [4, 5, 6], "node-2": [4, 5, 6]}
    both = sequences(seconds, queue=f"{QUEUE},second", startingTimestamp="3000", endingTimestamp="6000")
    assert both == {"node-1": [4, 5, 6] * 2, "node-2": [4, 5, 6] * 2}


def test_times_of_each_node(seconds: FakeCluster) -> None:
    first, second = seconds.nodes
    starting = json.dumps({first.node_id: 8000, second.address: 2000})
    ending = json.dumps({second.node_id: 4000})
    found = sequences(seconds, startingTimestamp=starting, endingTimestamp=ending)
    assert found == {"node-1": [9, 10], "node-2": [3, 4]}
    only_one = sequences(seconds, startingTimestamp=json.dumps({second.node_id: 9000}))
    assert found["node-1"] == [9, 10] and only_one == {"node-1": list(range(1, 11)), "node-2": [10]}


def test_an_end_in_the_future_is_the_end_of_the_queue_and_one_before_the_start_is_empty(seconds: FakeCluster) -> None:
    assert len(sequences(seconds, endingTimestamp="99000")["node-1"]) == 10
    assert sequences(seconds, startingTimestamp="6000", endingTimestamp="3000") == {}


def test_a_task_has_at_most_so_many_messages(seconds: FakeCluster) -> None:
    sizes = [len(task) for task in tasks(seconds, maxRecordsPerPartition="4")]
    assert max(sizes) <= 4 and sum(sizes) == 20


def test_a_task_of_a_stream_too(cluster: FakeCluster) -> None:
    add(cluster, 10)
    query = Query(cluster, maxRecordsPerPartition="4")
    initial = query.reader.initialOffset()
    end = query.plan(initial)
    assert len(query.reader.partitions(initial, end)) == 6
    assert sorted(query.read(initial, end)) == sorted([*range(1, 11)] * 2)
