"""Messages much larger than a node's memory should be: through a real process, with its memory watched."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from atalanta.client import Message
from atalanta.client.blocking import connect
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.client.large.large_rig import MIB, large_files
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.process

BODY_BYTES = 200 * MIB
URL = "tcp://127.0.0.1:{port}?largeMessageMaxBytes={limit}"


def resident_bytes(broker: BrokerProcess, what: str = "VmHWM") -> int:
    """VmRSS: now; VmHWM: the most there ever was."""
    for line in Path(f"/proc/{broker.process.pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {what}")


def test_200_mib_go_through_a_node_in_less_than_60(tmp_path: Path) -> None:
    port = free_port()
    url = URL.format(port=port, limit=BODY_BYTES)
    body = bytes(range(256)) * (BODY_BYTES // 256)
    with BrokerProcess(write_broker_xml(tmp_path, port)) as broker:
        with connect(url) as connection:
            for queue in ("one", "two"):
                connection.create_queue(queue, address="all", routing="multicast")
            producer = connection.producer("all", routing="multicast")
            before = resident_bytes(broker, "VmRSS")
            producer.send(Message(body=body))
            (file,) = large_files(tmp_path)
            assert file.stat().st_size == BODY_BYTES
            for queue in ("one", "two"):
                consumer = connection.consumer(queue)
                received = consumer.receive(60)
                assert received is not None and received.body == body
                received.acknowledge()
                del received
                consumer.close()
            until(lambda: not large_files(tmp_path))
            assert resident_bytes(broker) - before < 60 * MIB
        assert broker.end(signal.SIGTERM) == 0


RECEIVER = """
import sys
from pathlib import Path
from atalanta.client import MessageTooLarge
from atalanta.client.blocking import connect
with connect(sys.argv[1]) as connection:
    message = connection.consumer("files").receive(60)
    try:
        message.body
    except MessageTooLarge as error:
        assert "save_to" in str(error)
    else:
        raise AssertionError("it should not be in memory")
    written = message.save_to(Path(sys.argv[2]))
    status = Path("/proc/self/status").read_text().splitlines()
    print(written, *(line.split()[1] for line in status if line.startswith("VmHWM")))
    message.acknowledge()
"""


def test_a_client_receives_more_than_its_memory(tmp_path: Path) -> None:
    port = free_port()
    url = URL.format(port=port, limit=MIB)
    body = bytes(range(256)) * (100 * MIB // 256)
    target, folder = tmp_path / "received", tmp_path / "folder"
    folder.mkdir()
    with BrokerProcess(write_broker_xml(tmp_path, port)) as broker:
        with connect(url) as connection:
            connection.create_queue("files", address="files")
            connection.producer("files").send(Message(body=body))
        command = [sys.executable, "-c", RECEIVER, f"{url}&largeMessagesFolder={folder}", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        written, most_kib = map(int, done.stdout.split())
        assert written == len(body) and target.read_bytes() == body
        assert most_kib << 10 < 80 * MIB
        assert not list(folder.iterdir())
        until(lambda: not large_files(tmp_path))
        assert broker.end(signal.SIGTERM) == 0


def test_a_killed_node_keeps_what_it_confirmed_and_nothing_else(tmp_path: Path) -> None:
    port = free_port()
    url = URL.format(port=port, limit=BODY_BYTES)
    body = bytes(range(251)) * 20_000
    broker_xml = write_broker_xml(tmp_path, port)
    with BrokerProcess(broker_xml) as broker:
        with connect(url) as connection:
            connection.create_queue("kept", address="kept")
            connection.create_queue("taken", address="taken")
            connection.producer("kept").send(Message(body=body))
            connection.producer("taken").send(Message(body=body))
            received = connection.consumer("taken").receive(20)
            assert received is not None
            received.acknowledge()
            until(lambda: len(large_files(tmp_path)) == 1)
            connection.producer("kept").send_soon(Message(body=body * 10))
            broker.end(signal.SIGKILL)
        broker.start()
        broker.wait_ready()
        with connect(url) as connection:
            consumer = connection.consumer("kept")
            received = consumer.receive(20)
            assert received is not None and received.body == body
            received.acknowledge()
            until(lambda: len(large_files(tmp_path)) <= 1)
        assert broker.end(signal.SIGTERM) == 0
