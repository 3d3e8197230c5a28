"""A JVM whose clients send and receive on their own, while their nodes come and go; it tells its counts when asked."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from .java_program import JavaProgram
from .jms import JmsError, until


class LoadCounts(Protocol):
    """The counts of a load."""

    @property
    def confirmed(self) -> int: ...

    @property
    def lost(self) -> int: ...


Counts = TypeVar("Counts", bound=LoadCounts)


class Load(JavaProgram, Generic[Counts]):
    """The clients of one main class, once they are ready. `counted` makes the counts of the numbers in an answer."""

    def __init__(self, counted: type[Counts], main: str, *arguments: str, classes: str | None = None) -> None:
        super().__init__(main, *arguments, classes=classes)
        self._counted = counted
        while self._line() != "ready":  # a library may write before
            pass

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

    def ended(self) -> Counts:
        """Ends the load, and returns the counts when everything confirmed has arrived."""
        self.quiet()
        try:
            until("everything confirmed has arrived", lambda: self.counts().lost == 0, 40)
        finally:
            counts = self._asked("names")
            print(counts)
        return counts

    def _asked(self, line: str) -> Counts:
        self._tell(line)
        return self._counted(*map(int, self._line().split("\t")))

    def _line(self) -> str:
        line = self._answered()
        if not line:
            raise JmsError("the JMS clients ended, or do not answer")
        return line.rstrip("\n")
