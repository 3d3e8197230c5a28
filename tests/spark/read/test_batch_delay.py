"""A batch waits for minOffsetsPerTrigger messages, but no message longer than maxTriggerDelay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.options import read_options
from atalanta.spark.read.batch_delay import BatchDelay
from atalanta.spark.read.several_queues import QueuesStreamReader
from atalanta.spark.wal.wal_stream_reader import WalStreamReader
from tests.spark.fake_node import FakeCluster, FakeGateway
from tests.spark.read.query_rig import EVERYTHING, Query, add
from tests.spark.read.streaming_rig import waiting
from tests.spark.wal.fake_broker import QUEUE, FakeBroker, FakeServers


class Clock:
    """Seconds that a test sets."""

    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def delayed(reader: Any) -> Clock:
    clock = Clock()
    reader._delay = BatchDelay(reader.options, clock)
    return clock


def test_a_message_waits_no_longer_than_the_delay() -> None:
    clock = Clock()
    given = {"servers": "a:1", "queue": "q", "minOffsetsPerTrigger": "10", "maxTriggerDelay": "1m"}
    delay = BatchDelay(read_options(given), clock)
    assert not delay.holds(0)
    clock.now_s += 600  # an idle queue: the time begins with the first message
    assert delay.holds(1)
    clock.now_s += 59
    assert delay.holds(9)
    clock.now_s += 1
    assert not delay.holds(9)
    assert delay.holds(3)
    assert not delay.holds(10)


def test_a_batch_waits_until_enough_messages_are_there(cluster: FakeCluster) -> None:
    query = Query(cluster, minOffsetsPerTrigger="10", maxTriggerDelay="1m")
    add(cluster, 0)
    for node in cluster.nodes:
        node.queue("flights::archive")
    clock = delayed(query.reader)
    initial = query.reader.initialOffset()
    add(cluster, 4)
    assert query.plan(initial) == initial
    add(cluster, 1)
    first = query.plan(initial)
    assert len(query.read(initial, first)) == 10
    add(cluster, 1)
    assert query.plan(first) == first
    assert waiting(cluster) == [1, 1]  # the batch before is acknowledged while the next one waits
    clock.now_s += 60
    assert len(query.read(first, query.plan(first))) == 2


def test_a_run_with_available_now_does_not_wait(cluster: FakeCluster) -> None:
    add(cluster, 2)
    query = Query(cluster, minOffsetsPerTrigger="10")
    query.reader.prepareForTriggerAvailableNow()
    initial = query.reader.initialOffset()
    assert len(query.read(initial, query.plan(initial))) == 4


def test_the_messages_of_all_queues_count(cluster: FakeCluster) -> None:
    for node in cluster.nodes:
        for name in ("eu", "us"):
            node.queue(name)
    given = {"servers": cluster.servers, "queue": "eu,us", "positionCache": "0s", "minOffsetsPerTrigger": "6"}
    reader = QueuesStreamReader(read_options(given), COLUMNS, FakeGateway)
    cluster.readers.append(reader)
    initial = reader.initialOffset()
    cluster.nodes[0].queue("eu").add("row")
    cluster.nodes[1].queue("us").add("row")
    assert reader.latestOffset(initial, EVERYTHING) == initial
    for _ in range(2):
        cluster.nodes[0].queue("eu").add("row")
        cluster.nodes[1].queue("us").add("row")
    end = reader.latestOffset(initial, EVERYTHING)
    parts = reader.partitions(initial, end)
    assert sum(batch.num_rows for part in parts for batch in reader.read(part)) == 6


@pytest.mark.parametrize("available_now", [False, True])
def test_a_real_artemis_keeps_the_messages_meanwhile(tmp_path: Path, available_now: bool) -> None:
    broker = FakeBroker()
    broker.add(3)
    given = {"servers": "b:1", "queue": QUEUE, "walLocation": str(tmp_path), "minOffsetsPerTrigger": "4"}
    reader = WalStreamReader(read_options(given), COLUMNS, FakeServers(b=broker))
    if available_now:
        reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(100))
    assert (end == start, len(broker.queues[QUEUE])) == ((False, 0) if available_now else (True, 3))
    if not available_now:
        broker.add(1)
        assert reader.latestOffset(start, ReadMaxRows(100)) != start
        assert broker.queues[QUEUE] == []
    reader.stop()
