"""Spark and real nodes: everything once, whoever is killed in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from atalanta.client import ClientError, blocking
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.gateway.gateway import Credentials
from tests.source_tree import ROOT
from tests.spark.driver import BATCH_MESSAGES, run
from tests.spark.nodes import PASSWORD, QUEUE, USER, BrokerCluster

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    """One cluster for the module: each test leaves the queues empty."""
    with BrokerCluster(tmp_path_factory.mktemp("brokers"), 2) as cluster:
        yield cluster


def options(brokers: BrokerCluster, **more: Any) -> dict[str, str]:
    given = {"servers": brokers.servers, "user": USER, "password": PASSWORD, "nodeTimeout": "60s"}
    return given | {name: str(value) for name, value in more.items()}


def source(spark: SparkSession, brokers: BrokerCluster, **more: Any) -> DataFrame:
    given = options(brokers, **({"queue": QUEUE} | more))
    return spark.readStream.format("atalanta").options(**given).load()


def publish(brokers: BrokerCluster, count: int, what: str) -> list[str]:
    """`count` messages at each node; their texts."""
    published: list[str] = []
    for index, node in enumerate(brokers.nodes):
        texts = [f"{what}-{index}-{number}" for number in range(count)]
        node.publish(texts)
        published += texts
    return published


def texts(spark: SparkSession, folder: Path) -> list[str]:
    return sorted(row.text for row in spark.read.parquet(str(folder / "out")).collect())


def test_a_node_is_killed_while_spark_reads(
    real: SparkSession, brokers: BrokerCluster, tmp_path: Path
) -> None:
    expected = publish(brokers, 2000, "killed")
    frame = source(real, brokers, maxOffsetsPerTrigger=1000).select("text")
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="0 seconds").start(str(tmp_path / "out"))
    deadline = time.monotonic() + 60
    while not any(progress["numInputRows"] for progress in query.recentProgress):
        assert query.isActive and time.monotonic() < deadline
        time.sleep(0.02)
    brokers.nodes[1].kill()
    time.sleep(1.0)
    brokers.nodes[1].start()
    expected += publish(brokers, 100, "after")
    brokers.wait_until_empty()
    assert query.isActive
    query.stop()
    assert texts(real, tmp_path) == sorted(expected)


class Driver:
    """tests/spark/driver.py in a process of its own."""

    def __init__(self, brokers: BrokerCluster, folder: Path) -> None:
        self.folder = folder
        self.arguments = brokers.servers, str(folder)

    def batches(self) -> int:
        """Batches the checkpoint has begun."""
        return sum(path.name.isdigit() for path in self.folder.glob("checkpoint/offsets/*"))

    def kill_in_batch(self, number: int, *arguments: str) -> None:
        """Starts the driver, and kills it as soon as this batch has begun."""
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-m", "tests.spark.driver", *self.arguments, *arguments]
        with (self.folder / "log").open("a") as log:
            process = subprocess.Popen(
                command, start_new_session=True, cwd=self.folder, env=environment, stdout=log, stderr=log
            )
        while self.batches() < number:
            assert process.poll() is None, (self.folder / "log").read_text()[-3000:]
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def finish(self, spark: SparkSession, *arguments: str) -> None:
        """Starts it again, here: its state is in the checkpoint, and another Java would take seconds to start."""
        run(spark, *self.arguments, *arguments)


def test_the_driver_is_killed_and_started_again(
    real: SparkSession, brokers: BrokerCluster, tmp_path: Path
) -> None:
    expected = publish(brokers, 1500, "driver")
    driver = Driver(brokers, tmp_path)
    driver.kill_in_batch(2)
    assert driver.batches() < len(expected) // BATCH_MESSAGES
    driver.finish(real)
    assert brokers.waiting() == 0
    assert texts(real, tmp_path) == sorted(expected)


@pytest.mark.soak
def test_a_batch_is_written_again_in_other_partitions(
    real: SparkSession, brokers: BrokerCluster, tmp_path: Path
) -> None:
    expected = publish(brokers, 1500, "cut")
    driver = Driver(brokers, tmp_path)
    for batch, partitions in [(2, "3"), (3, "5"), (4, "1")]:
        driver.kill_in_batch(batch, partitions)
    driver.finish(real, "4")
    reader = real.read.format("atalanta").options(**options(brokers, queue="out")).load()
    assert sorted(row.text for row in reader.select("text").collect()) == sorted(expected)
    for node in brokers.nodes:
        gateway = connect(node.server, Credentials(USER, PASSWORD, 5.0, 10.0))
        assert gateway.prepared_branches() == []
        gateway.close()
    drain = source(real, brokers, queue="out").writeStream.format("noop")
    drain = drain.option("checkpointLocation", str(tmp_path / "drain"))
    drain.trigger(availableNow=True).start().awaitTermination(100)


def test_a_consumer_may_take_the_queue_when_the_query_was_stopped(
    real: SparkSession, brokers: BrokerCluster, tmp_path: Path
) -> None:
    publish(brokers, 10, "stopped")
    writer = source(real, brokers).writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(tmp_path))
    query = writer.trigger(processingTime="0 seconds").start()
    brokers.wait_until_empty(timeout_s=200.0)
    query.stop()
    deadline = time.monotonic() + 30
    for node in brokers.nodes:
        with blocking.connect(f"tcp://{node.server}", user=USER, password=PASSWORD) as connection:
            while True:
                try:
                    connection.consumer(QUEUE).close()
                    break
                except ClientError:
                    assert time.monotonic() < deadline, "the queue is still leased"
                    time.sleep(0.1)


def test_through_spark_and_back(real: SparkSession, brokers: BrokerCluster, tmp_path: Path) -> None:
    expected = publish(brokers, 200, "back")
    given = options(brokers, address="out", routing="anycast", propertyColumns="initial")
    del given["nodeTimeout"]
    frame = source(real, brokers, maxOffsetsPerTrigger=150)
    rows = frame.selectExpr("text as value", "properties['initial'] as initial")
    writer = rows.writeStream.format("atalanta").options(**given)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination(100)
    assert brokers.waiting() == 0
    reader = real.read.format("atalanta").schema("text string, initial string, routed string")
    found = reader.options(**options(brokers, queue="out")).load().collect()
    assert sorted(row.text for row in found) == sorted(expected)
    assert {row.initial for row in found} == {"b"}
    drain = source(real, brokers, queue="out").writeStream.format("noop")
    drain = drain.option("checkpointLocation", str(tmp_path / "drain"))
    drain.trigger(availableNow=True).start().awaitTermination(100)
    assert brokers.waiting("out") == 0


def test_the_sink_waits_for_its_node(real: SparkSession, brokers: BrokerCluster) -> None:
    frame = real.createDataFrame([("one",), ("two",)], "value string").coalesce(1)
    for node in brokers.nodes:
        node.kill()
    given = options(brokers, address="out")
    back = threading.Timer(2.0, brokers.start)
    back.start()
    frame.write.format("atalanta").options(**given).mode("append").save()
    back.join()
    assert brokers.waiting("out") == 2
