"""The stream's calls by Spark 4.0 and 4.1: `latestOffset` has no start, and nobody tells of Trigger.AvailableNow."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import StructType

from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.options import read_options
from atalanta.spark.read.older_stream_reader import OlderStreamReader
from atalanta.spark.read.partition_reader import RangePartition
from tests.spark.fake_node import FakeCluster, FakeGateway
from tests.spark.read.query_rig import add
from tests.spark.read.streaming_rig import QUEUE, waiting

Json = dict[str, Any]


def started(cluster: FakeCluster, **options: str) -> OlderStreamReader:
    settings = {"servers": cluster.servers, "queue": QUEUE, "nodeTimeout": "20s"}
    schema: StructType = COLUMNS
    return OlderStreamReader(
        read_options(settings | {"positionCache": "0s"} | options), schema, FakeGateway
    )


def rows(reader: OlderStreamReader, start: Json, end: Json) -> list[tuple[str, int]]:
    found = []
    for part in reader.partitions(start, end):
        assert isinstance(part, RangePartition)
        for batch in reader.read(part):
            nodes, sequences = batch.column("node").to_pylist(), batch.column("sequence")
            found += list(zip(nodes, sequences.to_pylist(), strict=True))
    return found


def test_batches_under_a_limit_are_acknowledged_when_the_next_is_planned(
    cluster: FakeCluster,
) -> None:
    add(cluster, 20)
    reader = started(cluster, maxOffsetsPerTrigger="10")
    end = reader.latestOffset()  # Spark asks for the end first
    start = reader.initialOffset()
    found = []
    while end != start:
        batch = rows(reader, start, end)
        assert len(batch) == 10
        found += batch
        start, end = end, reader.latestOffset()
        if end != start:
            reader.commit(start)
        assert sum(waiting(cluster)) == 40 - len(found)
    assert len(found) == len(set(found)) == 40
    reader.stop()


def test_a_restart_repeats_the_unfinished_batch_and_goes_on_after_it(cluster: FakeCluster) -> None:
    add(cluster, 20)
    reader = started(cluster, maxOffsetsPerTrigger="10")
    first = reader.latestOffset()
    start = reader.initialOffset()
    seen = rows(reader, start, first)
    second = reader.latestOffset()
    reader.commit(first)
    lost = rows(reader, first, second)
    again = started(cluster, maxOffsetsPerTrigger="10")
    again.partitions(second, second)  # Spark's checkpoint, before anything else
    repeated = rows(again, first, second)
    assert sorted(repeated) == sorted(lost)
    third = again.latestOffset()
    again.commit(second)
    assert sum(waiting(cluster)) == 20
    rest = rows(again, second, third)
    assert len(set(seen + repeated + rest)) == 30
    again.stop()


def test_a_plan_before_the_repeat_acknowledges_nothing(cluster: FakeCluster) -> None:
    """Spark's order with spark.sql.streaming.triggerAvailableNowWrapper.enabled."""
    add(cluster, 5)
    reader = started(cluster)
    end = reader.latestOffset()
    start = reader.initialOffset()
    rows(reader, start, end)
    again = started(cluster)
    again.partitions(end, end)
    assert again.latestOffset() == end
    assert sum(waiting(cluster)) == 10
    assert len(rows(again, start, end)) == 10
    again.stop()
