"""JMS clients that send scheduled, expiring and grouped messages (Instants.java) while their nodes come and go."""

from __future__ import annotations

from dataclasses import dataclass

from .java_program import JavaProgram
from .jms import JmsError, until
from .openwire import openwire_class_path

BRIEF = "instants.brief"


@dataclass(frozen=True)
class InstantCounts:
    """Counts of messages; `early` ones came before their delay was over, by `most_early_ms` at most."""

    confirmed: int
    lost: int
    doubled: int
    early: int
    disordered: int
    most_early_ms: int


class Instants(JavaProgram):
    """The clients of one URL: "failover:…" is of OpenWire, any other one of CORE. `version` is activemq-client's."""

    def __init__(self, version: str, url: str, pause_ms: int = 20) -> None:
        classes = openwire_class_path(version)
        super().__init__("atalanta.openwire.Instants", url, str(pause_ms), classes=classes)
        while self._line() != "ready":  # a library may write before
            pass

    def counts(self) -> InstantCounts:
        """Returns what happened so far."""
        return self._asked("counts")

    def working(self, count: int) -> None:
        """Waits until `count` more messages are confirmed."""
        wanted = self.counts().confirmed + count
        until(f"{count} more are confirmed", lambda: self.counts().confirmed >= wanted, 60)

    def over(self) -> InstantCounts:
        """Ends the load: each message has come once, in its group's order, and none before its time."""
        self._asked("quiet")
        until("everything confirmed has arrived", lambda: self.counts().lost == 0, 40)
        counts = self.counts()
        assert (counts.doubled, counts.early, counts.disordered) == (0, 0, 0), counts
        print(counts)
        return counts

    def _asked(self, line: str) -> InstantCounts:
        self._tell(line)
        return InstantCounts(*map(int, self._line().split("\t")))

    def _line(self) -> str:
        line = self._answered()
        if not line:
            raise JmsError("the JMS clients ended, or do not answer")
        return line.rstrip("\n")
