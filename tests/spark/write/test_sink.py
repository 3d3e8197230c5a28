"""The sink: one transaction a partition, at a node that follows from the options alone."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructType

from atalanta.spark.errors import NodeTimeout
from atalanta.spark.options import write_options
from atalanta.spark.write.sink import PartitionWriter, server_for
from tests.spark.fake_node import FakeCluster, FakeDataSource
from tests.spark.read.streaming_rig import eventually, fill, source, waiting

TEXT = StructType().add("value", StringType())


def test_the_node_of_a_partition_does_not_depend_on_the_order_of_servers() -> None:
    servers = ["c:3", "a:1", "b:2"]
    chosen = [server_for(servers, "query", partition) for partition in range(50)]
    assert chosen == [server_for(sorted(servers), "query", partition) for partition in range(50)]
    assert set(chosen) == set(servers)


def writer(cluster: FakeCluster, timeout: str = "10s") -> PartitionWriter:
    options = {"servers": cluster.servers, "address": "out", "nodeTimeout": timeout}
    return PartitionWriter(write_options(options), TEXT, FakeDataSource.connect)


def batches(*texts: str) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"value": [text]}) for text in texts]


def sent(cluster: FakeCluster) -> list[str]:
    return sorted(str(one["text"]) for node in cluster.nodes for one in node.sent)


def test_a_repeated_partition_is_sent_once(cluster: FakeCluster) -> None:
    first = writer(cluster).write(iter(batches("a", "b")), "q", 0, 0)
    again = writer(cluster).write(iter(batches("a", "b")), "q", 0, 0)
    later = writer(cluster).write(iter(batches("c")), "q", 1, 0)
    assert (first.messages, first.repeated, again.repeated, later.repeated) == (
        2, False, True, False,
    )  # fmt: skip
    assert first.server == again.server
    assert sent(cluster) == ["a", "b", "c"]


def test_a_write_waits_for_its_node(cluster: FakeCluster) -> None:
    for node in cluster.nodes:
        node.stop()
    done = []
    task = threading.Thread(
        target=lambda: done.append(writer(cluster).write(iter(batches("a")), "q", 0, 0))
    )
    task.start()
    for node in cluster.nodes:
        node.start()
    task.join(20)
    assert len(done) == 1 and sent(cluster) == ["a"]


def test_a_node_that_dies_in_the_commit_gets_the_partition_once(cluster: FakeCluster) -> None:
    for node in cluster.nodes:
        node.dies_at["send"] = 0
    task = threading.Thread(target=lambda: writer(cluster).write(iter(batches("a")), "q", 0, 0))
    task.start()
    eventually(lambda: any(node.stopped.is_set() for node in cluster.nodes), "the crash")
    for node in cluster.nodes:
        node.dies_at.clear()
        if node.stopped.is_set():
            node.start()
    task.join(20)
    assert not task.is_alive() and sent(cluster) == ["a"]


def test_a_node_that_stays_away_is_named(cluster: FakeCluster) -> None:
    for node in cluster.nodes:
        node.stop()
    with pytest.raises(NodeTimeout, match=r"server 127.0.0.1:\d+ did not answer for 0.3 s"):
        writer(cluster, "300ms").write(iter(batches("a")), "q", 0, 0)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_batches_are_written_and_overwriting_is_refused(
    fake: SparkSession, cluster: FakeCluster
) -> None:
    frame = fake.range(20).selectExpr("cast(id as string) value", "id % 3 as third")
    target = frame.repartition(3).write.format("atalanta").option("servers", cluster.servers)
    target = target.option("address", "out").option("propertyColumns", "third")
    target.mode("append").save()
    assert sent(cluster) == sorted(str(number) for number in range(20))
    first = next(one for node in cluster.nodes for one in node.sent)
    assert first["properties"] == {"third": int(first["text"]) % 3}
    with pytest.raises(Exception, match='use mode\\("append"\\)'):
        target.mode("overwrite").save()


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_streaming_query_writes_each_batch_once(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 50, 50)
    frame = source(fake, cluster, maxOffsetsPerTrigger=30).selectExpr("text as value")
    for _ in range(2):
        query = (
            frame.writeStream.format("atalanta")
            .option("servers", cluster.servers)
            .option("address", "out")
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)
        texts = sent(cluster)
        assert len(texts) == len(set(texts)) == 100
    assert waiting(cluster) == [0, 0]
