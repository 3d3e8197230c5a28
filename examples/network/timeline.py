"""What happened: where each client was, which brokers were away, the phases and their messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Phase:
    """A part of the run. Times are seconds since its begin.

    `places` has the broker of each client when the phase had settled, by the client's name; `away` the brokers that
    did not run then. `messages` are the counts of Ledger.java, with bridges as "north-1>south-1".
    """

    name: str
    begun: float
    places: dict[str, str] = field(default_factory=dict)
    away: tuple[str, ...] = ()
    messages: dict[str, int] = field(default_factory=dict)

    def clients_at(self, place: str, zones: dict[str, str]) -> Counter[str]:
        """Returns how many clients of each zone were at a broker."""
        return Counter(zones[name] for name, there in self.places.items() if there == place)


@dataclass
class Outage:
    """A time without a broker."""

    place: str
    begun: float
    killed: bool
    ended: float = 0.0


@dataclass
class Timeline:
    """`zones` has the zone of each client; `samples` the brokers of all clients, "" for none, by seconds."""

    zones: dict[str, str]
    samples: list[tuple[float, dict[str, str]]] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)

    def add(self, at: float, places: dict[str, str]) -> None:
        """Records where the clients are."""
        self.samples.append((at, places))

    def now(self) -> dict[str, str]:
        """Returns where the clients were last."""
        return self.samples[-1][1] if self.samples else {}

    def total(self, count: str) -> int:
        """Returns the sum of a count of messages over the phases."""
        return sum(phase.messages.get(count, 0) for phase in self.phases)

    def stays(self, client: str) -> list[tuple[float, float, str]]:
        """Returns the times of a client at its brokers: begin, end, broker."""
        found: list[tuple[float, float, str]] = []
        for at, places in self.samples:
            place = places.get(client, "")
            if found and found[-1][2] == place:
                found[-1] = (found[-1][0], at, place)
            else:
                if found:
                    found[-1] = (found[-1][0], at, found[-1][2])
                found.append((at, at, place))
        return [stay for stay in found if stay[2]]
