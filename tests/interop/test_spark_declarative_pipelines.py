"""Spark's own declarative pipelines, as docs/guide/spark.md says: a queue into tables, sinks to addresses."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from atalanta.client import Message, ReceivedMessage, blocking
from atalanta.spark.environment.interpreter import quick_python
from tests.interop.harness.artemis_pair import artemis_pair
from tests.interop.harness.jms import PASSWORD as PAIR_PASSWORD
from tests.interop.harness.jms import USER as PAIR_USER
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.shared_store import opened
from tests.source_tree import ROOT
from tests.spark.nodes import PASSWORD, QUEUE, USER, BrokerCluster
from tests.spark.pipeline.process import PipelineProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1_800)]
PAGE = (ROOT / "docs" / "guide" / "spark.md").read_text(encoding="utf-8")
HOUR_MS = 3_600_000
RECIPE = PAGE.partition("## Spark Declarative Pipelines\n")[2].partition("\n## ")[0]


# Beside QUEUE: a queue for each flow that reads one.
QUEUES = ("to-london", "returned", "hourly")
BIN = Path(sys.executable).parent
CATALOG = ("--conf", "spark.sql.catalogImplementation=hive")
ONE_BY_ONE = ("--conf", "spark.sql.pipelines.execution.maxConcurrentFlows=1")


def write_project(folder: Path, servers: str) -> None:
    """Writes the files of the recipe with the names of this test."""
    spec, flows, sql = re.findall(r"^```(?:yaml|python|sql)\n(.*?)^```", RECIPE, re.MULTILINE | re.DOTALL)
    (folder / "spark.password").write_text(PASSWORD)
    (folder / "transformations").mkdir()
    storage = spec.replace("file:///data/orders/storage", f"file://{folder}/storage")
    (folder / "spark-pipeline.yml").write_text(storage)
    common = (("ewr:61616", servers), ("/run/secrets/spark", f"{folder}/spark.password"))
    changes = (
        ('queue="orders"', f'queue="{QUEUE}"'),
        ('"address": "answers"', '"address": "out"'),
        ("london:61616", servers),
        ("orders::to-london", "flights::to-london"),
        ("orders::hourly", "flights::hourly"),
    )
    (folder / "transformations" / "orders.py").write_text(changed(flows, *common, *changes))
    returned = changed(sql, *common, ("orders::returned", "flights::returned"))
    (folder / "transformations" / "returned.sql").write_text(returned)


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def create_table(folder: Path) -> None:
    """Runs the recipe's statement with spark-sql."""
    (statement,) = re.findall(r'spark-sql .* -e "(.*)"', RECIPE)
    PipelineProcess(folder, {}, str(BIN / "spark-sql"), *CATALOG, "-e", statement).ends()


def run(folder: Path, *arguments: str) -> PipelineProcess:
    """Starts a run, for a busy machine: Spark waits 10 s for the Python of a flow."""
    variables = {"PYSPARK_PYTHON": quick_python(os.environ, folder / "quick")}
    command = (str(BIN / "spark-pipelines"), *CATALOG, *ONE_BY_ONE, "run", *arguments)
    return PipelineProcess(folder, variables, *command)


def table(folder: Path, name: str) -> Counter[str]:
    files = [str(path) for path in (folder / "spark-warehouse" / name).glob("*.parquet")]
    return Counter(pd.concat([pd.read_parquet(file) for file in files])["text"])


def create_queues(brokers: BrokerCluster) -> None:
    for node in brokers.nodes:
        with blocking.connect(f"tcp://{node.server}", user=USER, password=PASSWORD) as connection:
            for name in QUEUES:
                connection.create_queue(name, "flights", routing="multicast")
            for name in ("hours", "copies"):
                connection.create_address(name, "anycast")
                connection.create_queue(name, name, routing="anycast")


def publish_at(brokers: BrokerCluster, hours_ago: int) -> str:
    """Sends a message with an earlier time stamp, and returns its text."""
    text = f"{hours_ago} hours ago"
    moment_ms = int(time.time() * 1000) - hours_ago * HOUR_MS
    with blocking.connect(f"tcp://{brokers.nodes[0].server}", user=USER, password=PASSWORD) as connection:
        producer = connection.producer("flights", routing="multicast")
        producer.send(Message(text=text, timestamp_ms=moment_ms, properties={"hours": hours_ago}))
    return text


