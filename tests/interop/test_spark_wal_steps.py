"""Exactly once from a real Artemis, with the write-ahead folder on disk, in HDFS and in an object store like S3.

A driver is killed around each step: the file is durable before its branch is committed, and a file without a committed
branch is not read.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.client import Message, blocking
from atalanta.spark.wal.location import location_of
from tests.interop.harness import shared_folders
from tests.interop.harness.jms import PASSWORD, USER
from tests.interop.harness.node import BrokerProcess
from tests.interop.wal_steps import STEPS, query_at

USUAL_TARGET = "artemis"
ROOT = Path(__file__).resolve().parents[2]
MESSAGES = 14
pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", params=["disk", "hdfs", "s3"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URI of a folder of that kind."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "disk":
        yield str(folder)
        return
    kinds = {"hdfs": shared_folders.hdfs, "s3": shared_folders.object_store}
    service, uri = kinds[request.param](folder)
    yield uri
    service.close()


def below(uri: str, name: str) -> str:
    """Returns the URI of a folder in this one."""
    path, mark, parameters = uri.partition("?")
    return f"{path}/{name}{mark}{parameters}"


def wait_for_count(connection: blocking.Connection, queue: str) -> None:
    """Waits until the broker counts every message: while it rolls back for a killed driver, it counts fewer."""
    deadline = time.monotonic() + 20
    while (count := connection.query_queue(queue).message_count) != MESSAGES:
        assert time.monotonic() < deadline, f"{count} messages of {MESSAGES}"
        time.sleep(0.05)


@pytest.mark.parametrize("step", STEPS)
def test_each_message_is_one_row_if_the_driver_is_killed(node: BrokerProcess, shared: str, step: str) -> None:
    if step == "copied" and not shared.startswith("s3:"):
        pytest.skip("only an object store copies")
    server = f"127.0.0.1:{node.port}"
    queue = f"wal.{shared[:2].strip('/')}.{step.replace(' ', '-')}"
    location = below(shared, queue)
    with blocking.connect(f"tcp://{server}", user=USER, password=PASSWORD) as connection:
        connection.create_queue(queue, routing="anycast")
        with connection.producer(queue) as producer:
            for number in range(MESSAGES):
                producer.send(Message(text=str(number)))
        command = [sys.executable, "-m", "tests.interop.wal_steps", server, queue, location, step]
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        killed = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
        committed = step in {"after commit", "before offset log", "before batch commit"}
        if not committed:  # the broker has every message, or holds it in the prepared branch
            wait_for_count(connection, queue)
        query = query_at(server, queue, location)
        deadline = time.monotonic() + 20
        while connection.query_queue(queue).message_count and time.monotonic() < deadline:
            query.run()  # ends at once while the broker has not noticed the end of the killed one's connection
        query.run()
        assert Counter(query.rows) == Counter(str(number) for number in range(MESSAGES))
        assert connection.query_queue(queue).message_count == 0
        assert not connection.xa_resource.recover()
    names = location_of(location).names()
    assert sorted(name.rpartition(".")[2] for name in names if not name.startswith("claim")) == ["json", "wal"]
