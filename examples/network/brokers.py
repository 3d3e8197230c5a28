"""The three brokers as processes: `atalanta run` on a copy of each activemq.xml."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
from pathlib import Path
from typing import Final

from examples.flights.cluster import NodeFailed, drain, tail
from examples.flights.processes import Child, start_child
from examples.network.places import HOST, PLACES, Place

READY_S: Final = 60.0
STOP_S: Final = 15.0


class Broker:
    """One broker; `folder` has its conf/ and its data."""

    def __init__(self, place: Place, folder: Path, log: Path) -> None:
        self.place = place
        self.folder = folder
        self.log = log
        self._child: Child | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._child is not None

    async def start(self) -> None:
        """Starts the process and waits for its line `ready`. Errors: NodeFailed."""
        command = [sys.executable, "-m", "atalanta", "run", str(self.folder / "conf" / "activemq.xml")]
        child = await start_child(self.place.name, command, self.log, self.folder)
        output = child.process.stdout
        assert output is not None
        line = b""
        try:
            async with asyncio.timeout(READY_S):
                while line := await output.readline():
                    if line.startswith(b"ready"):
                        break
        except TimeoutError:
            line = b""
        if not line:
            await child.kill()
            raise NodeFailed(f"broker {self.place.name} did not get ready\n{tail(self.log)}")
        self._child = child
        self._reader = asyncio.create_task(drain(output))

    async def kill(self) -> None:
        """SIGKILL."""
        child, self._child = self._child, None
        if child is not None:
            await child.kill()
        await self._read_rest()

    async def stop(self) -> None:
        """SIGTERM: the broker ends by itself."""
        child, self._child = self._child, None
        if child is not None:
            await child.terminate(STOP_S)
        await self._read_rest()

    def check(self) -> None:
        """Errors: NodeFailed if the process has ended by itself."""
        child = self._child
        if child is not None and not child.running:
            raise NodeFailed(f"broker {self.place.name} ended, status {child.process.returncode}\n{tail(self.log)}")

    async def _read_rest(self) -> None:
        if self._reader is not None:
            await self._reader
            self._reader = None


class Brokers:
    """All brokers, by name."""

    def __init__(self, out: Path) -> None:
        self.by_name = {
            place.name: Broker(place, out / "brokers" / place.name, out / "logs" / f"{place.name}.log")
            for place in PLACES
        }

    def prepare(self) -> None:
        """Copies the configurations. Errors: NodeFailed if somebody listens at the port of a broker already."""
        for broker in self.by_name.values():
            place = broker.place
            with socket.socket() as probe:
                probe.settimeout(1.0)
                if probe.connect_ex((HOST, place.port)) == 0:
                    raise NodeFailed(f"{place.address}, the port of {place.name}, is in use; does another demo run?")
            shutil.copytree(place.conf, broker.folder / "conf")

    def of_zone(self, zone: str) -> list[Broker]:
        return [broker for broker in self.by_name.values() if broker.place.zone == zone]

    async def start(self) -> None:
        """Starts all at once."""
        await asyncio.gather(*(broker.start() for broker in self.by_name.values()))

    async def stop(self) -> None:
        """Stops all that run."""
        await asyncio.gather(*(broker.stop() for broker in self.by_name.values()))
