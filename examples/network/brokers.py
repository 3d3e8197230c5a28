"""The three brokers as processes: each runs on a copy of its activemq.xml."""

from __future__ import annotations

import asyncio
from pathlib import Path

from examples.flights.broker_process import BrokerProcess, check_port
from examples.network.places import PLACES, Place


class Broker(BrokerProcess):
    """The broker of a place, with its folder and its log in `out`."""

    def __init__(self, place: Place, out: Path) -> None:
        name = place.name
        activemq_xml = place.conf / "activemq.xml"
        super().__init__(f"broker {name}", activemq_xml, out / "brokers" / name, out / "logs" / f"{name}.log")
        self.place = place


class Brokers:
    """All brokers, by name."""

    def __init__(self, out: Path) -> None:
        self.by_name = {place.name: Broker(place, out) for place in PLACES}

    def prepare(self) -> None:
        """Copies the configurations. Errors: ProcessFailed if somebody listens at the port of a broker already."""
        for broker in self.by_name.values():
            check_port(broker.place.port, broker.place.name)
            broker.prepare()

    def of_zone(self, zone: str) -> list[Broker]:
        return [broker for broker in self.by_name.values() if broker.place.zone == zone]

    async def start(self) -> None:
        """Starts all at once."""
        await asyncio.gather(*(broker.start() for broker in self.by_name.values()))

    async def stop(self) -> None:
        """Stops all that run."""
        await asyncio.gather(*(broker.stop() for broker in self.by_name.values()))
