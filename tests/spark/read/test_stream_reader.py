"""The streaming source against the fake: what real nodes do too seldom to wait for."""

from __future__ import annotations

import json
import threading
import time
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


def archive(frame: DataFrame, folder: Path, **trigger: Any) -> StreamingQuery:
    writer = frame.select("node", "sequence", "text").writeStream.format("parquet")
    writer = writer.option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(**(trigger or {"availableNow": True})).start()


def rows(spark: SparkSession, folder: Path) -> list[tuple[str, int, str]]:
    found = spark.read.parquet(str(folder / "out")).collect()
    return sorted((row.node, row.sequence, row.text) for row in found)


def test_available_now_reads_all_and_leaves_the_queues_empty(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    expected = fill(cluster, 700, 150)
    query = archive(source(fake, cluster, maxOffsetsPerTrigger=300), tmp_path)
    query.awaitTermination(60)
    assert rows(fake, tmp_path) == sorted(expected)
    assert waiting(cluster) == [0, 0]
    # Shared by backlog: the batches took from both nodes, more from the longer queue.
    (first, *_) = [one["numInputRows"] for one in query.recentProgress if one["numInputRows"]]
    assert first == 300
    end = query.recentProgress[0]["sources"][0]["endOffset"]
    sequences = {node: one["sequence"] for node, one in json.loads(end)["nodes"].items()}
    assert sequences["node-1"] == 247 and sequences["node-2"] == 53


def test_a_second_run_goes_on_and_an_idle_one_reads_nothing(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    expected = fill(cluster, 5, 5)
    archive(source(fake, cluster), tmp_path).awaitTermination(60)
    archive(source(fake, cluster), tmp_path).awaitTermination(60)
    expected += fill(cluster, 3, 0)
    archive(source(fake, cluster), tmp_path).awaitTermination(60)
    assert rows(fake, tmp_path) == sorted(expected)
    assert waiting(cluster) == [0, 0]


def test_an_idle_run_acknowledges_what_a_killed_one_could_not(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 5, 5)
    archive(source(fake, cluster), tmp_path).awaitTermination(60)
    # As if the driver had been killed between its last commit and the acknowledgement.
    for node in cluster.nodes:
        queue = node.queue(QUEUE)
        queue.acked = 0
        queue.last = 0
        for _ in range(5):
            queue.add("again")
    assert waiting(cluster) == [5, 5]
    archive(source(fake, cluster), tmp_path).awaitTermination(60)
    assert waiting(cluster) == [0, 0]
    assert len(rows(fake, tmp_path)) == 10


def test_a_node_that_joins_is_read_from_its_beginning(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    expected = fill(cluster, 5, 5)
    archive(source(fake, cluster), tmp_path).awaitTermination(60)
    only_first = cluster.nodes[0].address
    cluster.join()
    expected += fill(cluster, 0, 1, 9)
    archive(source(fake, cluster, servers=only_first), tmp_path).awaitTermination(60)
    assert rows(fake, tmp_path) == sorted(expected)
    assert waiting(cluster) == [0, 0, 0]


def test_a_node_that_is_away_holds_the_batch_back(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    expected = fill(cluster, 5, 5)
    query = archive(source(fake, cluster), tmp_path, processingTime="0 seconds")
    until(lambda: waiting(cluster) == [0, 0], "the first batch")
    cluster.nodes[1].stop()
    expected += fill(cluster, 7, 7)
    time.sleep(0.5)
    assert query.isActive and waiting(cluster) == [7, 7]
    cluster.nodes[1].start()
    until(lambda: waiting(cluster) == [0, 0], "the batch after the restart")
    query.stop()
    assert rows(fake, tmp_path) == sorted(expected)


def test_a_node_that_stays_away_is_named(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 5, 5)
    archive(source(fake, cluster), tmp_path).awaitTermination(60)
    cluster.nodes[1].stop()
    query = archive(source(fake, cluster, nodeTimeout="500ms"), tmp_path)
    with pytest.raises(StreamingQueryException, match=r"node node-2 \(127.0.0.1:\d+\)") as caught:
        query.awaitTermination(60)
    assert "removedNodes" in str(caught.value)
    fill(cluster, 2, 0)
    query = archive(source(fake, cluster, removedNodes="node-2", nodeTimeout="1s"), tmp_path)
    query.awaitTermination(60)
    assert len(rows(fake, tmp_path)) == 12


def test_unreachable_fail_does_not_wait(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 5, 5)
    cluster.nodes[1].stop()
    query = archive(source(fake, cluster, unreachable="fail"), tmp_path)
    with pytest.raises(StreamingQueryException, match="unreachable=fail"):
        query.awaitTermination(30)


def test_a_task_goes_on_after_a_restart_of_its_node(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    expected = fill(cluster, 1000, 10)
    node = cluster.nodes[0]
    node.dies_at["read"] = 3
    query = archive(source(fake, cluster), tmp_path)
    assert node.stopped.wait(30)
    node.start()
    query.awaitTermination(60)
    assert rows(fake, tmp_path) == sorted(expected)
    assert waiting(cluster) == [0, 0]


def test_the_later_query_of_a_group_stops_the_earlier_one(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 5, 5)
    first = archive(source(fake, cluster), tmp_path / "a", processingTime="0 seconds")
    until(lambda: waiting(cluster) == [0, 0], "the first batch")
    second = archive(source(fake, cluster), tmp_path / "b", processingTime="0 seconds")
    until(lambda: cluster.nodes[0].queue(QUEUE).epoch == 2, "the take-over")
    fill(cluster, 5, 5)
    with pytest.raises(StreamingQueryException, match="another query took over group 'spark'"):
        first.awaitTermination(30)
    assert second.isActive
    second.stop()


def test_a_real_artemis_among_the_members_stops_the_query(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 5, 5)
    cluster.nodes[1].is_artemis = True
    query = archive(source(fake, cluster), tmp_path)
    with pytest.raises(StreamingQueryException, match="node-2 is not an Atalanta node"):
        query.awaitTermination(30)


def test_lost_ranges_stop_the_query_unless_it_may_lose(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    expected = fill(cluster, 5, 5)
    cluster.nodes[0].queue(QUEUE).lost.append((2, 3, "moved by an administrator"))
    with pytest.raises(StreamingQueryException, match="2 to 3 \\(moved by an administrator\\)"):
        archive(source(fake, cluster), tmp_path).awaitTermination(30)
    archive(source(fake, cluster, failOnDataLoss="false"), tmp_path).awaitTermination(30)
    assert rows(fake, tmp_path) == sorted(expected)


def test_a_queue_that_was_made_anew_is_noticed(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 5, 5)
    archive(source(fake, cluster), tmp_path).awaitTermination(30)
    del cluster.nodes[0].queues[QUEUE]
    cluster.nodes[0].queue(QUEUE).incarnation = "inc-2"
    fill(cluster, 3, 0)
    with pytest.raises(StreamingQueryException, match="deleted and created again"):
        archive(source(fake, cluster), tmp_path).awaitTermination(30)
    archive(source(fake, cluster, failOnDataLoss="false"), tmp_path).awaitTermination(30)
    assert len(rows(fake, tmp_path)) == 13
    assert waiting(cluster) == [0, 0]


def test_leases_are_renewed_while_a_batch_takes_long(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 5, 5)
    release = threading.Event()

    def slowly(frame: DataFrame, number: int) -> None:
        release.wait(20)

    query = (
        source(fake, cluster, leaseTimeout="1s", requestTimeout="1s")
        .writeStream.foreachBatch(slowly)
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    node = cluster.nodes[0]
    until(lambda: node.requests.count("lease") >= 4, "renewals during the batch")
    release.set()
    query.stop()
