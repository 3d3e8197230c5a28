"""The three nodes as processes: each runs on a copy of its airport's configuration."""

from __future__ import annotations

import asyncio
from pathlib import Path

from examples.flights.airports import AIRPORTS, Airport
from examples.flights.broker_process import BrokerProcess, check_port


class Cluster:
    """All nodes, by the code of their airport."""

    def __init__(self, out: Path) -> None:
        self.nodes = {airport.code: node_of(airport, out) for airport in AIRPORTS}

    def prepare(self) -> None:
        """Copies the configurations to the instance folders."""
        for node in self.nodes.values():
            node.prepare()

    async def start(self) -> float:
        """Starts all nodes at once; the seconds until the last one is ready."""
        return max(await asyncio.gather(*(node.start() for node in self.nodes.values())))

    async def stop(self) -> None:
        """Stops all nodes gracefully."""
        await asyncio.gather(*(node.stop() for node in self.nodes.values()))


def node_of(airport: Airport, out: Path) -> BrokerProcess:
    """The node of an airport, with its folder and its log in `out`."""
    name = airport.code.lower()
    broker_xml = airport.configuration / "broker.xml"
    return BrokerProcess(f"node {airport.code}", broker_xml, out / "nodes" / name, out / "logs" / f"{name}.log")


def check_ports() -> None:
    """Errors: ProcessFailed if somebody listens at the port of a node already."""
    for airport in AIRPORTS:
        check_port(airport.port, airport.code)
