"""Figures of the source in Spark's progress reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from atalanta.client import Position
from atalanta.spark.options import read_options
from atalanta.spark.read.members import Located
from atalanta.spark.read.offsets import NodeOffset, Offset
from atalanta.spark.read.progress import Progress
from tests.spark.fake_node import FakeCluster
from tests.spark.read.streaming_rig import fill, source
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def test_a_progress_report_has_group_lag_and_lease_of_each_node(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 30, 10)
    rows = source(fake, cluster, group="nightly", maxOffsetsPerTrigger=4)
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    try:
        until(lambda: len(query.recentProgress) > 1, "two batches")
        first = json.loads(query.recentProgress[0].sources[0].latestOffset)
    finally:
        query.stop()
    assert (first["queue"], first["group"], first["lag"]) == ("flights::archive", "nightly", 36)
    one, two = (first["nodes"][node.node_id] for node in cluster.nodes)
    assert (one["server"], one["lag"], one["epoch"]) == (cluster.nodes[0].address, 27, 1)
    assert (two["sequence"], two["lag"]) == (10, 9)
    assert 290 <= one["lease_seconds"] <= 300


def test_before_its_first_plan_a_query_lags_by_what_is_left_in_the_queue() -> None:
    progress = Progress(read_options({"servers": "a:1", "queue": "work"}))
    position = Position("n", "i", 91, 100, 10, 10, 90, 0, 0)
    assert progress.report({"n": Located("a:1", position)}, None)["lag"] == 10


def test_rates_are_those_since_the_report_before() -> None:
    now = [100.0]
    progress = Progress(read_options({"servers": "a:1", "queue": "work"}), lambda: now[0])

    def figures(last: int, planned: int) -> dict[str, float]:
        progress.plan(Offset("work", {"n": NodeOffset("i", planned, "a:1")}))
        position = Position("n", "i", 1, last, last, last, 0, 0, 0)
        report = progress.report({"n": Located("a:1", position)}, None)
        found: dict[str, float] = report["nodes"]["n"]
        return found

    assert figures(100, 20)["arrived_per_second"] == 0
    now[0] += 10
    found = figures(150, 120)
    assert (found["arrived_per_second"], found["read_per_second"], found["lag"]) == (5, 10, 30)
