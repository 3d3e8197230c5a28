"""The three brokers, their data centres, and the clients of each data centre."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
HERE: Final = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Place:
    """A broker. `conf` is the folder of its activemq.xml."""

    name: str
    zone: str
    port: int

    @property
    def conf(self) -> Path:
        return HERE / self.name / "conf"

    @property
    def address(self) -> str:
        """As the clients show it."""
        return f"{HOST}:{self.port}"


PLACES: Final = (
    Place("north-1", "north", 61731),
    Place("north-2", "north", 61732),
    Place("south-1", "south", 61733),
)


@dataclass(frozen=True)
class Zone:
    """A data centre: its user, the queues that its clients send to and consume, how many clients there are."""

    name: str
    password: str
    sends_to: str
    consumes: str
    clients: int

    @property
    def places(self) -> list[Place]:
        return [place for place in PLACES if place.zone == self.name]

    @property
    def url(self) -> str:
        """The URL of its clients: its own brokers first, to which they come back; the others as the last resort."""
        own = [f"tcp://{place.address}" for place in self.places]
        others = [f"tcp://{place.address}" for place in PLACES if place.zone != self.name]
        options = f"randomize=false&priorityBackup=true&priorityURIs={','.join(own)}&maxReconnectDelay=1000"
        return f"failover:({','.join([*own, *others])})?{options}"


NORTH: Final = Zone("north", "shop", "demo.orders", "demo.receipts", 8)
SOUTH: Final = Zone("south", "warehouse", "demo.receipts", "demo.orders", 4)
ZONES: Final = (NORTH, SOUTH)


def place_at(address: str) -> str:
    """Returns the name of the broker at an address, "" for none."""
    return next((place.name for place in PLACES if place.address == address), "")
