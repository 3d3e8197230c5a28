"""JMS clients with scheduled, expiring and grouped messages and durable subscriptions while nodes come and go."""

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
    """The clients of one URL: "failover:…" is of OpenWire, any other one for CORE. `version` is activemq-client's.

    `receiving_url` is that of the consumers, if it is another one.
    """

    def __init__(self, version: str, url: str, pause_ms: int = 20, receiving_url: str = "") -> None:
        urls = (url, str(pause_ms), receiving_url or url)
        super().__init__(InstantCounts, "atalanta.openwire.Instants", *urls, classes=openwire_class_path(version))

    def over(self, repeats: bool = False) -> None:
        """Ends the load: each message has come once, in its order, and none before its time. With `repeats` it may have
        come again."""
        counts = self.ended()
        assert (counts.early, counts.disordered) == (0, 0), counts
        assert repeats or counts.doubled == 0, counts
