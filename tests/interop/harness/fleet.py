"""A JVM with many JMS connections at work (Fleet.java)."""

from __future__ import annotations

import selectors
import subprocess
from dataclasses import dataclass
from types import TracebackType

from .jms import ANSWER_SECONDS, PASSWORD, USER, JmsError
from .node import BrokerProcess
from .tools import SMALL_JVM, class_path, java

WITHOUT_PAUSE = -1


@dataclass(frozen=True)
class Counts:
    """`unsure`: the call failed, so nobody knows. `repeated`: others that came, or were delivered, more than twice."""

    confirmed: int
    unsure: int
    received: int
    lost: int
    repeated: int
    failures: int
    consumer_failures: int


class Fleet:
    """Every connection has the addresses of all nodes, beginning with another one, and `options`.

    A `pause_ms` of WITHOUT_PAUSE: they are in constant use, each in one of several ways (Fleet.java).
    """

    def __init__(
        self, nodes: list[BrokerProcess], options: str, queue: str, connections: int, pause_ms: int
    ) -> None:
        places = [f"tcp://127.0.0.1:{node.port}" for node in nodes]
        turned = [places[index:] + places[:index] for index in range(len(places))]
        urls = [f"({','.join(each)})?{options}" for each in turned]
        main = [java(), "-Xmx512M", *SMALL_JVM, "-cp", class_path(), "atalanta.interop.Fleet"]
        self._process = subprocess.Popen(
            [*main, *urls, "--", USER, PASSWORD, queue, str(connections), str(pause_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._lines = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._lines.register(self._process.stdout, selectors.EVENT_READ)
        self._answer()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._lines.close()

    def quiet(self) -> None:
        """Nobody sends any more."""
        self._ask("quiet")

    def counts(self) -> Counts:
        """What happened so far."""
        return Counts(*map(int, self._ask("counts").split("\t")))

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        if not self._lines.select(ANSWER_SECONDS):
            raise JmsError(f"the fleet said nothing within {ANSWER_SECONDS} s")
        line = self._process.stdout.readline()
        if not line:
            raise JmsError("the fleet ended")
        return line.rstrip("\n")
