"""The streaming source on the fake nodes, and messages for it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.spark.fake_node import FakeCluster

QUEUE = "flights::archive"


def source(spark: SparkSession, cluster: FakeCluster, **options: Any) -> DataFrame:
    reader = spark.readStream.format("atalanta").option("servers", cluster.servers)
    for name, value in ({"queue": QUEUE, "nodeTimeout": "20s"} | options).items():
        reader = reader.option(name, str(value))
    return reader.load()


def fill(cluster: FakeCluster, *counts: int) -> list[tuple[str, int, str]]:
    """So many more messages for each node; what a reader should see of them."""
    added = []
    for node, count in zip(cluster.nodes, counts, strict=True):
        queue = node.queue(QUEUE)
        for _ in range(count):
            queue.add(f"{node.node_id}/{queue.last + 1}")
            added.append((node.node_id, queue.last, f"{node.node_id}/{queue.last}"))
    return added


def waiting(cluster: FakeCluster) -> list[int]:
    return [len(node.queue(QUEUE).messages) for node in cluster.nodes]
