"""The stream's calls by Spark 4.0 and 4.1: `latestOffset` has no start, and nobody tells of Trigger.AvailableNow."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.errors import LogViewMissing, OptionError
from atalanta.spark.gateway.gateway import Credentials
from atalanta.spark.options import read_options
from atalanta.spark.read.older_stream_reader import OlderStreamReader
from atalanta.spark.read.partition_reader import RangePartition
from atalanta.spark.read.several_queues import QueuesStreamReader
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from atalanta.spark.wal.source_mode import limited_reader
from tests.spark.fake_node import FakeCluster, FakeGateway
from tests.spark.read.query_rig import add
from tests.spark.read.streaming_rig import QUEUE, waiting
from tests.spark.wal.fake_broker import QUEUE as ORDERS
from tests.spark.wal.fake_broker import FakeBroker, FakeServers

Json = dict[str, Any]


def started(cluster: FakeCluster, **options: str) -> OlderStreamReader:
    settings = {"servers": cluster.servers, "queue": QUEUE, "nodeTimeout": "20s"}
    schema: StructType = COLUMNS
    given = read_options(settings | {"positionCache": "0s"} | options)
    return OlderStreamReader(given, AtalantaStreamReader(given, schema, FakeGateway))


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
    add(cluster, 1)
    assert again.latestOffset() != end
    assert sum(waiting(cluster)) == 12
    assert len(rows(again, start, end)) == 10
    last = again.latestOffset()
    again.commit(end)
    assert len(rows(again, end, last)) == 2
    assert sum(waiting(cluster)) == 2
    again.stop()


def test_several_queues_are_read_and_acknowledged(cluster: FakeCluster) -> None:
    for node in cluster.nodes:
        for name in ("orders.eu", "orders.us"):
            for _ in range(3):
                node.queue(name).add("row")
    given = read_options({"servers": cluster.servers, "queuePattern": "orders.#", "positionCache": "0s"})
    reader = OlderStreamReader(given, QueuesStreamReader(given, COLUMNS, FakeGateway))
    end = reader.latestOffset()
    found = queue_rows(reader, reader.initialOffset(), end)
    assert len(set(found)) == len(found) == 12
    for node in cluster.nodes:
        node.queue("orders.asia").add("row")
    time.sleep(1.1)  # the pattern is matched again
    last = reader.latestOffset()
    reader.commit(end)
    assert {name for name, _, _ in queue_rows(reader, end, last)} == {"orders.asia"}
    assert reader.latestOffset() == last
    assert all(not queue.messages for node in cluster.nodes for queue in node.queues.values())
    reader.stop()


def test_a_repeat_over_several_queues_loses_nothing(cluster: FakeCluster) -> None:
    """Spark's order after a crash, and its order with spark.sql.streaming.triggerAvailableNowWrapper.enabled."""
    for node in cluster.nodes:
        for name in ("eu", "us"):
            node.queue(name).add("row")
    given = read_options({"servers": cluster.servers, "queue": "eu,us", "positionCache": "0s"})
    reader = OlderStreamReader(given, QueuesStreamReader(given, COLUMNS, FakeGateway))
    end = reader.latestOffset()
    start = reader.initialOffset()
    seen = queue_rows(reader, start, end)
    for planned_first in (False, True):
        again = OlderStreamReader(given, QueuesStreamReader(given, COLUMNS, FakeGateway))
        again.partitions(end, end)
        if planned_first:
            assert again.latestOffset() == end
        assert sorted(queue_rows(again, start, end)) == sorted(seen)
        again.stop()


def queue_rows(reader: OlderStreamReader, start: Json, end: Json) -> list[tuple[str, str, int]]:
    found: list[tuple[str, str, int]] = []
    for part in reader.partitions(start, end):
        for batch in reader.read(part):
            columns = batch.select(["queue", "node", "sequence"]).to_pydict()
            found += zip(*columns.values(), strict=True)
    return found


def wal_reader(broker: FakeBroker, folder: Path, **options: str) -> OlderStreamReader:
    """The reader without sourceMode, as a real Artemis needs it."""
    given = read_options({"servers": "b:1", "queue": ORDERS, "walLocation": str(folder)} | options)

    def refused(server: str, credentials: Credentials) -> FakeGateway:
        raise LogViewMissing("no log view")

    chosen = limited_reader(given, COLUMNS, refused, FakeServers(b=broker), "")
    return OlderStreamReader(given, chosen)


def bodies(reader: OlderStreamReader, start: Json, end: Json) -> list[bytes]:
    return [
        body
        for part in reader.partitions(start, end)
        for batch in reader.read(part)
        for body in batch.column("body").to_pylist()
    ]


def test_a_real_artemis_is_streamed(tmp_path: Path) -> None:
    broker = FakeBroker()
    broker.add(5)
    reader = wal_reader(broker, tmp_path, maxOffsetsPerTrigger="3")
    end = reader.latestOffset()
    start = reader.initialOffset()
    found = bodies(reader, start, end)
    second = reader.latestOffset()
    reader.commit(end)
    found += bodies(reader, end, second)
    assert found == [f"node-1/orders/{number}".encode() for number in range(1, 6)]
    assert reader.latestOffset() == second and broker.queues[ORDERS] == []
    assert len(list(tmp_path.glob("*.wal"))) == 1  # committed batches are removed, the newest file stays
    reader.stop()


def test_a_real_artemis_is_streamed_once_over_a_crash(tmp_path: Path) -> None:
    broker = FakeBroker()
    broker.add(2)
    first = wal_reader(broker, tmp_path, maxOffsetsPerTrigger="1")
    one = first.latestOffset()
    start = first.initialOffset()
    seen = bodies(first, start, one)
    two = first.latestOffset()
    first.commit(one)
    lost = bodies(first, one, two)
    broker.add(1)
    again = wal_reader(broker, tmp_path, maxOffsetsPerTrigger="1")
    again.partitions(two, two)
    three = again.latestOffset()  # before the repeat: with the wrapper
    assert bodies(again, one, two) == lost
    again.commit(two)
    found = seen + lost + bodies(again, two, three)
    assert found == [f"node-1/orders/{number}".encode() for number in range(1, 4)]
    again.stop()


def test_options_that_need_a_newer_spark_are_refused_with_what_to_do(cluster: FakeCluster) -> None:
    with pytest.raises(OptionError, match=r"minOffsetsPerTrigger needs Spark 4\.2.*longer trigger"):
        started(cluster, minOffsetsPerTrigger="10")
