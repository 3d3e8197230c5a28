"""A real `atalanta run` process for tests: started, watched, stopped or killed, never left."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.waiting import DEADLINE_S, until

BROKER_XML = """<?xml version="1.0" encoding="UTF-8"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>{name}</name>
    <security-enabled>false</security-enabled>
    <journal-directory>data/journal</journal-directory>
    <acceptors>
      <acceptor name="artemis">tcp://127.0.0.1:{port}</acceptor>
    </acceptors>
    {more}
  </core>
</configuration>
"""


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_broker_xml(folder: Path, port: int, name: str = "test", more: str = "") -> Path:
    """`folder`/etc/broker.xml with one acceptor; `more` goes into <core> as it is."""
    path = folder / "etc" / "broker.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(BROKER_XML.format(name=name, port=port, more=more), encoding="utf-8")
    return path


class BrokerProcess:
    """`with BrokerProcess(broker_xml) as broker:` is ready inside the block and gone after it."""

    def __init__(self, broker_xml: Path, *arguments: str) -> None:
        self.broker_xml = broker_xml
        self.log_path = broker_xml.parent / "stderr.log"
        self.ready_line = ""
        # Where it runs; then it is given the name of its file from there.
        self.folder: Path | None = None
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Starts it without waiting; the log of an earlier run is kept in front."""
        file = self.broker_xml if self.folder is None else self.broker_xml.relative_to(self.folder)
        command = [sys.executable, "-m", "atalanta", "run", str(file), *self._arguments]
        with self.log_path.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True, cwd=self.folder
            )

    def wait_ready(self) -> str:
        """The ready line; AssertionError with the log when the process ends or is too slow."""
        process = self.process
        assert process.stdout is not None
        watchdog_at = time.monotonic() + DEADLINE_S
        os.set_blocking(process.stdout.fileno(), False)
        text = ""
        while not text.endswith("\n"):
            with contextlib.suppress(BlockingIOError, TypeError):
                text += process.stdout.read() or ""
            assert process.poll() is None, f"ended with {process.returncode}:\n{self.log()}"
            assert time.monotonic() < watchdog_at, f"not ready in {DEADLINE_S} s:\n{self.log()}"
            time.sleep(0.01)
        assert text.startswith("ready"), text
        self.ready_line = text.strip()
        return self.ready_line

    @property
    def process(self) -> subprocess.Popen[str]:
        """The running or ended process."""
        assert self._process is not None, "not started"
        return self._process

    def log(self) -> str:
        """All of stderr so far, of every start."""
        return self.log_path.read_text(encoding="utf-8") if self.log_path.exists() else ""

    def until_logged(self, text: str) -> None:
        """Until some line of the log has `text`; AssertionError with the log when the process is too slow."""
        until(lambda: text in self.log(), lambda: f"{text} not logged:\n{self.log()}")

    def end(self, number: signal.Signals) -> int:
        """Sends a signal and waits; the exit status (negative: ended by that signal)."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Waits for the end by itself; the exit status."""
        return self.process.wait(DEADLINE_S)

    def __enter__(self) -> BrokerProcess:
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.kill()
            process.wait(DEADLINE_S)
        if process.stdout is not None:
            process.stdout.close()


@contextlib.contextmanager
def refused(broker_xml: Path) -> Iterator[BrokerProcess]:
    """A process that is expected to end by itself."""
    broker = BrokerProcess(broker_xml)
    broker.start()
    try:
        yield broker
    finally:
        broker.__exit__(None, None, None)
