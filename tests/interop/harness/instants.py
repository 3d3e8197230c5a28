"""JMS clients that send scheduled, expiring and grouped messages (Instants.java) while their nodes come and go."""

from __future__ import annotations

from dataclasses import dataclass

from .load import Load
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


class Instants(Load[InstantCounts]):
    """The clients of one URL: "failover:…" is of OpenWire, any other one of CORE. `version` is activemq-client's."""

    def __init__(self, version: str, url: str, pause_ms: int = 20) -> None:
        classes = openwire_class_path(version)
        super().__init__(InstantCounts, "atalanta.openwire.Instants", url, str(pause_ms), classes=classes)

    def over(self) -> None:
        """Ends the load: each message has come once, in its group's order, and none before its time."""
        counts = self.ended()
        assert (counts.doubled, counts.early, counts.disordered) == (0, 0, 0), counts
