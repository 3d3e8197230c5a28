"""The example of docs/guide/pipelines.md: each command and file as it is written there, in the order of the page."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.client import Message, blocking
from atalanta.spark.pipeline.check import read_pipeline
from tests.ports import free_port
from tests.source_tree import ROOT
from tests.spark.nodes import BrokerCluster
from tests.spark.pipeline.process import ATALANTA, PipelineProcess, user_environment

GUIDE = (ROOT / "docs" / "guide" / "pipelines.md").read_text(encoding="utf-8")
EXAMPLE = GUIDE.partition("## A complete example\n")[2].partition("\n## ")[0]
DAY_MS = 86_400_000
# What Spark's JVM says at each start, whatever the program.
STARTS = re.compile(
    r"WARNING: Using incubator|Using Spark's default log4j|Setting default log|To adjust logging|.*NativeCodeLoader"
    r"|Picked up JAVA_TOOL_OPTIONS"
)


def files() -> dict[str, str]:
    """Returns the files of the example by name."""
    return dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```", EXAMPLE, re.MULTILINE | re.DOTALL))


def lines() -> list[str]:
    """Returns commands and their output, without comments."""
    text = re.sub(r"```.*?```", "", EXAMPLE, flags=re.DOTALL)
    return [re.sub(r"  +#.*", "", line) for line in re.findall(r"^    (\S.*)", text, re.MULTILINE)]


def write_files(folder: Path) -> Path:
    """Writes the files of the example; the page has a free port."""
    (folder / "customers.csv").write_text(files()["customers.csv"])
    path = folder / "orders.toml"
    path.write_text(files()["orders.toml"].replace("127.0.0.1:4041", "127.0.0.1:0"))
    return path


class Typist:
    """A user who types the lines of the page in one folder: the port of the node is a free one, nothing else changes.

    `orders` is an anycast queue already, as in the guide of Spark. Programs that go on are in `running`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        programs = folder / "bin"
        programs.mkdir()
        atalanta = programs / "atalanta"
        atalanta.write_text(f'#!/bin/sh\nexec {shlex.join(ATALANTA)} "$@"\n')
        atalanta.chmod(0o755)
        self.environment = user_environment() | {"ATALANTA_URL": f"tcp://127.0.0.1:{self.port}"}
        self.environment["PATH"] = f"{programs}{os.pathsep}{self.environment['PATH']}"
        self.running: list[subprocess.Popen[str]] = []
        self.left = lines()

    def typed(self, until: str = "") -> str:
        """Types all lines up to the one that begins so, and returns their outputs."""
        said = ""
        while self.left and not (until and self.left[0].startswith(until)):
            line = self.left.pop(0)
            if line[0] not in "[{":  # what the page shows as output
                said += self.one(line)
        return said

    def one(self, line: str) -> str:
        """Types a line; stderr goes on in the file `errors`."""
        if line.startswith("export "):
            for assignment in line.removeprefix("export ").split():
                name, _, value = assignment.partition("=")
                self.environment[name] = value.replace("61616", str(self.port))
            return ""
        line = line.replace("create broker", f"create broker --queues orders --port {self.port}")
        with (self.folder / "errors").open("a") as errors:
            command = ["bash", "-c", line]
            done = subprocess.run(
                command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert done.returncode == 0, (line, done.stdout, self.errors())
        return done.stdout

    def start(self, until: str) -> None:
        """Types the next line, which goes on, and returns when its output has the text."""
        log = self.folder / f"log{len(self.running)}"
        with log.open("w") as output:
            self.running.append(
                subprocess.Popen(
                    shlex.split(self.left.pop(0)), cwd=self.folder, env=self.environment, stdout=output, stderr=output,
                    text=True, start_new_session=True,
                )
            )  # fmt: skip
        deadline = time.monotonic() + 300
        while until not in log.read_text():
            assert self.running[-1].poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)

    def errors(self) -> str:
        return (self.folder / "errors").read_text()

    def end(self) -> None:
        for process in reversed(self.running):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture
def typist(tmp_path: Path) -> Iterator[Typist]:
    made = Typist(tmp_path)
    yield made
    made.end()


