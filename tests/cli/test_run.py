"""`atalanta run` as a real process: start, stop, kill, and every way a start is refused."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from atalanta.client import Message
from atalanta.client.blocking import connect
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.build import build_name
from atalanta.wire.core.client.errors import ClientError
from tests.broker_process import BrokerProcess, refused
from tests.broker_xml import write_broker_xml
from tests.ports import free_port

DEFAULT_FILE = Path(__file__).parents[1] / "config" / "data" / "artemis-create.xml"
pytestmark = pytest.mark.process

# The handshake, then a PING: length, type 10, channel 0, time to live in ms. Needs no login.
PING = b"ARTEMIS" + bytes.fromhex("000000110a0000000000000000000000000000ea60")


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def broker_xml(tmp_path: Path, port: int) -> Path:
    return write_broker_xml(tmp_path, port)


def test_start_answer_stop(broker_xml: Path, port: int) -> None:
    with BrokerProcess(broker_xml) as broker:
        assert broker.ready_line == f"ready artemis=127.0.0.1:{port}"
        with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
            peer.sendall(PING)
            assert peer.recv(4096), "a PING is answered before any login"
            assert broker.end(signal.SIGTERM) == exit_codes.STOPPED
            peer.settimeout(20)
            while peer.recv(4096):
                pass  # a graceful stop may say goodbye before it closes
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=20)
    assert (broker_xml.parent.parent / "data").is_dir(), "data lie under the instance folder"


def test_a_graceful_stop_waits_for_clients_and_accepts_no_further_ones(
    tmp_path: Path, port: int
) -> None:
    """graceful-shutdown-enabled: who is there goes on working until they leave on their own."""
    more = "<graceful-shutdown-enabled>true</graceful-shutdown-enabled>"
    with BrokerProcess(write_broker_xml(tmp_path, port, more=more)) as broker:
        with connect(f"tcp://127.0.0.1:{port}") as client:
            producer = client.producer("orders", routing="anycast")
            producer.send(Message(text="before"))
            broker.process.send_signal(signal.SIGTERM)
            broker.until_logged("stop_waits_for_clients clients=1")
            producer.send(Message(text="after"))
            consumer = client.consumer("orders")
            for text in ("before", "after"):
                message = consumer.receive(timeout_s=20)
                assert message is not None and message.text == text
                message.acknowledge()
            with pytest.raises(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=20)
            assert broker.process.poll() is None
        assert broker.wait() == exit_codes.STOPPED


def test_a_graceful_stop_waits_no_longer_than_its_timeout(tmp_path: Path, port: int) -> None:
    more = (
        "<graceful-shutdown-enabled>true</graceful-shutdown-enabled>"
        "<graceful-shutdown-timeout>50</graceful-shutdown-timeout>"
    )
    with BrokerProcess(write_broker_xml(tmp_path, port, more=more)) as broker:
        client = connect(f"tcp://127.0.0.1:{port}")
        client.producer("orders", routing="anycast").send(Message(text="x"))
        assert broker.end(signal.SIGTERM) == exit_codes.STOPPED
        with contextlib.suppress(ClientError):
            client.close()


def test_metrics_and_health_over_http(broker_xml: Path, port: int) -> None:
    with BrokerProcess(broker_xml, "--web", "127.0.0.1:0") as broker:
        words = dict(word.split("=", 1) for word in broker.ready_line.split()[1:])
        url = f"http://{words['web']}"
        with urllib.request.urlopen(f"{url}/health/ready", timeout=20) as response:
            assert response.status == 200
        with urllib.request.urlopen(f"{url}/metrics", timeout=20) as response:
            text = response.read().decode()
        assert 'artemis_connection_count{broker="test"} 0' in text
        assert "artemis_disk_store_usage" in text
        assert broker.end(signal.SIGTERM) == exit_codes.STOPPED


def test_the_log_is_one_event_a_line_as_text_or_as_json(broker_xml: Path, port: int) -> None:
    for arguments in ((), ("--log-json",)):
        with BrokerProcess(broker_xml, *arguments) as broker:
            with (
                socket.create_connection(("127.0.0.1", port), timeout=20) as bad,
                socket.create_connection(("127.0.0.1", port), timeout=20) as good,
            ):
                bad.sendall(b"\xff" * 64)
                while bad.recv(4096):
                    pass
                good.sendall(PING)
                assert good.recv(4096), "garbage ends its connection and nothing else"
            assert broker.end(signal.SIGINT) == exit_codes.STOPPED
            lines = broker.log().splitlines()
        broker.log_path.unlink()
        names = [json.loads(line)["event"] if arguments else line.split()[3] for line in lines]
        assert names[0] == "process_started" and names[-1] == "node_stopped"
        for name in ("node_starting", "journal_recovered", "node_ready", "protocol_error"):
            assert name in names
        assert names.count("interpreted_build_slow") == (build_name() == "interpreted")
        assert all(line.startswith("{" if arguments else "20") for line in lines)


def test_an_artemis_journal_is_refused_with_the_way_over(broker_xml: Path) -> None:
    """A node that started beside it would be empty, and its clients would think their messages lost."""
    data = broker_xml.parent.parent / "data"
    for folder, name in (("journal", "activemq-data-1.amq"), ("bindings", "activemq-bindings-1.bindings")):
        (data / folder).mkdir(parents=True)
        (data / folder / name).write_bytes(b"\0" * 64)
        with refused(broker_xml) as broker:
            assert broker.wait() == exit_codes.BAD_DATA
            assert f"{data / folder} holds the journal of an Artemis broker" in broker.log()
            assert "artemis data exp" in broker.log() and "atalanta data import" in broker.log()
        assert [path.name for path in (data / folder).iterdir()] == [name], "nothing was written"
        (data / folder / name).unlink()


def test_a_second_node_on_the_same_data_is_refused(broker_xml: Path, tmp_path: Path) -> None:
    other = tmp_path / "etc" / "other.xml"
    text = broker_xml.read_text(encoding="utf-8")
    with BrokerProcess(broker_xml):
        other.write_text(text.replace("tcp://127.0.0.1:", "tcp://127.0.0.2:"), encoding="utf-8")
        with refused(other) as second:
            assert second.wait() == exit_codes.FOLDER_TAKEN
            assert str(tmp_path / "data") in second.log()


def test_a_taken_port_is_named(broker_xml: Path, port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with refused(broker_xml) as broker:
            assert broker.wait() == exit_codes.UNAVAILABLE
            assert f"127.0.0.1:{port}" in broker.log()
            assert "Traceback" not in broker.log()


def test_a_mistake_in_the_file_is_named_with_its_line(tmp_path: Path) -> None:
    mistake = "<message-expiry-scan-period>soon</message-expiry-scan-period>"
    path = write_broker_xml(tmp_path, free_port(), more=mistake)
    line = 1 + path.read_text(encoding="utf-8").split(mistake)[0].count("\n")
    with refused(path) as broker:
        assert broker.wait() == exit_codes.BAD_CONFIGURATION
        assert f"broker.xml:{line}" in broker.log()
        assert "Traceback" not in broker.log()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with refused(tmp_path / "broker.xml") as broker:
        assert broker.wait() == exit_codes.BAD_CONFIGURATION
        assert "broker.xml" in broker.log()
        assert "Traceback" not in broker.log()


@pytest.mark.parametrize("broken", ["port", "file", "level"])
def test_a_fatal_error_is_json_too(tmp_path: Path, port: int, broken: str) -> None:
    path = write_broker_xml(tmp_path, port, more="<frobnicate/>" if broken == "file" else "")
    level = ("--log-level", "loud") if broken == "level" else ()
    statuses = {
        "port": exit_codes.UNAVAILABLE,
        "file": exit_codes.BAD_CONFIGURATION,
        "level": exit_codes.USAGE,
    }
    with socket.socket() as taken:
        if broken == "port":
            taken.bind(("127.0.0.1", port))
            taken.listen()
        with refused(path, "--log-json", *level) as broker:
            assert broker.wait() == statuses[broken]
    last = [json.loads(line) for line in broker.log().splitlines()][-1]
    assert (last["event"], last["level"], last["status"]) == ("start_fatal", "error", statuses[broken])


def test_an_acceptor_with_a_lock_stays_closed_while_the_others_serve(tmp_path: Path, port: int) -> None:
    path = write_broker_xml(tmp_path, port)
    locked = free_port()
    extra = f'<acceptor name="other" lock-coordinator="lock">tcp://127.0.0.1:{locked}</acceptor></acceptors>'
    path.write_text(path.read_text().replace("</acceptors>", extra))
    with BrokerProcess(path) as broker:
        assert broker.ready_line == f"ready artemis=127.0.0.1:{port}"
        assert "acceptor_closed acceptor=other" in broker.log() and "ERROR" in broker.log()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", locked), timeout=20)


def test_the_default_file_of_artemis_gets_one_warning_for_what_has_no_effect(tmp_path: Path, port: int) -> None:
    """`artemis create` writes five acceptors and twenty options of their own: one line for the lost."""
    text = DEFAULT_FILE.read_text(encoding="utf-8")
    acceptors = re.compile(r"<acceptors>.*?</acceptors>", re.DOTALL)
    others = [f'<acceptor name="{name}">tcp://127.0.0.1:{number}?protocols={name}</acceptor>'
              for number, name in ((5672, "AMQP"), (5445, "HORNETQ"), (1883, "MQTT"))]  # fmt: skip
    own = f'<acceptor name="a">tcp://127.0.0.1:{port}?tcpSendBufferSize=1048576;amqpCredits=1000</acceptor>'
    path = tmp_path / "etc" / "broker.xml"
    path.parent.mkdir()
    written = acceptors.sub(f"<acceptors>{own}{''.join(others)}</acceptors>", text)
    path.write_text(written, encoding="utf-8")
    with BrokerProcess(path) as broker:
        assert broker.end(signal.SIGTERM) == exit_codes.STOPPED
        lines = [line for line in broker.log().splitlines() if "option" in line]
    assert [line.split()[1] for line in lines] == ["WARNING", "INFO"], lines
    assert all(name in lines[0] for name in ("acceptor AMQP", "acceptor HORNETQ", "acceptor MQTT"))
    assert "amqpCredits" in lines[0]  # its acceptor, without `protocols`, is one for AMQP, too
