"""Expired messages are no rows, and a repeat of a batch has the same rows at any time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from atalanta.message.message import BYTES, Message
from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.options import read_options
from atalanta.spark.read.batch import AtalantaBatchReader
from atalanta.spark.read.offsets import now_ms
from atalanta.spark.wal.browse_reader import BrowseReader
from atalanta.spark.wal.wal_stream_reader import WalStreamReader
from tests.spark.fake_node import FakeCluster, FakeGateway
from tests.spark.read.query_rig import Query
from tests.spark.read.streaming_rig import QUEUE, waiting
from tests.spark.wal.fake_broker import QUEUE as ORDERS
from tests.spark.wal.fake_broker import FakeBroker, FakeServers

Json = dict[str, Any]
SOON_MS = 1_500  # longer than a plan takes


def fill(cluster: FakeCluster) -> int:
    """Adds messages without expiry (1), expired (2) and soon to expire (3). Returns when the last one expires."""
    soon = now_ms() + SOON_MS
    queue = cluster.nodes[0].queue(QUEUE)
    for expires_at_ms in (0, now_ms() - 1, soon):
        queue.add("row", expires_at_ms=expires_at_ms)
    return soon


def wait_until(time_ms: int) -> None:
    while now_ms() <= time_ms:
        time.sleep(0.02)


def test_a_stream_has_the_same_rows_when_a_batch_is_repeated_later(cluster: FakeCluster) -> None:
    soon = fill(cluster)
    query = Query(cluster)
    initial = query.reader.initialOffset()
    end = query.plan(initial)
    wait_until(soon)
    assert query.read(initial, end) == [1, 3]
    again = Query(cluster)
    assert again.read(initial, json.loads(json.dumps(end))) == [1, 3]
    assert again.plan(end) == end
    assert waiting(cluster) == [0, 0]  # the expired one is acknowledged with its batch


def test_the_offset_of_an_idle_queue_does_not_change(cluster: FakeCluster) -> None:
    fill(cluster)
    query = Query(cluster)
    first = query.plan(query.reader.initialOffset())
    cluster.nodes[1].queue(QUEUE).add("row")
    second = query.plan(first)
    assert second["nodes"]["node-1"] == first["nodes"]["node-1"]
    assert second["nodes"]["node-2"]["planned_at"] >= first["nodes"]["node-1"]["planned_at"]
    assert query.plan(second) == second


def test_an_offset_of_an_earlier_version_has_every_message(cluster: FakeCluster) -> None:
    fill(cluster)
    query = Query(cluster)
    initial = query.reader.initialOffset()
    end = query.plan(initial)
    del end["nodes"]["node-1"]["planned_at"]
    assert query.read(initial, end) == [1, 2, 3]


def test_a_stream_shows_them_if_that_is_asked_for(cluster: FakeCluster) -> None:
    fill(cluster)
    query = Query(cluster, includeExpired="true")
    initial = query.reader.initialOffset()
    assert query.read(initial, query.plan(initial)) == [1, 2, 3]


@pytest.mark.parametrize(("option", "rows"), [("false", [1, 3]), ("true", [1, 2, 3])])
def test_a_batch_read_takes_the_time_of_its_plan(cluster: FakeCluster, option: str, rows: list[int]) -> None:
    soon = fill(cluster)
    cluster.nodes[1].queue(QUEUE)
    options = read_options({"servers": cluster.servers, "queue": QUEUE, "includeExpired": option})
    reader = AtalantaBatchReader(options, COLUMNS, FakeGateway)
    parts = reader.partitions()
    wait_until(soon)
    found = [each for part in parts for batch in reader.read(part) for each in batch.column("sequence").to_pylist()]
    assert found == rows


@pytest.fixture
def broker() -> FakeBroker:
    """A real Artemis: message 2 is expired and has a body above maxBodyBytes, message 3 expires soon."""
    broker = FakeBroker()
    broker.add(3)
    for number, body, expires_at_ms in ((2, bytes(50), now_ms() - 1), (3, b"soon", now_ms() + SOON_MS)):
        broker.changed[number] = Message.create(ORDERS, body, BYTES)
        broker.changed[number].expiration = expires_at_ms
    return broker


GIVEN = {"servers": "b:1", "queue": ORDERS, "maxBodyBytes": "20"}


def test_a_wal_stream_takes_the_time_of_the_reception(tmp_path: Path, broker: FakeBroker) -> None:
    given = read_options(GIVEN | {"walLocation": str(tmp_path)})
    reader = WalStreamReader(given, COLUMNS, FakeServers(b=broker))
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(100))
    parts = reader.partitions(start, end)
    wait_until(broker.changed[3].expiration)
    for _ in range(2):
        rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        assert [row["body"] for row in rows] == [b"node-1/orders/1", b"soon"]
    assert broker.queues[ORDERS] == [] and not broker.prepared
    reader.stop()


def test_a_wal_stream_shows_them_if_that_is_asked_for(tmp_path: Path, broker: FakeBroker) -> None:
    given = read_options(GIVEN | {"walLocation": str(tmp_path), "includeExpired": "true", "maxBodyBytes": "50"})
    reader = WalStreamReader(given, COLUMNS, FakeServers(b=broker))
    start = reader.initialOffset()
    parts = reader.partitions(start, reader.latestOffset(start, ReadMaxRows(100)))
    rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert [row["body"] for row in rows] == [b"node-1/orders/1", bytes(50), b"soon"]
    reader.stop()


@pytest.mark.parametrize(("option", "rows"), [("false", [1, 3]), ("true", [1, 2, 3])])
def test_browsed_queues_take_the_time_of_the_plan(broker: FakeBroker, option: str, rows: list[int]) -> None:
    given = read_options(GIVEN | {"includeExpired": option, "maxBodyBytes": "50"})
    reader = BrowseReader(given, COLUMNS, FakeServers(b=broker))
    parts = reader.partitions()
    wait_until(broker.changed[3].expiration)
    found = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert [row["sequence"] for row in found] == rows
