"""A JVM whose JMS clients send and receive with duplicate ids (Failover.java) while their nodes come and go."""

from __future__ import annotations

from dataclasses import dataclass

from .java_program import JavaProgram
from .jms import PASSWORD, USER, JmsError


@dataclass(frozen=True)
class Counts:
    """Counts of messages, then of transactions that the client was told were rolled back, and of other failed calls."""

    confirmed: int
    lost: int
    doubled: int
    rolled_back: int
    failed: int


class Failover(JavaProgram):
    """`pairs` of a sender and a receiver at `url`; every second pair works in transactions."""

    def __init__(self, url: str, queue: str, pairs: int = 4, pause_ms: int = 20) -> None:
        super().__init__("Failover", url, USER, PASSWORD, queue, str(pairs), str(pause_ms))
        assert self._line() == "ready"

    def quiet(self) -> Counts:
        """Ends the sending. Returns the counts when all that was begun is confirmed."""
        return self._asked("quiet")

    def counts(self) -> Counts:
        """Returns what happened so far."""
        return self._asked("counts")

    def _asked(self, line: str) -> Counts:
        self._tell(line)
        return Counts(*map(int, self._line().split("\t")))

    def _line(self) -> str:
        line = self._answered()
        if not line:
            raise JmsError("the JMS clients ended, or do not answer")
        return line.rstrip("\n")
