"""`atalanta run` of a node of a replicated group: a guard that was started, and the node as its child."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from atalanta.client.blocking import connect
from atalanta.runtime.ha.managers.voter_folder import VoterFolder
from atalanta.runtime.process import exit_codes
from tests.broker_process import BrokerProcess, refused
from tests.broker_xml import cluster, write_broker_xml
from tests.ports import free_port
from tests.runtime.ha.guard.guarded_process import alive
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.process

# The other member does not run.
CONNECTION = cluster(61616, [9], login="")
REPLICATED = CONNECTION + """
<ha-policy><replication><primary><manager>
  <class-name>org.apache.activemq.artemis.lockmanager.file.FileBasedLockManager</class-name>
  <properties><property key="locks-folder" value="{folder}"/></properties>
</manager></primary></replication></ha-policy>
"""


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def broker_xml(tmp_path: Path, port: int) -> Path:
    locks = tmp_path / "locks"
    locks.mkdir()
    return write_broker_xml(tmp_path, port, more=REPLICATED.format(folder=locks))


def child(broker: BrokerProcess) -> int:
    """The process in which the broker runs."""
    found = re.findall(r"guard_started pid=(\d+) guard=\d+ started=(\d+)", broker.log())
    assert found and int(found[-1][1]) == broker.process.pid, broker.log()
    return int(found[-1][0])


def test_the_broker_is_the_child_of_a_small_guard(broker_xml: Path) -> None:
    with BrokerProcess(broker_xml) as broker:
        process = child(broker)
        assert f"{broker_xml}" in Path(f"/proc/{broker.process.pid}/cmdline").read_text()
        assert broker.end(signal.SIGTERM) == exit_codes.STOPPED
        assert not alive(process)
    assert "node_stopped" in broker.log()


def test_killing_what_was_started_frees_port_and_folder_at_once(broker_xml: Path, port: int) -> None:
    with BrokerProcess(broker_xml) as broker:
        process = child(broker)
        broker.end(signal.SIGKILL)
        until(lambda: not alive(process), "the broker outlives its guard", seconds=1)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), DEADLINE_S)
    with BrokerProcess(broker_xml):
        pass  # the folder's lock is free as well


def test_the_end_of_the_broker_is_the_end_of_its_guard(broker_xml: Path) -> None:
    with BrokerProcess(broker_xml) as broker:
        os.kill(child(broker), signal.SIGKILL)
        assert broker.wait() == 128 + signal.SIGKILL
    assert "broker_killed signal=9" in broker.log()


def test_a_service_manager_that_signals_both_processes_asks_once(tmp_path: Path, port: int) -> None:
    more = "<graceful-shutdown-enabled>true</graceful-shutdown-enabled>" + REPLICATED.format(folder=tmp_path)
    with BrokerProcess(write_broker_xml(tmp_path, port, more=more)) as broker:
        with connect(f"tcp://127.0.0.1:{port}"):
            broker.process.send_signal(signal.SIGTERM)
            broker.until_logged("stop_waits_for_clients clients=1")
            os.kill(child(broker), signal.SIGTERM)
            time.sleep(0.3)
            assert broker.process.poll() is None, "the second one is the same request"
            assert broker.end(signal.SIGTERM) == 128 + signal.SIGTERM, "and this one is another"


def test_a_refused_start_keeps_its_status(broker_xml: Path, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)), refused(broker_xml) as broker:
        assert broker.wait() == exit_codes.UNAVAILABLE
    assert "broker_ended" not in broker.log()


def quorum(tmp_path: Path, port: int, voter: int) -> Path:
    """A file of a node whose guard runs the only voter."""
    form = CONNECTION + "<ha-policy><replication><primary/></replication></ha-policy>"
    broker_xml = write_broker_xml(tmp_path, port, more=form)
    own = f'[ha.manager]\nkind = "quorum"\nvoters = "127.0.0.1:{voter}"\nvoter = "127.0.0.1:{voter}"\n'
    broker_xml.with_name("atalanta.toml").write_text(own)
    return broker_xml


def test_a_guard_runs_a_voter(tmp_path: Path, port: int) -> None:
    voter = free_port()
    broker_xml = quorum(tmp_path, port, voter)
    with refused(broker_xml) as broker:
        assert broker.wait() == exit_codes.BAD_DATA
        folder = tmp_path / "data" / "voter"
        assert f"atalanta ha witness --listen 127.0.0.1:0 --folder {folder} --new" in broker.log()
    VoterFolder(folder, new=True).close()
    with BrokerProcess(broker_xml) as broker:
        broker.until_logged(f"voter_started at=127.0.0.1:{voter}")
        assert broker.end(signal.SIGTERM) == exit_codes.STOPPED
        socket.create_connection(("127.0.0.1", voter), DEADLINE_S).close()  # the other member may need it
    with BrokerProcess(broker_xml, "--no-guard") as broker:
        broker.until_logged("voter_not_started")
        broker.end(signal.SIGTERM)


def test_a_voter_that_cannot_listen_says_so_and_the_node_runs(tmp_path: Path, port: int) -> None:
    VoterFolder(tmp_path / "data" / "voter", new=True).close()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with BrokerProcess(quorum(tmp_path, port, taken.getsockname()[1])) as broker:
            broker.until_logged("voter_failed")
            assert "in use" in broker.log()
            assert broker.end(signal.SIGTERM) == exit_codes.STOPPED


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_node_whose_streams_are_closed_serves(broker_xml: Path, port: int, closed: str) -> None:
    command = [sys.executable, "-m", "atalanta", "run", str(broker_xml)]
    with subprocess.Popen(["sh", "-c", f'exec "$@" {closed}', "sh", *command], start_new_session=True) as started:
        try:
            with connect(f"tcp://127.0.0.1:{port}?reconnectAttempts=-1&initialConnectAttempts=-1&retryInterval=50"):
                started.send_signal(signal.SIGTERM)
                assert started.wait(DEADLINE_S) == exit_codes.STOPPED
        finally:
            started.kill()


@pytest.mark.parametrize("lost", ["a closed pipe", "a full disk"])
def test_a_ready_line_that_nobody_can_read_ends_no_node(broker_xml: Path, lost: str) -> None:
    reader, sink = os.pipe()
    os.close(reader)
    with open("/dev/full", "wb") as full, broker_xml.with_name("stderr.log").open("wb") as log:
        command = [sys.executable, "-m", "atalanta", "run", str(broker_xml)]
        with subprocess.Popen(command, stdout=full if lost == "a full disk" else sink, stderr=log) as started:
            os.close(sink)
            try:
                written = broker_xml.with_name("stderr.log")
                until(lambda: "ready_line_lost" in written.read_text(), written.read_text)
                assert started.poll() is None
                started.send_signal(signal.SIGTERM)
                assert started.wait(DEADLINE_S) == exit_codes.STOPPED
            finally:
                started.kill()


def test_without_a_guard_there_is_one_process(broker_xml: Path, tmp_path: Path) -> None:
    with BrokerProcess(broker_xml, "--no-guard") as broker:
        assert "guard_started" not in broker.log()
        assert broker.end(signal.SIGTERM) == exit_codes.STOPPED
    single = write_broker_xml(tmp_path / "single", free_port())
    with BrokerProcess(single) as broker:
        assert "guard_started" not in broker.log()
        broker.end(signal.SIGTERM)
