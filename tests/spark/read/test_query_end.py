"""Spark ends a query: what it leaves behind in the queues, with every trigger and in a self-join."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.fake_node import FakeCluster
from tests.spark.read.streaming_rig import QUEUE, fill, source, waiting
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def start(frame: DataFrame, folder: Path, trigger: dict[str, Any], **options: str) -> StreamingQuery:
    writer = frame.writeStream.format("noop").options(**options)
    return writer.option("checkpointLocation", str(folder)).trigger(**trigger).start()


def leases(cluster: FakeCluster) -> int:
    return sum(node.queue(QUEUE).lease_ms > 0 for node in cluster.nodes)


def test_a_query_that_is_stopped_or_has_ended_releases_its_leases(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 5, 5)
    query = start(source(fake, cluster), tmp_path, {"processingTime": "0 seconds"})
    until(lambda: waiting(cluster) == [0, 0], "the batch", 120.0)
    assert leases(cluster) == 2
    query.stop()
    until(lambda: leases(cluster) == 0, "the release")
    fill(cluster, 5, 5)
    start(source(fake, cluster), tmp_path, {"availableNow": True}).awaitTermination(60)
    until(lambda: leases(cluster) == 0, "the release at the end")
    assert waiting(cluster) == [0, 0]


@pytest.mark.parametrize("queues", [QUEUE, f"{QUEUE},other"])
def test_trigger_once_is_refused_and_available_now_named(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path, queues: str
) -> None:
    fill(cluster, 5, 5)
    for node in cluster.nodes:
        node.queue("other").incarnation = "inc-2"
    query = start(source(fake, cluster, queue=queues), tmp_path, {"once": True})
    with pytest.raises(StreamingQueryException, match=r"use trigger\(availableNow=True\)"):
        query.awaitTermination(60)
    assert waiting(cluster) == [5, 5]
    start(source(fake, cluster, queue=queues), tmp_path, {"availableNow": True}).awaitTermination(60)
    assert waiting(cluster) == [0, 0]
    until(lambda: leases(cluster) == 0, "the release")


@pytest.mark.parametrize("queues", [QUEUE, f"{QUEUE},other"])
def test_a_stream_is_joined_with_itself(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path, queues: str
) -> None:
    expected = fill(cluster, 6, 4)
    for node in cluster.nodes:
        node.queue("other").incarnation = "inc-2"
    if queues != QUEUE:
        cluster.nodes[0].queue("other").add("row")
        expected.append((cluster.nodes[0].node_id, 1, "row"))
    frame = source(fake, cluster, queue=queues, maxOffsetsPerTrigger=3)
    frame = frame.select("queue", "node", "sequence", "text")
    joined = frame.alias("a").join(frame.alias("b"), ["queue", "node", "sequence"])
    joined = joined.select("node", "sequence", "a.text")
    writer = joined.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination(120)
    assert waiting(cluster) == [0, 0]
    found = fake.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.node, row.sequence, row.text) for row in found) == sorted(expected)
    assert cluster.nodes[0].queue(QUEUE).epoch == 1
    until(lambda: leases(cluster) == 0, "the release")
    assert all(not node.queue("other").messages for node in cluster.nodes)
    assert all(node.queue("other").lease_ms == 0 for node in cluster.nodes)


def test_asynchronous_progress_tracking_is_refused(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 5, 5)
    frame = source(fake, cluster, maxOffsetsPerTrigger=2)
    query = start(
        frame, tmp_path, {"processingTime": "0 seconds"}, asyncProgressTrackingEnabled="true"
    )
    with pytest.raises(StreamingQueryException, match="asyncProgressTrackingEnabled"):
        query.awaitTermination(60)
    assert sum(waiting(cluster)) == 10
