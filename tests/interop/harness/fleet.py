"""A JVM with many JMS connections at work (Fleet.java)."""

from __future__ import annotations

from dataclasses import dataclass

from .java_program import ANSWER_SECONDS, JavaProgram
from .jms import PASSWORD, USER, JmsError
from .node import BrokerProcess

WITHOUT_PAUSE = -1


@dataclass(frozen=True)
class Counts:
    """Counts of messages, then of failed calls and exceptions of consumers.

    `unsure`: the sending call failed. `repeated`: delivered again after the broker confirmed an acknowledgement.
    `unmarked`: delivered again without JMSRedelivered. `redelivered`: again, marked, not confirmed before.
    """

    confirmed: int
    unsure: int
    received: int
    lost: int
    repeated: int
    unmarked: int
    redelivered: int
    failures: int
    consumer_failures: int


class Fleet(JavaProgram):
    """Every connection has the addresses of all nodes, beginning with another one, and `options`.

    A `pause_ms` of WITHOUT_PAUSE: they are in constant use, each in one of several ways (Fleet.java).
    """

    def __init__(
        self, nodes: list[BrokerProcess], options: str, queue: str, connections: int, pause_ms: int
    ) -> None:
        places = [f"tcp://127.0.0.1:{node.port}" for node in nodes]
        turned = [places[index:] + places[:index] for index in range(len(places))]
        urls = [f"({','.join(each)})?{options}" for each in turned]
        super().__init__(
            "Fleet", *urls, "--", USER, PASSWORD, queue, str(connections), str(pause_ms)
        )
        self._answer()

    def quiet(self) -> None:
        """Nobody sends any more."""
        self._ask("quiet")

    def counts(self) -> Counts:
        """What happened so far."""
        return Counts(*map(int, self._ask("counts").split("\t")))

    def _ask(self, line: str) -> str:
        self._tell(line)
        return self._answer()

    def _answer(self) -> str:
        line = self._answered()
        if line is None:
            raise JmsError(f"the fleet said nothing within {ANSWER_SECONDS} s")
        if not line:
            raise JmsError("the fleet ended")
        return line.rstrip("\n")
