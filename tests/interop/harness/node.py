"""What both kinds of broker process have in common: a folder, a port, start, stop, kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path

from .broker_xml import Shape, broker_xml, roles_properties, users_properties

START_SECONDS = 60.0
STOP_SECONDS = 40.0
ENDED_PROCESSES_WAIT_SECONDS = 10.0


class BrokerFailed(RuntimeError):
    """A broker process did not start, or ended by itself; the message holds the end of its log."""


class BrokerProcess(ABC):
    """A broker in a folder of its own. Subclasses say how it is prepared and started."""

    kind = ""

    def __init__(self, folder: Path, name: str, port: int) -> None:
        self.folder = folder
        self.name = name
        self.port: int = port
        self.log = folder / "run-0.log"
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """A JMS URL whose clients stay at this node."""
        return f"tcp://127.0.0.1:{self.port}?useTopologyForLoadBalancing=false"

    @property
    def pid(self) -> int:
        """The process id; raises when it does not run."""
        if self._process is None:
            raise BrokerFailed(f"{self.kind} node {self.name} is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def configure(self, shape: Shape | None = None) -> None:
        """Creates the instance and writes its broker.xml and users."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self._create()
        etc = self.folder / "etc"
        etc.mkdir(parents=True, exist_ok=True)
        (etc / "broker.xml").write_text(self._broker_xml(shape))
        if shape is not None and shape.own:
            (etc / "atalanta.toml").write_text(shape.own)
        (etc / "artemis-users.properties").write_text(users_properties())
        (etc / "artemis-roles.properties").write_text(roles_properties())

    def start(self) -> None:
        """Starts it and returns when it accepts connections."""
        self.launch()
        self.await_ready()

    def await_ready(self) -> None:
        """Returns when what `launch` started accepts connections."""
        process = self._process
        assert process is not None
        deadline = time.monotonic() + START_SECONDS
        while not self.accepts():
            if process.poll() is not None:
                raise BrokerFailed(self._report(f"ended with status {process.returncode}"))
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerFailed(self._report(f"accepted nothing within {START_SECONDS} s"))
            time.sleep(0.05)

    def launch(self) -> subprocess.Popen[bytes]:
        """Starts it and does not wait."""
        self._starts += 1
        self.log = self.folder / f"run-{self._starts}.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, **self._environment()},
                start_new_session=True,
            )
        return self._process

    def accepts(self) -> bool:
        """Whether a connection is accepted and the log says that it is ready."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return self._ready()

    def stop(self) -> None:
        """Stops it gracefully (SIGTERM) and waits for its end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, as a crash of the machine's process."""
        self._end(signal.SIGKILL)

    def await_end(self) -> int:
        """Waits until the process has ended by itself. Returns its status."""
        process = self._process
        if process is None:
            raise BrokerFailed(f"{self.kind} node {self.name} is not running")
        status = process.wait(STOP_SECONDS)
        self._process = None
        return status

    def close(self) -> None:
        """Ends the process if it still runs."""
        if self._process is not None:
            self.kill()

    def tail(self, lines: int = 25) -> str:
        """The end of its log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _end(self, number: signal.Signals) -> None:
        process = self._process
        if process is None:
            raise BrokerFailed(f"{self.kind} node {self.name} is not running")
        if process.poll() is not None and process.returncode not in (0, -number):
            self._process = None
            raise BrokerFailed(self._report(f"had ended by itself, status {process.returncode}"))
        process.send_signal(number)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(ENDED_PROCESSES_WAIT_SECONDS)
            raise BrokerFailed(self._report(f"ignored {number.name} for {STOP_SECONDS} s")) from None
        finally:
            self._process = None

    def _ready(self) -> bool:
        return True

    def _report(self, what: str) -> str:
        return f"{self.kind} node {self.name} {what}; the end of {self.log}:\n{self.tail()}"

    def _broker_xml(self, shape: Shape | None) -> str:
        return broker_xml(self.name, self.port, shape)

    @abstractmethod
    def _create(self) -> None: ...

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def _environment(self) -> dict[str, str]: ...
