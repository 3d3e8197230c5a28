"""`atalanta run` without typer: read as typer reads it, and without what a node does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import atalanta.cli.run
from atalanta.cli.application import application
from atalanta.cli.main import main
from atalanta.cli.run_line import RunLine, read_run_line
from atalanta.runtime.process import exit_codes
from tests.broker_xml import write_broker_xml
from tests.ports import free_port

LINES = (
    "run broker.xml",
    "run --log-level debug broker.xml",
    "run broker.xml --log-level=debug",
    "run broker.xml --log-level= --log-json",
    "run --log-json folder --web 127.0.0.1:8161",
    "run --no-guard folder",
    "run --alone activemq.xml",
    "run --console broker.xml",
    "run broker.xml --console-listen 127.0.0.1:0 --console",
    "run folder --web=[::1]:0 --web 127.0.0.1:0 --log-level info --log-level error",
)
# Help, mistakes, and what is better left to who knows all of it.
FOR_TYPER = (
    "",
    "version",
    "--help",
    "run",
    "run --help",
    "run broker.xml --help",
    "run broker.xml other.xml",
    "run broker.xml --log-level",
    "run broker.xml --console-listen",
    "run --web --log-json broker.xml",
    "run broker.xml --log-json=yes",
    "run broker.xml --no-guard=yes",
    "run broker.xml --unknown",
    "run -- broker.xml",
    "produce run",
)
# What a node that stands alone keeps out of its memory, and out of the time of its start.
NOT_LOADED = (
    "typer", "click", "rich", "pydantic_core", "cryptography", "dns", "aiohttp", "importlib.metadata", "email",
    "tempfile", "tomllib", "zipfile",
    "atalanta.client", "atalanta.sim", "atalanta.spark", "atalanta.web",
    "atalanta.app.store.passive_run", "atalanta.app.store.activation", "atalanta.app.user_files",
    "atalanta.cluster.balancing.balancers", "atalanta.cluster.connection.cluster_connections",
    "atalanta.cluster.connection_routers.routers", "atalanta.cluster.grouping.handler", "atalanta.cluster.scale_down",
    "atalanta.config.wildfly.reader", "atalanta.ha.manager_config", "atalanta.ha.policy_elements",
    "atalanta.runtime.ha.epoch_folders", "atalanta.runtime.ha.shared_store",
    "atalanta.runtime.lifecycle.graceful_shutdown", "atalanta.runtime.net.multicast",
    "atalanta.wire.core.packets.logview", "atalanta.wire.core.server.requests.log_requests",
)  # fmt: skip


@pytest.mark.parametrize("text", LINES)
def test_a_plain_line_means_what_it_means_to_typer(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[RunLine] = []

    def instead(
        path: Path, log_level: str, web: str | None, log_json: bool, guarded: bool, alone: bool, console: str | None
    ) -> int:
        told.append(RunLine(path, log_level, web, log_json, guarded, alone, console))
        return 0

    monkeypatch.setattr(atalanta.cli.run, "run_in_foreground", instead)
    result: Any = CliRunner().invoke(application, text.split())
    assert result.exit_code == 0
    assert told == [read_run_line(text.split())]


@pytest.mark.parametrize("text", FOR_TYPER)
def test_everything_else_is_left_to_typer(text: str) -> None:
    assert read_run_line(text.split()) is None


def test_an_interrupt_before_the_loop_listens_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(atalanta.cli.run, "run_in_foreground", interrupted)
    monkeypatch.setattr(sys, "argv", ["atalanta", "run", "broker.xml"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


@pytest.mark.process
def test_a_node_is_ready_without_what_it_does_not_need(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "import atalanta.cli.run\n"
        "from atalanta.cli.main import main\n"
        "def ready(words):\n"
        f"    print('ready', *[name for name in {NOT_LOADED!r} if name in sys.modules])\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "atalanta.cli.run.print_ready = ready\n"
        "main()\n"
    )
    broker_xml = write_broker_xml(tmp_path, free_port())
    done = subprocess.run(
        [sys.executable, "-c", program, "run", str(broker_xml)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == exit_codes.STOPPED, done.stderr
    assert done.stdout.split() == ["ready"]
