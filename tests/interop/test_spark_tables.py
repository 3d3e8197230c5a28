"""`atalanta pipeline` into Delta and Iceberg tables, as docs/guide/pipelines.md says: each message once, compaction.

Driver, JVM and planner are killed while batches run; the pipeline goes on from its checkpoint. The messages come from a
cluster of our nodes, or from a real Artemis pair that fails over meanwhile.
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
from collections.abc import Callable
from pathlib import Path

import pytest

from atalanta.client import Message
from tests.interop.harness.artemis_pair import artemis_pair
from tests.interop.harness.jms import PASSWORD, USER
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.shared_store import opened
from tests.interop.harness.spark import jars, pyspark_folders
from tests.source_tree import ROOT
from tests.spark.nodes import PASSWORD as CLUSTER_PASSWORD
from tests.spark.nodes import BrokerCluster
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
{source}
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


CLUSTER = 'queue = "flights::archive"\nuser = "spark"'
PAIR = f'queue = "orders"\nuser = "{USER}"\nwalLocation = "out/received"'


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


class Archive:
    """A pipeline into a table in `folder`, whose processes may be killed."""

    def __init__(self, folder: Path, kind: str, source: str, servers: str, password: str) -> None:
        self.folder = folder
        self.kind = kind
        self.settings = settings(kind)
        text = PIPELINE.format(settings=self.settings, source=source, format=kind, target=TARGETS[kind])
        (folder / "orders.toml").write_text(text)
        (folder / "spark.password").write_text(password)
        self.variables = {"SERVERS": servers, "PYTHONPATH": python_path(kind)}

    def start(self) -> PipelineProcess:
        return PipelineProcess(self.folder, self.variables, *ATALANTA, "pipeline", "run", "--json", "orders.toml")

    def run_until(self, done: Callable[[], bool]) -> None:
        """Starts it, waits, and stops it in good order."""
        process = self.start()
        try:
            # Signals are handled when it has started.
            process.until(lambda: "started:" in process.text() and done(), 600)
            process.process.send_signal(signal.SIGTERM)
            process.ends()
        finally:
            process.kill()

    def finish(self) -> None:
        """Writes what was received into the table, and ends by itself."""
        path = self.folder / "orders.toml"
        path.write_text(path.read_text().replace('"100 milliseconds"', '"available_now"'))
        self.start().ends()

    def check_and_compact(self, sent: list[str]) -> None:
        """Each message is in the table once, before and after the files of its days were written as few."""
        before = rows(self.folder, self.kind, self.settings)
        assert Counter(row[0] for row in before) == Counter(sent)
        assert len({(row[1], row[2]) for row in before}) == len(sent)
        compact = (*ATALANTA, "pipeline", "compact", "orders.toml")
        done = PipelineProcess(self.folder, self.variables, *compact).ends()
        files = re.search(r"^archive: (\d+) files rewritten as (\d+)$", done, re.MULTILINE)
        assert files is not None and int(files[1]) > 4 > int(files[2]), done
        assert sorted(rows(self.folder, self.kind, self.settings)) == sorted(before)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_every_message_is_in_the_table_once(kind: str, tmp_path: Path) -> None:
    chance = random.Random(17)
    sent = [str(number) for number in range(MESSAGES)]
    with BrokerCluster(tmp_path / "brokers", 2) as brokers:
        archive = Archive(tmp_path, kind, CLUSTER, brokers.servers, CLUSTER_PASSWORD)
        for at, node in enumerate(brokers.nodes):
            node.publish(sent[at::2])
        for _ in range(KILLS):
            kill_after_a_batch(archive.start(), chance.random())
        archive.run_until(lambda: brokers.waiting() == 0)
        archive.check_and_compact(sent)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_real_pair_fails_over_while_its_messages_become_a_table(
    brokers: Lineup, kind: str, tmp_path: Path
) -> None:
    """The driver dies, too: before the failover with a batch that it has not committed, and after it."""
    chance = random.Random(18)
    sent = [str(number) for number in range(MESSAGES)]
    with artemis_pair(brokers, "orders") as pair:
        primary, backup = pair.members
        archive = Archive(tmp_path, kind, PAIR, "|".join(pair.servers), PASSWORD)
        send(primary, sent[: MESSAGES // 2])
        kill_after_a_batch(archive.start(), chance.random())
        process = archive.start()
        try:
            process.until(lambda: '"batch":' in process.text(), 400)
            pair.fail_over()
            send(backup, sent[MESSAGES // 2 :])
        finally:
            kill_after_a_batch(process, 2 * chance.random())
        archive.run_until(lambda: waiting(backup) == 0)
        archive.finish()  # a message leaves the queue when it was received, before it is in the table
        archive.check_and_compact(sent)


def send(node: BrokerProcess, texts: list[str]) -> None:
    with opened(node) as connection, connection.producer("orders", routing="anycast") as producer:
        for text in texts:
            producer.send_soon(Message(text=text))
        producer.drain()


def waiting(node: BrokerProcess) -> int:
    with opened(node) as connection:
        return connection.query_queue("orders").message_count
