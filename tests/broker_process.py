"""A real `atalanta run` process for tests: started, watched, stopped or killed, never left."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, Self, TypeVar

from tests.waiting import DEADLINE_S, until


class BrokerProcess:
    """`with BrokerProcess(broker_xml) as broker:` is ready inside the block and gone after it."""

    def __init__(self, broker_xml: Path, *arguments: str, port: int = 0) -> None:
        """`port` is that of its acceptor, for those who ask the process for it."""
        self.broker_xml = broker_xml
        self.port = port
        self.log_path = broker_xml.parent / "stderr.log"
        self.ready_line = ""
        # Where it runs; then it is given the name of its file from there.
        self.working_directory: Path | None = None
        self.arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self._text = ""

    def start(self) -> None:
        """Starts it without waiting; the log of an earlier run is kept in front."""
        place = self.working_directory
        file = self.broker_xml if place is None else self.broker_xml.relative_to(place)
        command = [sys.executable, "-m", "atalanta", "run", str(file), *self.arguments]
        with self.log_path.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True, cwd=place
            )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._text = ""

    def wait_ready(self) -> str:
        """The ready line; AssertionError with the log when the process ends or is too slow."""
        self._until(lambda: "\n" in self._printed(), f"ready in {DEADLINE_S} s")
        self.ready_line = self.lines()[0].strip()
        assert self.ready_line.startswith("ready"), self.ready_line
        return self.ready_line

    def lines(self) -> list[str]:
        """The lines of stdout of this run so far."""
        return self._printed().splitlines()

    def role(self) -> str:
        """`active` or `passive`, as the last line says; `` before the first."""
        found = [re.search(r"role=(\w+)", line) for line in self.lines()]
        return found[-1].group(1) if found and found[-1] else ""

    def until_role(self, role: str) -> None:
        """Until the process says that it has this role; AssertionError with the log when it ends or is too slow."""
        self._until(lambda: self.role() == role, role)

    def _printed(self) -> str:
        stdout = self.process.stdout
        assert stdout is not None
        with contextlib.suppress(BlockingIOError, TypeError):
            self._text += stdout.read() or ""
        return self._text

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        def runs_and_holds() -> bool:
            status = self.process.poll()
            assert status is None, f"ended with {status}:\n{self.log()}"
            return holds()

        until(runs_and_holds, lambda: f"not {what}:\n{self.log()}")

    @property
    def process(self) -> subprocess.Popen[str]:
        """The running or ended process."""
        assert self._process is not None, "not started"
        return self._process

    @property
    def instance(self) -> Path:
        """The folder of the instance."""
        return self.broker_xml.parent.parent

    @property
    def data(self) -> Path:
        """Its data folders."""
        return self.instance / "data"

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def broker(self) -> int:
        """The process id of the broker, which a guard may have started."""
        return self.process.pid

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
        if self._process is None:
            return
        if self.running:
            os.kill(self.broker, signal.SIGCONT)  # a test may have stopped it
            self.process.kill()
            self.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


Process = TypeVar("Process", bound=BrokerProcess)


class BrokerProcesses(Generic[Process]):
    """Processes that a test starts one by one: `with BrokerProcesses(…) as several:` ends all of them."""

    def __init__(self, processes: Sequence[Process]) -> None:
        self.processes = processes
        servers = ",".join(f"tcp://127.0.0.1:{each.port}" for each in processes)
        self.url = f"({servers})?reconnectAttempts=-1&retryInterval=20"

    def active(self) -> list[Process]:
        """Those that serve now."""
        return [each for each in self.processes if each.running and each.role() == "active"]

    def log(self) -> str:
        """What all of them have logged."""
        return "\n".join(each.log() for each in self.processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        for each in self.processes:
            each.__exit__(None, None, None)


@contextlib.contextmanager
def refused(broker_xml: Path, *arguments: str) -> Iterator[BrokerProcess]:
    """A process that is expected to end by itself."""
    broker = BrokerProcess(broker_xml, *arguments)
    broker.start()
    try:
        yield broker
    finally:
        broker.__exit__(None, None, None)
