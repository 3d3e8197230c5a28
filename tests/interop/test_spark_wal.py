"""Spark reads queues of a real Artemis, with nothing installed there: browsers, and streams exactly once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from atalanta.client import Message, blocking
from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.errors import GatewayError
from atalanta.spark.gateway.gateway import Credentials
from atalanta.spark.source import AtalantaDataSource
from atalanta.spark.wal.wal_node import open_node
from tests.interop.harness.jms import PASSWORD, USER
from tests.interop.harness.node import BrokerProcess
from tests.interop.wal_steps import query_at
from tests.spark.wal.limited_batches import EXPECTED, limited_batches

USUAL_TARGET = "artemis"
ROOT = Path(__file__).resolve().parents[2]
MESSAGES = 3_000
KILLS = 3
pytestmark = [pytest.mark.interop, pytest.mark.timeout(1500)]


def fill(server: str, queue: str, count: int) -> None:
    with (
        blocking.connect(f"tcp://{server}", user=USER, password=PASSWORD) as connection,
        connection.producer(queue, routing="anycast") as producer,
    ):
        for number in range(count):
            producer.send_soon(Message(text=str(number), properties={"number": number}))
        producer.send(Message(text="large " + "x" * 500_000))


def waiting(server: str, queue: str) -> int:
    with blocking.connect(f"tcp://{server}", user=USER, password=PASSWORD) as connection:
        return connection.query_queue(queue).message_count


def test_a_message_without_room_is_in_the_next_batch(node: BrokerProcess, tmp_path: Path) -> None:
    server, queue = f"127.0.0.1:{node.port}", "spark.limited"
    assert limited_batches(server, USER, PASSWORD, queue, tmp_path) == EXPECTED
    assert waiting(server, queue) == 0


def test_a_batch_read_leaves_everything_in_place(node: BrokerProcess) -> None:
    server, queue = f"127.0.0.1:{node.port}", "spark.browse"
    fill(server, queue, 3_000)
    options = {"servers": server, "user": USER, "password": PASSWORD, "queue": queue}
    reader = AtalantaDataSource(options).reader(COLUMNS)
    rows = [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in pyarrow.Table.from_batches([batch]).to_pylist()
    ]
    assert [row["text"] for row in rows[:-1]] == [str(number) for number in range(3_000)]
    assert rows[-1]["text"].startswith("large x") and len(rows[-1]["text"]) == 500_006
    assert [row["sequence"] for row in rows] == list(range(1, 3_002))
    assert rows[7]["properties"] == [("number", "7")]
    assert waiting(server, queue) == 3_001


def test_a_stream_of_several_queues_is_exactly_once_under_driver_kills(
    node: BrokerProcess, tmp_path: Path
) -> None:
    """The queues are found by a pattern, and a column says which."""
    server, pattern = f"127.0.0.1:{node.port}", "spark.stream.*"
    queues = ["spark.stream.eu", "spark.stream.us"]
    for queue in queues:
        fill(server, queue, MESSAGES // 2)
    fill(server, "spark.other", 3)
    chance = random.Random(17)
    for number in range(KILLS + 1):
        process = start(server, pattern, tmp_path)
        if number < KILLS:
            kill_during(process, tmp_path, chance)
        else:
            assert process.wait(400) == 0, (tmp_path / "log").read_text()[-3000:]
    assert "sourceMode=wal" in (tmp_path / "log").read_text()
    parquet: Any = pyarrow.parquet
    rows = parquet.read_table(tmp_path / "rows").to_pylist()
    counts = Counter((row["queue"], row["text"]) for row in rows if not row["text"].startswith("large"))
    assert counts == Counter((queue, str(number)) for queue in queues for number in range(MESSAGES // 2))
    assert len(rows) == MESSAGES + len(queues)
    assert len({(row["node"], row["sequence"]) for row in rows}) == len(rows)
    assert [waiting(server, queue) for queue in (*queues, "spark.other")] == [0, 0, 4]


def test_queues_that_appear_are_read_and_a_batch_read_browses_all(
    node: BrokerProcess, tmp_path: Path
) -> None:
    server = f"127.0.0.1:{node.port}"
    fill(server, "found.eu", 5)
    query = query_at(server, "", str(tmp_path), queuePattern="found.#")
    query.run()
    fill(server, "found.asia.late", 7)
    time.sleep(1.1)  # the list of queues is asked once a second
    login = {"servers": server, "user": USER, "password": PASSWORD, "queuePattern": "found.#"}
    reader = AtalantaDataSource(login).reader(COLUMNS)
    browsed: Counter[str] = Counter()
    for part in reader.partitions():
        for batch in reader.read(part):
            browsed.update(row["queue"] for row in pyarrow.Table.from_batches([batch]).to_pylist())
    assert browsed == {"found.asia.late": 8}
    query.run()
    assert query.queues == {"found.eu": 6, "found.asia.late": 8}
    assert waiting(server, "found.asia.late") == 0


def test_a_user_who_may_not_list_queues_is_told_the_permission(node: BrokerProcess) -> None:
    opened = open_node(f"127.0.0.1:{node.port}", Credentials("guest", "guest", 5.0, 10.0))
    try:
        with pytest.raises(GatewayError, match="give the user the permission manage .* or name the queues in"):
            opened.queues()
    finally:
        opened.close()


def start(server: str, queue: str, folder: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.interop.spark_wal_driver", server, queue, str(folder)],
            stdout=log, stderr=log, env=environment, cwd=ROOT, start_new_session=True,
        )  # fmt: skip


def kill_during(process: subprocess.Popen[bytes], folder: Path, chance: random.Random) -> None:
    """Kills driver, JVM and planner, some moments after the next file was received."""
    known = set(os.listdir(folder / "wal")) if (folder / "wal").exists() else set()
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if (folder / "wal").exists() and set(os.listdir(folder / "wal")) - known:
            break
        time.sleep(0.005)
    time.sleep(chance.random() * 1.5)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
