"""`atalanta pipeline` into Delta and Iceberg tables, as docs/guide/pipelines.md says: each message once, compaction.

Driver, JVM and planner are killed while batches run; the pipeline goes on from its checkpoint.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.interop.harness.spark import jars, pyspark_folders
from tests.source_tree import ROOT
from tests.spark.nodes import PASSWORD, BrokerCluster
from tests.spark.pipeline.process import ATALANTA, PipelineProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1_800)]
GUIDE = (ROOT / "docs" / "guide" / "pipelines.md").read_text(encoding="utf-8")
MESSAGES = 1_000
KILLS = 2
VERSIONS = {"delta": "4.2.0", "iceberg": "4.1.4"}
TARGETS = {"delta": 'path = "out/table"', "iceberg": 'table = "lake.orders.archive"'}
PIPELINE = """
name = "orders"
checkpoints = "out/checkpoints"
master = "local[2]"

{settings}# Delta cuts its log into 50 parts otherwise.
"spark.databricks.delta.snapshotPartitions" = "2"

[[source]]
name = "messages"
schema = "text string, timestamp timestamp, node string, sequence bigint"
[source.options]
servers = "${{SERVERS}}"
queue = "flights::archive"
user = "spark"
passwordFile = "spark.password"
maxOffsetsPerTrigger = 200

[[step]]
name = "days"
sql = "SELECT *, CAST(timestamp AS date) AS day FROM messages"

[[query]]
name = "archive"
from = "days"
format = "{format}"
{target}
partition_by = ["day"]
trigger = "100 milliseconds"

[[compaction]]
query = "archive"
closed = "day <= current_date()"
"""
READ = """
import json, sys, tomllib
from atalanta.spark import session
spark = session(settings=json.loads(sys.argv[1]))
rows = spark.sql(f"SELECT text, node, sequence FROM {sys.argv[2]}").collect()
print("rows", json.dumps([[row.text, row.node, row.sequence] for row in rows]))
spark.stop()
"""


def settings(kind: str) -> str:
    """Returns the guide's settings of a format, with jars that Maven has fetched."""
    found = re.search(rf"^```toml\n# {kind}: .*?\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    assert found is not None
    package = re.search(r'"spark.jars.packages" = "(.*)"\n', found[1])
    assert package is not None
    local = ",".join(str(path) for path in jars(package[1]))
    return found[1].replace(package[0], f'"spark.jars" = "{local}"\n')


def python_path(kind: str) -> str:
    return os.pathsep.join([*pyspark_folders(VERSIONS[kind]), str(ROOT / "src")])


def rows(folder: Path, kind: str, given: str) -> list[list[object]]:
    """Returns text, node and sequence of all rows of the table, as a new session reads them."""
    values = dict(re.findall(r'^"(.*)" = "(.*)"$', given, re.MULTILINE))
    name = {"delta": f"delta.`{folder}/out/table`", "iceberg": "lake.orders.archive"}[kind]
    command = (sys.executable, "-c", READ, json.dumps(values), name)
    said = PipelineProcess(folder, {"PYTHONPATH": python_path(kind)}, *command).ends()
    (line,) = [line for line in said.splitlines() if line.startswith("rows ")]
    found: list[list[object]] = json.loads(line.removeprefix("rows "))
    return found


def kill_after_a_batch(process: PipelineProcess, delay_s: float) -> None:
    try:
        process.until(lambda: '"batch":' in process.text(), 400)
        time.sleep(delay_s)
    finally:
        process.kill()


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_every_message_is_in_the_table_once(kind: str, tmp_path: Path) -> None:
    given = settings(kind)
    text = PIPELINE.format(settings=given, format=kind, target=TARGETS[kind])
    (tmp_path / "orders.toml").write_text(text)
    (tmp_path / "spark.password").write_text(PASSWORD)
    chance = random.Random(17)
    sent = [str(number) for number in range(MESSAGES)]
    with BrokerCluster(tmp_path / "brokers", 2) as brokers:
        for at, node in enumerate(brokers.nodes):
            node.publish(sent[at::2])
        run = (*ATALANTA, "pipeline", "run", "--json", "orders.toml")
        variables = {"SERVERS": brokers.servers, "PYTHONPATH": python_path(kind)}
        for _ in range(KILLS):
            kill_after_a_batch(PipelineProcess(tmp_path, variables, *run), chance.random())
        process = PipelineProcess(tmp_path, variables, *run)
        try:
            # Signals are handled when it has started.
            process.until(lambda: "started:" in process.text() and brokers.waiting() == 0, 600)
            process.process.send_signal(signal.SIGTERM)
            process.ends()
        finally:
            process.kill()
    before = rows(tmp_path, kind, given)
    assert Counter(row[0] for row in before) == Counter(sent)
    assert len({(row[1], row[2]) for row in before}) == MESSAGES
    compact = (*ATALANTA, "pipeline", "compact", "orders.toml")
    done = PipelineProcess(tmp_path, variables, *compact).ends()
    files = re.search(r"^archive: (\d+) files rewritten as (\d+)$", done, re.MULTILINE)
    assert files is not None and int(files[1]) > 4 > int(files[2]), done
    assert sorted(rows(tmp_path, kind, given)) == sorted(before)
