"""Bodies above a chunk of the log view, read by a task of a stream and of a batch from a real node."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from atalanta.client import Message, blocking
from atalanta.client.log import split_entries
from atalanta.spark.errors import Undecodable
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.gateway.gateway import Credentials
from atalanta.spark.options import read_options
from atalanta.spark.read.offsets import Range
from atalanta.spark.read.partition_reader import RangePartition, RangeReader
from tests.spark.nodes import PASSWORD, QUEUE, USER, BrokerCluster

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

LARGE = bytes(range(256)) * (9 << 12)  # 9 MiB
TEXT = "grün" * (5 << 18)  # 10 MiB in the message
SCHEMA = StructType().add("body", BinaryType()).add("text", StringType()).add("error", StringType())


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path_factory.mktemp("brokers"), 1) as cluster:
        send(cluster, Message(b"before"), Message(LARGE), Message(text=TEXT), Message(b"behind"))
        yield cluster


def send(brokers: BrokerCluster, *messages: Message) -> None:
    with (
        blocking.connect(f"tcp://{brokers.servers}", user=USER, password=PASSWORD) as connection,
        connection.producer(QUEUE) as producer,
    ):
        for message in messages:
            producer.send(message)


def rows(
    brokers: BrokerCluster, schema: StructType = SCHEMA, **options: str
) -> list[dict[str, Any]]:
    given = {"servers": brokers.servers, "queue": QUEUE, "user": USER, "password": PASSWORD}
    parsed = read_options({**given, **options})
    gateway = connect(brokers.servers, parsed.login.credentials(5.0))
    position = gateway.position(QUEUE)
    gateway.close()
    whole = Range(
        position.node_id, position.incarnation, brokers.servers, position.first - 1, position.last
    )
    reader = RangeReader(parsed, schema, connect, RangePartition(whole))
    return [row for batch in reader.batches() for row in batch.to_pylist()]


def test_bodies_of_any_size_are_rows_in_their_order(brokers: BrokerCluster) -> None:
    found = rows(brokers)
    assert [row["body"] for row in found] == [b"before", LARGE, TEXT.encode(), b"behind"]
    assert [row["text"] for row in found] == [None, None, TEXT, None]
    assert [row["error"] for row in found] == [None] * 4


def test_compressed_bodies_of_any_size_are_rows_as_they_were_before(tmp_path: Path) -> None:
    large = random.Random(1).randbytes(5 << 20) + bytes(1 << 20)
    marked = {"_AMQ_LARGE_COMPRESSED": True}
    with BrokerCluster(tmp_path, 1) as brokers:
        send(
            brokers,
            *(Message(zlib.compress(body), properties=marked) for body in (b"small", bytes(300_000), large)),
        )
        assert [row["body"] for row in rows(brokers)] == [b"small", bytes(300_000), large]
        found = rows(brokers, maxBodyBytes="5500000", undecodable="error")
        assert [row["body"] is None for row in found] == [False, False, True]
        assert "inflates to more than 5500000" in found[2]["error"]


def test_a_body_above_the_limit_is_a_row_with_an_error(brokers: BrokerCluster) -> None:
    found = rows(brokers, maxBodyBytes="9500000", undecodable="error")
    assert [row["body"] for row in found] == [b"before", LARGE, None, b"behind"]
    assert "more than 9500000" in found[2]["error"] and found[2]["text"] is None
    cases: list[tuple[StructType, dict[str, str]]] = [
        (SCHEMA, {}),  # the message would be acknowledged, and its body gone
        (SCHEMA, {"undecodable": "fail"}),
        (StructType().add("body", BinaryType()), {"undecodable": "error"}),
    ]
    for schema, options in cases:
        with pytest.raises(Undecodable, match="message 3 of queue"):
            rows(brokers, schema, maxBodyBytes="9500000", **options)


def test_the_limit_holds_for_bodies_that_travel_with_others(brokers: BrokerCluster) -> None:
    found = rows(brokers, maxBodyBytes="5", undecodable="error")
    assert [row["body"] for row in found] == [None] * 4
    assert found[0]["error"] == "the body has 6 bytes, more than 5"
    with pytest.raises(Undecodable, match="message 1 of queue .*the body has 6 bytes, more than 5 .maxBodyBytes"):
        rows(brokers, maxBodyBytes="5")


def test_other_columns_need_no_body(brokers: BrokerCluster) -> None:
    found = rows(brokers, StructType().add("sequence", LongType()), maxBodyBytes="1")
    assert [row["sequence"] for row in found] == [1, 2, 3, 4]


def test_without_a_column_for_them_no_bodies_leave_the_node(brokers: BrokerCluster) -> None:
    gateway = connect(brokers.servers, Credentials(USER, PASSWORD, 5.0, 10.0))
    position = gateway.position(QUEUE)
    given = (QUEUE, position.incarnation, position.first - 1, position.last, 2 << 20, None)
    sizes = [
        sum(
            len(entry.encoded)
            for chunk in gateway.read(*given, limit)
            for entry in split_entries(chunk.count, chunk.content)
        )
        for limit in (1 << 30, 0)
    ]
    gateway.close()
    assert sizes[0] > len(LARGE) + len(TEXT) and sizes[1] < 2_000


def test_a_damaged_file_does_not_stop_the_reader(tmp_path: Path) -> None:
    with BrokerCluster(tmp_path, 1) as brokers:
        send(brokers, Message(b"before"), Message(LARGE), Message(bytes(1 << 20)), Message(b"behind"))
        files = [
            each
            for each in tmp_path.rglob("*")
            if each.is_file() and each.stat().st_size in {len(LARGE), 1 << 20} and "large" in str(each)
        ]
        assert len(files) == 2, files
        for file in files:
            with file.open("r+b") as content:
                content.seek(500_000)
                content.write(b"damage")
        found = rows(brokers)
    assert [row["body"] for row in (found[0], found[3])] == [b"before", b"behind"]
    assert [len(row["body"]) for row in found[1:3]] == [len(LARGE), 1 << 20]
    assert all("damaged" in row["error"] for row in found[1:3])
