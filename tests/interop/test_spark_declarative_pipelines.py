"""Spark's own declarative pipelines, as docs/guide/spark.md says: a queue into a table, a sink back to an address."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from atalanta.client import blocking
from tests.spark.nodes import PASSWORD, QUEUE, ROOT, USER, BrokerCluster
from tests.spark.pipeline.process import PipelineProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1_200)]
PAGE = (ROOT / "docs" / "guide" / "spark.md").read_text(encoding="utf-8")
RECIPE = PAGE.partition("## Spark Declarative Pipelines\n")[2].partition("\n## ")[0]


def write_project(folder: Path, servers: str) -> None:
    """Writes the files of the recipe with the names of this test."""
    spec, flows = re.findall(r"^```(?:yaml|python)\n(.*?)^```", RECIPE, re.MULTILINE | re.DOTALL)
    (folder / "spark.password").write_text(PASSWORD)
    (folder / "transformations").mkdir()
    (folder / "spark-pipeline.yml").write_text(
        spec.replace("file:///data/orders/storage", f"file://{folder}/storage")
    )
    for old, new in (
        ("ewr:61616", servers),
        ("/run/secrets/spark", f"{folder}/spark.password"),
        ('queue="orders"', f'queue="{QUEUE}"'),
        ('"address": "answers"', '"address": "out"'),
    ):
        assert old in flows
        flows = flows.replace(old, new)
    (folder / "transformations" / "orders.py").write_text(flows)


def run(folder: Path, *arguments: str) -> PipelineProcess:
    command = str(Path(sys.executable).parent / "spark-pipelines")
    catalog = ("--conf", "spark.sql.catalogImplementation=hive")
    return PipelineProcess(folder, {}, command, *catalog, "run", *arguments)


def table(folder: Path) -> Counter[str]:
    files = [str(path) for path in (folder / "spark-warehouse" / "orders").glob("*.parquet")]
    return Counter(pd.concat([pd.read_parquet(file) for file in files])["text"])


def answers(brokers: BrokerCluster) -> Counter[str]:
    """Takes the messages of `out` from all nodes."""
    found: Counter[str] = Counter()
    for node in brokers.nodes:
        with blocking.connect(f"tcp://{node.server}", user=USER, password=PASSWORD) as connection:
            consumer = connection.consumer("out")
            while (message := consumer.receive(1)) is not None:
                message.acknowledge()
                found[str(message.text)] += 1
    return found


def test_a_queue_becomes_a_table_and_answers(tmp_path: Path) -> None:
    sent: list[str] = []
    with BrokerCluster(tmp_path / "brokers", 2) as brokers:
        write_project(tmp_path, brokers.servers)
        for number in range(2):
            for node in brokers.nodes:
                texts = [f"{node.server}-{number}-{at}" for at in range(100)]
                node.publish(texts)
                sent += texts
            run(tmp_path).ends()
            assert brokers.waiting() == 0
            assert table(tmp_path) == Counter(sent)
        assert answers(brokers) == Counter(f"received {text}" for text in sent)
        refused = run(tmp_path, "--full-refresh", "orders")
        assert refused.process.wait(300) != 0 and "TABLE_NOT_RESETTABLE" in refused.text()
        run(tmp_path, "--full-refresh-all").ends()
        assert table(tmp_path) == Counter(sent)
        assert answers(brokers) == Counter(f"received {text}" for text in sent)
