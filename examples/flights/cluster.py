"""The three nodes as processes: `atalanta run` on a copy of each airport's configuration."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
import time
from pathlib import Path

from examples.flights.airports import AIRPORTS, HOST, Airport
from examples.flights.processes import Child, start_child

READY_S = 60.0
STOP_S = 15.0
LOG_LINES = 12
LINE_WIDTH = 300


class NodeFailed(Exception):
    """A node did not start or ended by itself; the text has the end of its log."""


class Node:
    """The node of one airport; its instance folder is `folder`."""

    def __init__(self, airport: Airport, folder: Path, log: Path) -> None:
        self.airport = airport
        self.folder = folder
        self.log = log
        self._child: Child | None = None
        self._reader: asyncio.Task[None] | None = None

    async def start(self) -> float:
        """Starts the node and waits for its line `ready`; the seconds it took. Errors: NodeFailed."""
        begun = time.monotonic()
        broker_xml = self.folder / "etc" / "broker.xml"
        command = [sys.executable, "-m", "atalanta", "run", str(broker_xml)]
        self._child = await start_child(self.airport.code, command, self.log, self.folder)
        output = self._child.process.stdout
        assert output is not None
        try:
            async with asyncio.timeout(READY_S):
                while line := await output.readline():
                    if line.startswith(b"ready"):
                        break
        except TimeoutError:
            line = b""
        if not line:
            await self.kill()
            raise NodeFailed(f"node {self.airport.code} did not get ready\n{tail(self.log)}")
        self._reader = asyncio.create_task(drain(output))
        return time.monotonic() - begun

    async def kill(self) -> None:
        """SIGKILL."""
        child, self._child = self._child, None
        if child is not None:
            await child.kill()
        await self._stop_reader()

    async def stop(self) -> None:
        """SIGTERM: the node leaves the cluster and ends by itself."""
        child, self._child = self._child, None
        if child is not None:
            await child.terminate(STOP_S)
        await self._stop_reader()

    async def failed(self) -> None:
        """Returns never, raises NodeFailed if the process ends while it should run."""
        while True:
            child = self._child
            if child is not None:
                status = await child.process.wait()
                if child is self._child:
                    text = f"node {self.airport.code} ended, exit status {status}"
                    raise NodeFailed(f"{text}\n{tail(self.log)}")
            await asyncio.sleep(0.1)

    async def _stop_reader(self) -> None:
        """Reads to the end of the pipe, so that nothing of the process is left open."""
        if self._reader is not None:
            await self._reader
            self._reader = None


class Cluster:
    """All nodes, by the code of their airport."""

    def __init__(self, out: Path) -> None:
        self.nodes = {
            airport.code: Node(
                airport, out / "nodes" / airport.code.lower(), out / "logs" / f"{airport.code.lower()}.log"
            )
            for airport in AIRPORTS
        }

    def prepare(self) -> None:
        """Copies the configurations to the instance folders."""
        for node in self.nodes.values():
            shutil.copytree(node.airport.configuration, node.folder / "etc")

    async def start(self) -> float:
        """Starts all nodes at once; the seconds until the last one is ready."""
        return max(await asyncio.gather(*(node.start() for node in self.nodes.values())))

    async def stop(self) -> None:
        """Stops all nodes gracefully."""
        await asyncio.gather(*(node.stop() for node in self.nodes.values()))


def check_ports() -> None:
    """Errors: NodeFailed if somebody listens at the port of a node already."""
    for airport in AIRPORTS:
        with socket.socket() as probe:
            probe.settimeout(1.0)
            if probe.connect_ex((HOST, airport.port)) == 0:
                raise NodeFailed(
                    f"{HOST}:{airport.port}, the port of {airport.code}, is in use; does another demo run?"
                )


async def drain(output: asyncio.StreamReader) -> None:
    """Reads what nobody wants, so that the pipe does not fill up."""
    while await output.read(1 << 16):
        pass


def tail(log: Path) -> str:
    """The last lines of a log, those about errors first of all, with its name."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    telling = [line for line in lines if "Error" in line or "Exception" in line]
    return "\n".join([f"{log}:", *(f"  {line[:LINE_WIDTH]}" for line in (telling or lines)[-LOG_LINES:])])