def test_the_example_has_no_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_files(tmp_path)
    (tmp_path / "spark.password").touch()
    monkeypatch.chdir(tmp_path)
    declaration = read_pipeline(path, {"SERVERS": "127.0.0.1:61616"}).declaration
    assert [query.name for query in declaration.query] == ["archive", "sums"]


def archived(typist: Typist) -> list[dict[str, object]]:
    """Returns what the page's command prints of the archive; nothing before Spark's first file."""
    (command,) = [line for line in lines() if "pyarrow" in line]
    batches = (typist.folder / "out" / "archive").glob("_spark_metadata/[0-9]*")
    if not any("part-" in batch.read_text() for batch in batches):
        return []
    rows: list[dict[str, object]] = json.loads(typist.one(command).replace("'", '"'))
    return rows


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.process
@pytest.mark.timeout(1_200)
def test_the_example_runs_as_written(typist: Typist, tmp_path: Path) -> None:
    typist.typed("atalanta run")
    typist.start("ready")
    typist.typed("export SERVERS")
    write_files(tmp_path)
    assert "orders.toml: no problems" in typist.typed("atalanta pipeline orders.toml")
    assert [line for line in typist.errors().splitlines() if not STARTS.match(line)] == []
    typist.start("started: archive, sums, http://")
    typist.typed("python -c")
    deadline = time.monotonic() + 200
    wanted = [{"customer": "c1", "amount": 1.5}, {"customer": "c1", "amount": 2.0}]
    while archived(typist) != wanted:
        assert time.monotonic() < deadline, (tmp_path / "log1").read_text()
        time.sleep(1)
    assert str(wanted) in lines()  # as the page shows it
    time.sleep(30)  # "half a minute later"
    sums = [json.loads(line) for line in typist.typed().splitlines() if line.startswith("{")]
    assert {one["city"] for one in sums} == {"Rome"} and sum(one["amount"] for one in sums) == 3.5
    check_page(typist)
    compacted(typist)
    said = (tmp_path / "log1").read_text().splitlines()
    assert [line for line in said if not STARTS.match(line)] == [line for line in said if line.startswith("started: ")]


def check_page(typist: Typist) -> None:
    """The metrics of the page have no lag, and the anycast queue got no copy."""
    found = re.search(r"started: archive, sums, (http://\S+)", (typist.folder / "log1").read_text())
    assert found is not None
    with urllib.request.urlopen(f"{found[1]}metrics", timeout=10) as answer:
        metrics = answer.read().decode()
    lag = f'lag_messages{{node="127.0.0.1:{typist.port}",query="archive"}} 0.0'
    assert f"atalanta_pipeline_query_{lag}" in metrics
    queues = {one["name"]: one for one in json.loads(typist.one("atalanta queue stat --json"))}
    assert [queues[name]["messageCount"] for name in ("order-archive", "order-sums", "orders")] == [0, 0, 0]
    assert queues["orders"]["messagesAdded"] == 0


def compacted(typist: Typist) -> None:
    """An order of another day is in the compacted table, after the pipeline has ended on SIGTERM."""
    with blocking.connect(f"tcp://127.0.0.1:{typist.port}", user="admin", password="tryout") as connection:
        late = Message(text='{"customer": "c3", "amount": 8}', timestamp_ms=20_000 * DAY_MS)
        connection.producer("orders", routing="multicast").send(late)
    deadline = time.monotonic() + 100
    while not list((typist.folder / "out" / "archive").glob("day=2024-*/*.parquet")):
        assert time.monotonic() < deadline, (typist.folder / "log1").read_text()
        time.sleep(1)
    pipeline = typist.running[1]
    pipeline.send_signal(signal.SIGTERM)
    assert pipeline.wait(60) == 0
    assert "1 rows, compacted" in typist.one("atalanta pipeline compact orders.toml")


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path / "brokers", 1) as cluster:
        yield cluster


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.process
@pytest.mark.timeout(900)
def test_a_failed_query_of_spark_submit_is_told_once(
    brokers: BrokerCluster, tmp_path: Path
) -> None:
    write_files(tmp_path)
    (main,) = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    (tmp_path / "pipeline.py").write_text(main)
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
