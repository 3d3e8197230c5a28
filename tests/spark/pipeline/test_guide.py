"""The example of docs/guide/pipelines.md, as it is written there."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from atalanta.client import Message, blocking
from atalanta.spark.pipeline.check import read_pipeline
from tests.source_tree import ROOT
from tests.spark.nodes import PASSWORD, USER, BrokerCluster
from tests.spark.pipeline.process import ATALANTA, PipelineProcess

GUIDE = (ROOT / "docs" / "guide" / "pipelines.md").read_text(encoding="utf-8")
HOUR_MS = 3_600_000


def block(kind: str) -> str:
    """Returns the first block of a kind."""
    found = re.search(rf"^```{kind}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def commands() -> list[list[str]]:
    """Returns the arguments of the commands that create queues."""
    example = GUIDE.partition("## A complete example\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^    atalanta (queue create [^\n#]*)", example, re.MULTILINE)
    return [line.split() for line in lines]


def write_files(folder: Path) -> Path:
    """Writes the files of the example; the page has a free port."""
    (folder / "customers.csv").write_text(block("csv"))
    (folder / "spark.password").write_text(PASSWORD)
    (folder / "pipeline.py").write_text(block("python"))
    path = folder / "orders.toml"
    path.write_text(block("toml").replace("127.0.0.1:4041", "127.0.0.1:0"))
    return path


def test_the_example_has_no_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    declaration = read_pipeline(path, {"SERVERS": "127.0.0.1:61616"}).declaration
    assert [query.name for query in declaration.query] == ["archive", "sums"]


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path / "brokers", 1) as cluster:
        url = f"tcp://{cluster.servers}"
        for command in commands():
            login = ["--url", url, "--user", USER, "--password", PASSWORD]
            subprocess.run([*ATALANTA, *command, *login], check=True)
        yield cluster


def order(brokers: BrokerCluster, customer: str, amount: float, hour: int) -> None:
    text = json.dumps({"customer": customer, "amount": amount})
    with blocking.connect(f"tcp://{brokers.servers}", user=USER, password=PASSWORD) as connection:
        producer = connection.producer("orders", routing="multicast")
        producer.send(Message(text=text, timestamp_ms=hour * HOUR_MS))


def archived(folder: Path) -> list[float]:
    files: list[str] = [str(path) for path in folder.glob("day=*/*.parquet")]
    if not files:
        return []
    amounts: list[float] = pd.concat([pd.read_parquet(file) for file in files])["amount"].to_list()
    return sorted(amounts)


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.process
@pytest.mark.timeout(900)
def test_the_example_runs_as_written(brokers: BrokerCluster, tmp_path: Path) -> None:
    write_files(tmp_path)
    for customer, amount, hour in [
        ("c1", 1.5, 480_000),
        ("c1", 2.0, 480_000),
        ("c2", 4.0, 480_002),
    ]:
        order(brokers, customer, amount, hour)
    servers = {"SERVERS": brokers.servers}
    process = PipelineProcess(tmp_path, servers, *ATALANTA, "pipeline", "orders.toml")
    try:
        process.until(lambda: brokers.waiting("sums") == 1)
        process.until(lambda: archived(tmp_path / "out" / "archive") == [1.5, 2.0, 4.0])
        found = re.search(r"started: archive, sums, (http://\S+)", process.text())
        assert found is not None
        with urllib.request.urlopen(f"{found[1]}metrics", timeout=10) as answer:
            metrics = answer.read().decode()
        lag = f'lag_messages{{node="{brokers.servers}",query="archive"}} 0.0'
        assert f"atalanta_pipeline_query_{lag}" in metrics
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(60) == 0, process.text()
    finally:
        process.kill()
    with blocking.connect(f"tcp://{brokers.servers}", user=USER, password=PASSWORD) as connection:
        answered = connection.consumer("sums").receive(timeout_s=10)
        assert answered is not None
        sums = json.loads(str(answered.text))
    assert (sums["city"], sums["amount"]) == ("Rome", 3.5)
    command = (*ATALANTA, "pipeline", "compact", "orders.toml")
    PipelineProcess(tmp_path, servers, *command).ends()
    assert archived(tmp_path / "out" / "archive-compact") == [1.5, 2.0, 4.0]


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.process
@pytest.mark.timeout(900)
def test_a_failed_query_of_spark_submit_is_told_once(
    brokers: BrokerCluster, tmp_path: Path
) -> None:
    write_files(tmp_path)
    order(brokers, "c1", 1.5, 480_000)
    (tmp_path / "spark.password").write_text("wrong")
    submit = str(Path(sys.executable).parent / "spark-submit")
    command = (submit, "--master", "local[2]", "pipeline.py", "pipeline", "orders.toml")
    process = PipelineProcess(tmp_path, {"SERVERS": brokers.servers}, *command)
    try:
        assert process.process.wait(400) == 1, process.text()
    finally:
        process.kill()
    told = [line for line in process.text().splitlines() if line.startswith("atalanta: query ")]
    names = [line.split()[2] for line in told]
    assert names and len(names) == len(set(names)), process.text()
    assert all("correct user, password or the user's roles" in line for line in told), told
