"""Spark and real nodes: acknowledged messages are read again, once, by a later query."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from atalanta.client import blocking
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.gateway.gateway import Credentials
from tests.spark.nodes import PASSWORD, QUEUE, USER, BrokerCluster

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.soak, pytest.mark.timeout(600)]
COUNT = 60


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path_factory.mktemp("brokers"), 2) as cluster:
        yield cluster


def options(brokers: BrokerCluster, **more: str) -> dict[str, str]:
    given = {"servers": brokers.servers, "user": USER, "password": PASSWORD, "nodeTimeout": "30s"}
    return given | {"queue": QUEUE} | more


def run(spark: SparkSession, brokers: BrokerCluster, folder: Path, **more: str) -> list[str]:
    """Runs until the queues are empty, and returns the texts that all runs with this folder have written."""
    frame = spark.readStream.format("atalanta").options(**options(brokers, **more)).load()
    writer = frame.select("text").writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination(100)
    return sorted(row.text for row in spark.read.parquet(str(folder / "out")).collect())


def publish(brokers: BrokerCluster, what: str) -> list[str]:
    published: list[str] = []
    for index, node in enumerate(brokers.nodes):
        texts = [f"{what}-{index}-{number}" for number in range(COUNT)]
        node.publish(texts)
        published += texts
    return published


def test_a_later_query_reads_the_past_once(
    real: SparkSession, brokers: BrokerCluster, tmp_path: Path
) -> None:
    first = publish(brokers, "first")
    kept = {"group": "archive", "retention": "1h,1gb"}
    assert run(real, brokers, tmp_path / "archive", **kept) == sorted(first)
    between_ms = time.time_ns() // 1_000_000 + 1
    time.sleep(0.01)
    second = publish(brokers, "second")
    assert run(real, brokers, tmp_path / "archive", **kept) == sorted(first + second)
    assert brokers.waiting() == 0
    for node in brokers.nodes:
        with blocking.connect(f"tcp://{node.server}", user=USER, password=PASSWORD) as connection:
            with connection.consumer(QUEUE) as consumer:
                assert consumer.receive(0.2) is None
    brokers.nodes[1].kill()
    brokers.nodes[1].start()

    # By time, in several batches; a part of it first.
    past = {"group": "replay", "startingTimestamp": str(between_ms), "maxOffsetsPerTrigger": "50"}
    assert run(real, brokers, tmp_path / "replay", **past) == sorted(second)
    third = publish(brokers, "third")
    assert run(real, brokers, tmp_path / "replay", **past) == sorted(second + third)

    # By offset, with the group of the first query and a new checkpoint.
    starts: dict[str, int] = {}
    for node in brokers.nodes:
        gateway = connect(node.server, Credentials(USER, PASSWORD, 5.0, 10.0))
        starts[gateway.position(QUEUE).node_id] = COUNT // 2
        gateway.close()
    wanted = sorted(
        text for text in first + second + third if not text.startswith("first") or int(text.split("-")[2]) >= COUNT // 2
    )
    named = {"group": "archive", "startingOffsets": json.dumps(starts)}
    batch = real.read.format("atalanta").options(**options(brokers, **named)).load()
    assert sorted(row.text for row in batch.select("text").collect()) == wanted
    assert run(real, brokers, tmp_path / "again", **named) == wanted
    assert run(real, brokers, tmp_path / "again", **named) == wanted

    # The first query has not seen what the later ones acknowledged.
    with pytest.raises(StreamingQueryException, match="it is a copy or a backup"):
        run(real, brokers, tmp_path / "archive", **kept)
    # Without a retention nothing of the past is left.
    assert run(real, brokers, tmp_path / "again", **named, retention="none") == wanted
    with pytest.raises(StreamingQueryException, match="cannot be read from 30"):
        run(real, brokers, tmp_path / "late", **named)
