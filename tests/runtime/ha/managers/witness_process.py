"""Real witness processes for tests: started, killed, stopped, never left.

They run what `atalanta ha witness` runs, without the command line, which takes longer to import than all the rest.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port
from tests.waiting import DEADLINE_S, until_stopped

PASSWORD = "a password of voters"
PROGRAM = """
import pathlib, sys
from atalanta.app.witness import run_witness
listen, folder, new, password = sys.argv[1:]
ready = lambda words: print("ready", *words, flush=True)
sys.exit(run_witness(listen, pathlib.Path(folder), new == "new", [], password, ready))
"""


class WitnessProcess:
    """One witness with its folder and its port, over several lives."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Starts it without waiting. The first start makes the voter."""
        new = "" if (self.folder / "voter").exists() else "new"
        command = [sys.executable, "-c", PROGRAM, f"127.0.0.1:{self.port}", str(self.folder), new, PASSWORD]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )

    def wait_ready(self) -> None:
        """Waits for the ready line."""
        process = self.process
        assert process is not None and process.stdout is not None
        line = process.stdout.readline()
        assert line == f"ready voter=127.0.0.1:{self.port}\n", self._failed(line)

    def _failed(self, line: str) -> str:
        assert self.process is not None
        self.process.kill()
        return f"{line!r}, stderr: {self.process.communicate(timeout=DEADLINE_S)[1]}"

    def send(self, number: signal.Signals) -> None:
        """Sends a signal. After SIGSTOP the process stands still."""
        assert self.process is not None
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            until_stopped(self.process.pid)

    def wait(self) -> tuple[int, str]:
        """Waits for the end. Returns the exit status and stderr."""
        assert self.process is not None
        stderr = self.process.communicate(timeout=DEADLINE_S)[1]
        status = self.process.returncode
        self.process = None
        return status, stderr

    def kill(self) -> None:
        """Kills it, if it runs."""
        if self.process is not None:
            self.send(signal.SIGKILL)
            self.wait()


@contextmanager
def witnesses(folder: Path, count: int = 3) -> Iterator[list[WitnessProcess]]:
    """Starts witnesses; they are ready inside the block and gone after it."""
    made = [WitnessProcess(folder / f"voter{at}") for at in range(count)]
    try:
        for each in made:
            each.start()
        for each in made:
            each.wait_ready()
        yield made
    finally:
        for each in made:
            each.kill()
