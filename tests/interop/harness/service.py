"""A server program in a process of its own, for one test module."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.waiting import until_stopped

START_SECONDS = 120.0
END_SECONDS = 20.0


class Service:
    """The program. It must listen on `port` of 127.0.0.1 when it is ready."""

    def __init__(self, command: Sequence[str], port: int, log: Path, environment: dict[str, str]) -> None:
        self.port = port
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd=log.parent
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._accepts():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"{command[0]} did not start:\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.1)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the process. After SIGSTOP it stands still."""
        self._process.send_signal(number)
        if number == signal.SIGSTOP:
            until_stopped(self._process.pid)

    def close(self) -> None:
        """Ends the process, also a stopped one."""
        self._process.kill()
        self._process.wait(END_SECONDS)

    def _accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True
