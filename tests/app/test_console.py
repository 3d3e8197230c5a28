"""The console beside a node: started and ended with it, and nothing that happens to it touches the node."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest

from atalanta.app import console as beside
from atalanta.app.run import run_broker
from atalanta.app.startup_error import StartupError
from atalanta.client.blocking import connect
from tests.broker_process import BrokerProcess
from tests.broker_xml import cluster, write_broker_xml
from tests.ports import free_port
from tests.waiting import until

TABLE = '[console]\nlisten = "127.0.0.1:0"\nread-only = true\n'


def refused(xml: Path, console: str | None = "", web: str | None = None) -> str:
    """Starts a node that is not to start, and returns why."""
    with pytest.raises(StartupError) as error:
        run_broker(xml, lambda words: None, web, console=console)
    return "\n".join(error.value.lines)


def test_what_cannot_be_started_is_said_before_the_node_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xml = write_broker_xml(tmp_path, free_port())
    assert "--tls-certificate" in refused(xml, "0.0.0.0:8161")
    assert "host:port" in refused(xml, "8161")
    assert "both to listen on 127.0.0.1:8161" in refused(xml, "127.0.0.1:8161", "127.0.0.1:8161")
    own = xml.with_name("atalanta.toml")
    for text, why in (
        ("[console]\nport = 1\n", "unknown key 'port' in [console]"),
        ("[console]\nplain = 1\n", "plain: 1 is not of type bool"),
        ("console = true\n", "console is not a table"),
        ('[console]\ntls-certificate = "none.pem"\n', "none.pem"),
        ('[console]\npath = "/../x"\n', "--path"),
    ):
        own.write_text(text)
        assert why in refused(xml, None), text
    own.unlink()
    monkeypatch.setattr(beside, "find_spec", lambda name: None if name == "jinja2" else find_spec(name))
    assert "pip install '.[console]' in the checkout (no jinja2)" in refused(xml)
    assert not (tmp_path / "data").exists()


def console_pid(broker: BrokerProcess) -> int:
    """Returns the process of the console that was started last."""
    return int(re.findall(r"console_started pid=(\d+)", broker.log())[-1])


def addresses(broker: BrokerProcess) -> list[str]:
    return re.findall(r"console_listening address=(\S+)", broker.log())


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.process
def test_it_ends_with_the_node_and_its_death_is_an_event(tmp_path: Path) -> None:
    port = free_port()
    xml = write_broker_xml(tmp_path, port, more=cluster(port, [free_port()]))
    xml.with_name("atalanta.toml").write_text(TABLE)
    with BrokerProcess(xml, port=port) as broker:
        until(lambda: addresses(broker), broker.log)
        first = console_pid(broker)
        with connect(f"tcp://127.0.0.1:{port}") as connection:
            os.kill(first, signal.SIGKILL)
            until(lambda: "console_ended" in broker.log(), broker.log)
            assert connection.query_queue("none").exists is False
        until(lambda: len(addresses(broker)) == 2, broker.log)
        second = console_pid(broker)
        assert second != first
        assert broker.end(signal.SIGTERM) == 0
        assert not alive(second)


@pytest.mark.process
def test_it_ends_when_the_node_is_killed(tmp_path: Path) -> None:
    port = free_port()
    xml = write_broker_xml(tmp_path, port)
    with BrokerProcess(xml, "--console-listen", "127.0.0.1:0", port=port) as broker:
        until(lambda: addresses(broker), broker.log)
        pid = console_pid(broker)
        broker.end(signal.SIGKILL)
        until(lambda: not alive(pid), lambda: f"{pid} lives")
