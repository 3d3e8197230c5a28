"""Batch reads: a snapshot, without taking anything from anybody."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.fake_node import FakeCluster
from tests.spark.read.streaming_rig import QUEUE, fill, waiting

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def read(spark: SparkSession, cluster: FakeCluster, **options: Any) -> DataFrame:
    reader = spark.read.format("atalanta").option("servers", cluster.servers)
    for name, value in ({"queue": QUEUE, "nodeTimeout": "5s"} | options).items():
        reader = reader.option(name, str(value))
    return reader.load()


def test_all_that_is_there_and_it_stays_there(fake: SparkSession, cluster: FakeCluster) -> None:
    expected = fill(cluster, 250, 3)
    found = read(fake, cluster, minPartitions=4).select("node", "sequence", "text").collect()
    assert sorted(tuple(row) for row in found) == sorted(expected)
    assert waiting(cluster) == [250, 3]
    assert all("lease" not in node.requests for node in cluster.nodes)


def test_spark_asks_for_all_columns_and_the_option_for_some(fake: SparkSession, cluster: FakeCluster) -> None:
    """If the first part fails, a newer Spark tells a Python source which columns it needs: use that."""
    fill(cluster, 20, 0)
    asked = cluster.nodes[0].asked_bodies
    assert read(fake, cluster).count() == len(read(fake, cluster).select("sequence").collect()) == 20
    assert asked == [True, True]
    asked.clear()
    some = read(fake, cluster, columns="timestamp,sequence")
    assert some.count() == 20 and some.columns == ["timestamp", "sequence"]
    assert asked == [False]


def test_from_and_to(fake: SparkSession, cluster: FakeCluster) -> None:
    fill(cluster, 10, 10)
    first, second = cluster.nodes
    starting = json.dumps({"node-1": 4, second.address: -1})
    ending = json.dumps({"node-1": 7})
    found = read(fake, cluster, startingOffsets=starting, endingOffsets=ending)
    assert sorted(row.sequence for row in found.collect()) == [5, 6, 7]


def test_from_a_time(fake: SparkSession, cluster: FakeCluster) -> None:
    queue = cluster.nodes[0].queue(QUEUE)
    for second in range(10):
        queue.add("x", timestamp_ms=second * 1000)
    fill(cluster, 0, 1)
    found = read(fake, cluster, startingTimestamp=7000).where("node = 'node-1'")
    assert sorted(row.sequence for row in found.collect()) == [8, 9, 10]


def test_a_schema_selects_columns_and_types_properties(
    fake: SparkSession, cluster: FakeCluster
) -> None:
    cluster.nodes[0].queue(QUEUE).add(b"x", carrier="UA", dep_delay=12.5)
    reader = fake.read.format("atalanta").schema("dep_delay double, carrier string, sequence long")
    frame = reader.option("servers", cluster.nodes[0].address).option("queue", QUEUE).load()
    cluster.nodes[1].queue(QUEUE)
    assert [tuple(row) for row in frame.collect()] == [(12.5, "UA", 1)]
    assert frame.count() == 1


def test_an_empty_queue_and_no_queue(fake: SparkSession, cluster: FakeCluster) -> None:
    with pytest.raises(Exception, match="no node of 127.0.0.1:.* has a queue flights::archive"):
        read(fake, cluster).count()
    fill(cluster, 0, 0)
    assert read(fake, cluster).count() == 0


def test_a_wrong_option_is_named(fake: SparkSession, cluster: FakeCluster) -> None:
    with pytest.raises(Exception, match="unknown option startingoffset: did you mean"):
        read(fake, cluster, startingOffset="latest").count()


def test_the_option_columns_reads_no_others(fake: SparkSession, cluster: FakeCluster) -> None:
    fill(cluster, 3, 0)
    frame = read(fake, cluster, columns="node, sequence")
    assert frame.schema.simpleString() == "struct<node:string,sequence:bigint>"
    assert sorted(tuple(row) for row in frame.collect()) == [("node-1", at) for at in (1, 2, 3)]
    assert frame.count() == 3
