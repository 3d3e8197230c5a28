"""`atalanta ha witness`: a real process that starts and stops, and what it refuses."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from atalanta.runtime.process import exit_codes
from tests.cli.calls import Cli
from tests.ports import free_port
from tests.waiting import DEADLINE_S


@pytest.mark.process
def test_a_witness_starts_and_stops(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "atalanta", "ha", "witness", "--listen", f"127.0.0.1:{port}"]
    command += ["--folder", str(tmp_path / "voter"), "--new"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"ready voter=127.0.0.1:{port}\n"
        socket.create_connection(("127.0.0.1", port), timeout=20).close()
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=DEADLINE_S) == ("", "")
        assert process.returncode == exit_codes.STOPPED
    finally:
        process.kill()
        process.wait()


def test_refusals(tmp_path: Path) -> None:
    cli = Cli()
    folder = str(tmp_path / "voter")
    empty = tmp_path / "empty"
    empty.touch()
    for words, status, why in (
        (["--listen", "5790"], exit_codes.USAGE, "not host:port"),
        (["--listen", "0.0.0.0:5790"], exit_codes.USAGE, "Give --password-file"),
        (["--listen", "127.0.0.1:0", "--password-file", str(empty)], exit_codes.USAGE, "is empty"),
        (["--listen", "127.0.0.1:0", "--password-file", f"{empty}2"], exit_codes.USAGE, "No such file"),
        (["--listen", "127.0.0.1:0", "--copy-of", "other"], exit_codes.USAGE, "only with --new"),
        (["--listen", "127.0.0.1:0"], exit_codes.BAD_DATA, "give --new"),
        (["--listen", "192.0.2.1:1", "--password-file", __file__, "--new"], exit_codes.UNAVAILABLE, "192.0.2.1"),
    ):
        cli("ha", "witness", "--folder", folder, *words, status=status)
        assert why in cli.errors
