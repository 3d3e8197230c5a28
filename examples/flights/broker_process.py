"""A broker as a process: `atalanta run` on a copy of its configuration."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
import time
from pathlib import Path

from examples.flights.processes import ProcessFailed, Program, start_child, tail

HOST = "127.0.0.1"
READY_S = 60.0
STOP_S = 15.0


class BrokerProcess(Program):
    """The broker. `configuration` is its file, and `folder` where it runs: that has a copy of the file's folder."""

    def __init__(self, title: str, configuration: Path, folder: Path, log: Path) -> None:
        super().__init__(title, log, STOP_S)
        self.configuration = configuration
        self.folder = folder

    def prepare(self) -> None:
        """Copies the folder of the configuration."""
        original = self.configuration.parent
        shutil.copytree(original, self.folder / original.name)

    async def start(self) -> float:
        """Starts the broker and waits for its line `ready`; the seconds it took. Errors: ProcessFailed."""
        begun = time.monotonic()
        configuration = self.folder / self.configuration.parent.name / self.configuration.name
        command = [sys.executable, "-m", "atalanta", "run", str(configuration)]
        self._child = await start_child(self.title, command, self.log, self.folder)
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
            raise ProcessFailed(f"{self.title} did not get ready\n{tail(self.log)}")
        self._reader = asyncio.create_task(drain(output))
        return time.monotonic() - begun


def check_port(port: int, name: str) -> None:
    """Errors: ProcessFailed if somebody listens at the port of the broker already."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        if probe.connect_ex((HOST, port)) == 0:
            raise ProcessFailed(f"{HOST}:{port}, the port of {name}, is in use; does another demo run?")


async def drain(output: asyncio.StreamReader) -> None:
    """Reads what nobody wants, so that the pipe does not fill up."""
    while await output.read(1 << 16):
        pass