def taken(brokers: BrokerCluster, queue: str) -> list[ReceivedMessage]:
    """Takes the messages of a queue from all nodes."""
    found: list[ReceivedMessage] = []
    for node in brokers.nodes:
        with blocking.connect(f"tcp://{node.server}", user=USER, password=PASSWORD) as connection:
            consumer = connection.consumer(queue)
            while (message := consumer.receive(1)) is not None:
                message.acknowledge()
                found.append(message)
    return found


def texts(messages: list[ReceivedMessage]) -> Counter[str]:
    return Counter(str(message.text) for message in messages)


def test_a_queue_becomes_a_table_answers_counts_and_copies(tmp_path: Path) -> None:
    sent: list[str] = []
    with BrokerCluster(tmp_path / "brokers", 2) as brokers:
        create_queues(brokers)
        write_project(tmp_path, brokers.servers)
        create_table(tmp_path)
        for number in range(2):
            for node in brokers.nodes:
                added = [f"{node.server}-{number}-{at}" for at in range(100)]
                node.publish(added)
                sent += added
            if number == 0:
                sent.append(publish_at(brokers, 3))
            run(tmp_path).ends()
            queues = [QUEUE, *(f"flights::{name}" for name in QUEUES)]
            assert {queue: brokers.waiting(queue) for queue in queues} == dict.fromkeys(queues, 0)
            assert table(tmp_path, "orders") == table(tmp_path, "returned") == Counter(sent)
        assert texts(taken(brokers, "out")) == Counter(f"received {text}" for text in sent)
        copies = taken(brokers, "copies")
        assert texts(copies) == Counter(sent)
        assert [one.properties["hours"] for one in copies if one.text == "3 hours ago"] == [3]
        (counted,) = taken(brokers, "hours")
        assert json.loads(str(counted.text))["orders"] == 1
        refused = run(tmp_path, "--full-refresh", "orders")
        assert refused.process.wait(300) != 0 and "TABLE_NOT_RESETTABLE" in refused.text()
        run(tmp_path, "--full-refresh-all").ends()
        assert table(tmp_path, "orders") == table(tmp_path, "returned") == Counter(sent)
        assert texts(taken(brokers, "out")) == Counter(f"received {text}" for text in sent)


PAIR_SPEC = """
name: pair
storage: file://{folder}/storage
configuration:
  spark.sql.shuffle.partitions: "2"
libraries:
  - glob:
      include: transformations/**
"""
PAIR_FLOWS = """
from pyspark import pipelines as dp

LOGIN = {{"servers": "{servers}", "user": "{user}", "password": "{password}"}}

@dp.table(table_properties={{"pipelines.reset.allowed": "false"}})
def orders():
    rows = spark.readStream.format("atalanta").options(**LOGIN, queue="orders", walLocation="{folder}/received")
    return rows.schema("text string").load()
"""


def until_running(process: PipelineProcess) -> None:
    """Waits until a flow of the run reads."""
    process.until(lambda: "is RUNNING" in process.text())


def test_a_real_pair_fails_over_between_runs_and_under_one(brokers: Lineup, tmp_path: Path) -> None:
    sent: list[str] = []
    with artemis_pair(brokers, "orders") as pair:
        servers = "|".join(pair.servers)
        (tmp_path / "transformations").mkdir()
        (tmp_path / "spark-pipeline.yml").write_text(PAIR_SPEC.format(folder=tmp_path))
        flows = PAIR_FLOWS.format(servers=servers, user=PAIR_USER, password=PAIR_PASSWORD, folder=tmp_path)
        (tmp_path / "transformations" / "orders.py").write_text(flows)
        for number in range(3):
            serving = pair.members[0] if number < 2 else pair.members[1]
            added = [f"{number}-{at}" for at in range(200)]
            with opened(serving) as connection, connection.producer("orders", routing="anycast") as producer:
                for text in added:
                    producer.send(Message(text=text))
            sent += added
            process = run(tmp_path)
            if number == 1:
                until_running(process)
                pair.fail_over()
            process.ends()
        assert table(tmp_path, "orders") == Counter(sent)
