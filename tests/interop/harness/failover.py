"""A JVM whose JMS clients send and receive with duplicate ids (Failover.java) while their nodes come and go."""

from __future__ import annotations

from dataclasses import dataclass

from .java_program import JavaProgram
from .jms import PASSWORD, USER, JmsError, until


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

    def working(self, count: int) -> None:
        """Waits until `count` more messages are confirmed."""
        wanted = self.counts().confirmed + count
        until(f"{count} more are confirmed", lambda: self.counts().confirmed >= wanted, 60)

    def over(self) -> None:
        """Ends the load. Nothing is lost, nothing came again after it was taken."""
        self.quiet()
        until("everything confirmed has arrived", lambda: self.counts().lost == 0, 40)
        counts = self.counts()
        assert counts.doubled == 0, counts
        print(counts)

    def _asked(self, line: str) -> Counts:
        self._tell(line)
        return Counts(*map(int, self._line().split("\t")))

    def _line(self) -> str:
        line = self._answered()
        if not line:
            raise JmsError("the JMS clients ended, or do not answer")
        return line.rstrip("\n")
