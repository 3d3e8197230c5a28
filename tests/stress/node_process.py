"""Nodes that a launcher forks, with planted faults; for tests that start hundreds of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from tests.source_tree import ROOT
from tests.stress.faults import Plan
from tests.waiting import DEADLINE_S, until


class Launcher:
    """The process that forks nodes (tests/stress/launcher.py). `close` ends it and all of them."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.stress.launcher"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip

    def ask(self, request: dict[str, object]) -> int | None:
        """Returns the answer to a request."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        answer: int | None = json.loads(stdout.readline())
        return answer

    def close(self) -> None:
        """Ends the launcher."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.close()
        self._process.wait(DEADLINE_S)
        stdout.close()


class NodeProcess:
    """One node's process at a time for one broker.xml."""

    def __init__(self, launcher: Launcher, broker_xml: Path, folder: Path, *words: str) -> None:
        """Faults happen to files under `folder`; `words` are options of `atalanta run`."""
        self.folder = folder
        self._words = list(words)
        self._launcher = launcher
        self._broker_xml = broker_xml
        self._log = broker_xml.parent / "stderr.log"
        self._out = broker_xml.parent / "stdout.txt"
        self._count = broker_xml.parent / "calls"
        self._hangs = broker_xml.parent / "calls.hangs"
        self._status: int | None = None
        self.pid = 0

    def start(self, plan: Plan | None = None) -> None:
        """Starts it without waiting. Faults happen to files under the folder."""
        assert not self.pid, "it still runs"
        self._out.unlink(missing_ok=True)
        self._hangs.unlink(missing_ok=True)
        wanted = None
        if plan is not None:
            wanted = {**asdict(plan), "folders": [str(self.folder)], "count_file": str(self._count)}
        request = {
            "broker_xml": str(self._broker_xml), "log": str(self._log), "out": str(self._out),
            "words": self._words, "plan": wanted,
        }  # fmt: skip
        self._status = None
        self.pid = self._launcher.ask({"start": request}) or 0

    def ended(self) -> bool:
        """Returns whether the process has ended; `status` is known then."""
        if self.pid and self._status is None:
            self._status = self._launcher.ask({"poll": self.pid})
        return self._status is not None

    def words(self) -> str:
        """Returns what the process has printed."""
        return self._out.read_text() if self._out.exists() else ""

    def until_printed(self, word: str) -> bool:
        """Waits for a word of the output; returns False if the process has ended instead."""
        deadline = time.monotonic() + DEADLINE_S
        while word not in self.words():
            if self.ended():
                return False
            assert time.monotonic() < deadline, f"{word} not printed:\n{self.log()}"
            time.sleep(0.01)
        return True

    def until_ready(self) -> None:
        """Waits until the node serves."""
        assert self.until_printed("ready"), f"ended with {self._status}:\n{self.log()}"

    def wait(self, seconds: float = DEADLINE_S) -> int:
        """Waits for the end; returns the exit status, negative after a signal."""
        until(self.ended, lambda: f"it does not end:\n{self.log()}", seconds)
        assert self._status is not None
        self.pid = 0
        return self._status

    def send_signal(self, number: signal.Signals) -> None:
        """Sends a signal."""
        assert self.pid
        if not self.ended():
            os.kill(self.pid, number)

    def end(self, number: signal.Signals) -> int:
        """Sends a signal and waits for the end."""
        self.send_signal(number)
        return self.wait()

    def hangs(self) -> bool:
        """Returns whether its disk hangs by plan."""
        return self._hangs.exists()

    def hang_no_more(self) -> None:
        """Lets all calls go on."""
        self._hangs.unlink()

    def close(self) -> None:
        """Kills it if it still runs."""
        if self.pid:
            self.send_signal(signal.SIGCONT)
            self.end(signal.SIGKILL)

    def calls(self) -> tuple[int, str]:
        """Returns how many calls were counted, and the last one."""
        text = self._count.read_bytes().split(b"\0", 1)[0].decode() if self._count.exists() else ""
        number, _, name = text.partition(" ")
        return int(number or 0), name

    def log(self) -> str:
        """Returns the log of all starts."""
        return self._log.read_text() if self._log.exists() else ""
