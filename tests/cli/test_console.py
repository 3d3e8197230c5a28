"""`atalanta console` as an operator starts and stops it."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "0.0.0.0:8161"], "passwords would cross the network unencrypted"),
        (["--path", "x"], "--path x: not a path"),
        (["tcp://a:1?user=me"], "page of the log-in"),
        (["a:x"], "a:x"),
    ],
)
def test_mistakes_end_it_with_one_line(words: list[str], said: str) -> None:
    result = CliRunner().invoke(application, ["console", *words])
    assert result.exit_code == 2
    assert said in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.process
def test_it_serves_until_a_signal() -> None:
    command = [sys.executable, "-m", "atalanta", "console", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--read-only"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line.startswith("console http://127.0.0.1:") and line.rstrip().endswith("for 127.0.0.1:1; read only")
        with urllib.request.urlopen(f"{line.split()[1]}login", timeout=30) as answer:
            assert b"Log in" in answer.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
