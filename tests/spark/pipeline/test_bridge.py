"""The bridge of docs/guide/pipelines.md from one cluster to another, under spark-submit, with a killed driver."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from atalanta.client import Message, ReceivedMessage, blocking
from tests.source_tree import ROOT
from tests.spark.nodes import PASSWORD, USER, BrokerCluster
from tests.spark.pipeline.process import ATALANTA, PipelineProcess

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.process, pytest.mark.timeout(900)]
PAGE = (ROOT / "docs" / "guide" / "pipelines.md").read_text(encoding="utf-8")
RECIPE = PAGE.partition("## A bridge\n")[2].partition("\n## ")[0]
MESSAGES = 600


def create_queues(here: BrokerCluster, there: BrokerCluster) -> None:
    """Runs the commands of the guide, at every node of their cluster."""
    lines = re.findall(r"^    atalanta (queue create [^\n#]*)", RECIPE, re.MULTILINE)
    for line, brokers in zip(lines, (here, there), strict=True):
        for node in brokers.nodes:
            login = ["--url", f"tcp://{node.server}", "--user", USER, "--password", PASSWORD]
            subprocess.run([*ATALANTA, *line.split(), *login], check=True)


def write_files(folder: Path) -> None:
    """Writes the files of the guide: in small batches, so that a kill is between two, and with an end."""
    (text,) = re.findall(r"^```toml\n(.*?)^```", RECIPE, re.MULTILINE | re.DOTALL)
    (main,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (folder / "spark.password").write_text(PASSWORD)
    (folder / "pipeline.py").write_text(main)
    for old, new in (
        ("[source.options]\n", "[source.options]\nmaxOffsetsPerTrigger = 100\n"),
        ('trigger = "1 second"', 'trigger = "available_now"'),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "bridge.toml").write_text(text)


def send(brokers: BrokerCluster, at: int, count: int) -> None:
    server = brokers.nodes[at % len(brokers.nodes)].server
    with blocking.connect(f"tcp://{server}", user=USER, password=PASSWORD) as connection:
        producer = connection.producer("orders", routing="multicast")
        for number in range(at, at + count):
            producer.send_soon(
                Message(text=str(number), properties={"number": number, "half": number / 2}, priority=number % 10)
            )
        producer.drain()


def arrived(brokers: BrokerCluster) -> list[ReceivedMessage]:
    """Takes the messages of `order-copies` from all nodes."""
    found = []
    for node in brokers.nodes:
        with blocking.connect(f"tcp://{node.server}", user=USER, password=PASSWORD) as connection:
            consumer = connection.consumer("copies::order-copies")
            while (message := consumer.receive(1)) is not None:
                message.acknowledge()
                found.append(message)
    return found


def started(folder: Path, here: BrokerCluster, there: BrokerCluster) -> PipelineProcess:
    submit = str(Path(sys.executable).parent / "spark-submit")
    command = (submit, "--master", "local[2]", "pipeline.py", "pipeline", "run", "--json", "bridge.toml")
    variables = {"HERE": here.servers, "THERE": there.servers}
    return PipelineProcess(folder, variables, *command)


def test_each_message_arrives_once_with_its_types_and_priority(tmp_path: Path) -> None:
    with BrokerCluster(tmp_path / "here", 2) as here, BrokerCluster(tmp_path / "there", 1) as there:
        create_queues(here, there)
        write_files(tmp_path)
        send(here, 0, MESSAGES // 2)
        send(here, MESSAGES // 2 + 1, MESSAGES // 2 - 1)
        process = started(tmp_path, here, there)
        try:
            process.until(lambda: '"batch":' in process.text(), 300)
            time.sleep(0.5)
        finally:
            process.kill()
        send(here, MESSAGES // 2, 1)
        started(tmp_path, here, there).ends()
        assert here.waiting("orders::order-bridge") == 0
        copies = arrived(there)
    assert Counter(int(str(message.text)) for message in copies) == Counter(range(MESSAGES))
    for message in copies:
        number = int(str(message.text))
        assert message.priority == number % 10
        assert (message.properties["number"], message.properties["half"]) == (number, number / 2)
