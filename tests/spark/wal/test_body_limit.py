"""The options maxBodyBytes and undecodable of streams with a write-ahead folder, and of browsed queues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from atalanta.message.message import BYTES, TEXT, Message
from atalanta.spark.errors import Undecodable
from atalanta.spark.options import read_options
from atalanta.spark.wal.browse_reader import BrowseReader
from atalanta.spark.wal.wal_stream_reader import WalStreamReader
from tests.spark.wal.fake_broker import QUEUE, FakeBroker, FakeServers

SCHEMA = (
    StructType().add("body", BinaryType()).add("sequence", LongType()).add("error", StringType())
)
Rows = list[dict[str, Any]]


def stream(servers: FakeServers, folder: Path, **options: str) -> Rows:
    """Returns the rows of one batch. They are committed at the broker when this returns."""
    given = {"servers": "b:1", "queue": QUEUE, "walLocation": str(folder)} | options
    reader = WalStreamReader(read_options(given), SCHEMA, servers)
    try:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadMaxRows(100))
        parts = reader.partitions(start, end)
        return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    finally:
        reader.stop()


def browsed(servers: FakeServers, folder: Path, **options: str) -> Rows:
    given = {"servers": "b:1", "queue": QUEUE} | options
    reader = BrowseReader(read_options(given), SCHEMA, servers)
    parts = reader.partitions()
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


@pytest.fixture
def broker() -> FakeBroker:
    """Five messages: the second has a body of 50 bytes, the fourth is a text message without a text."""
    broker = FakeBroker()
    broker.add(5)
    broker.changed[2] = Message.create(QUEUE, bytes(50), BYTES)
    broker.changed[4] = Message.create(QUEUE, b"no text", TEXT)
    return broker


@pytest.mark.parametrize("read", [stream, browsed])
def test_a_larger_body_stops_the_query_and_stays(
    tmp_path: Path, broker: FakeBroker, read: Callable[..., Rows]
) -> None:
    servers = FakeServers(b=broker)
    with pytest.raises(Undecodable, match="message 2 of queue orders at node node-1: the body has 50 bytes"):
        read(servers, tmp_path, maxBodyBytes="20")
    assert broker.queues[QUEUE] == [1, 2, 3, 4, 5] and not broker.prepared
    assert [len(row["body"]) for row in read(servers, tmp_path, maxBodyBytes="50")][1] == 50


@pytest.mark.parametrize("read", [stream, browsed])
def test_a_larger_body_is_a_row_without_it(
    tmp_path: Path, broker: FakeBroker, read: Callable[..., Rows]
) -> None:
    rows = read(FakeServers(b=broker), tmp_path, maxBodyBytes="20", undecodable="error")
    bodies = [b"node-1/orders/1", None, b"node-1/orders/3", b"no text", b"node-1/orders/5"]
    assert [row["body"] for row in rows] == bodies
    first = rows[0]["sequence"]
    assert [row["sequence"] - first for row in rows] == [0, 1, 2, 3, 4]
    errors = [row["error"] for row in rows]
    assert errors[1] == "the body has 50 bytes, more than 20" and "not a text" in errors[3]
    assert errors[0] is errors[2] is errors[4] is None


@pytest.mark.parametrize("read", [stream, browsed])
def test_fail_stops_at_a_message_that_cannot_be_converted(
    tmp_path: Path, broker: FakeBroker, read: Callable[..., Rows]
) -> None:
    with pytest.raises(Undecodable, match="the body is not a text.* Set undecodable=error"):
        read(FakeServers(b=broker), tmp_path, undecodable="fail")
