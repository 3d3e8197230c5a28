"""Real nodes in processes of their own, which a test may kill and start again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from atalanta.client import Message, Position, blocking
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.gateway.gateway import Credentials

ROOT = Path(__file__).resolve().parents[2]
USER, PASSWORD = "spark", "a secret"
QUEUE = "flights::archive"

BROKER_XML = """\
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>{name}</name>
    <acceptors><acceptor name="core">tcp://127.0.0.1:{port}?protocols=CORE</acceptor></acceptors>
    <connectors>
{connectors}
    </connectors>
    <cluster-user>cluster</cluster-user>
    <cluster-password>cluster secret</cluster-password>
    <cluster-connections>
      <cluster-connection name="all">
        <connector-ref>node-{index}</connector-ref>
        <retry-interval>200</retry-interval>
        <message-load-balancing>ON_DEMAND</message-load-balancing>
        <static-connectors>
{peers}
        </static-connectors>
      </cluster-connection>
    </cluster-connections>
    <security-settings>
      <security-setting match="#">
        <permission type="send" roles="all"/>
        <permission type="consume" roles="all"/>
        <permission type="browse" roles="all"/>
        <permission type="createDurableQueue" roles="all"/>
        <permission type="createAddress" roles="all"/>
        <permission type="createNonDurableQueue" roles="all"/>
        <permission type="manage" roles="all"/>
      </security-setting>
    </security-settings>
    <address-settings>
      <address-setting match="#">
        <auto-create-addresses>false</auto-create-addresses>
        <auto-create-queues>false</auto-create-queues>
      </address-setting>
      <address-setting match="flights.#"><redistribution-delay>0</redistribution-delay></address-setting>
    </address-settings>
    <addresses>
      <address name="flights">
        <multicast><queue name="archive"><durable>true</durable></queue></multicast>
      </address>
      <address name="out">
        <anycast><queue name="out"><durable>true</durable></queue></anycast>
      </address>
    </addresses>
  </core>
</configuration>
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class BrokerNode:
    """One `atalanta run`; its data stays in the folder."""

    def __init__(self, folder: Path, index: int, ports: list[int]) -> None:
        self.folder = folder
        self.server = f"127.0.0.1:{ports[index]}"
        self.process: subprocess.Popen[str] | None = None
        etc = folder / "etc"
        etc.mkdir(parents=True)
        connectors = "\n".join(
            f'<connector name="node-{at}">tcp://127.0.0.1:{port}</connector>'
            for at, port in enumerate(ports)
        )
        peers = "\n".join(
            f"<connector-ref>node-{at}</connector-ref>" for at in range(len(ports)) if at != index
        )
        text = BROKER_XML.format(
            name=folder.name, port=ports[index], index=index, connectors=connectors, peers=peers
        )
        (etc / "broker.xml").write_text(text)
        (etc / "artemis-users.properties").write_text(f"{USER} = {PASSWORD}\n")
        (etc / "artemis-roles.properties").write_text(f"all = {USER}\n")

    def start(self) -> None:
        """Returns as soon as it accepts."""
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "atalanta", "run", str(self.folder / "etc" / "broker.xml")],
                stdout=subprocess.PIPE, stderr=log, text=True, env=environment,
            )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready"), (self.folder / "log").read_text()[-3000:]

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def position(self, queue: str = QUEUE) -> Position:
        gateway = connect(self.server, Credentials(USER, PASSWORD, 5.0, 10.0))
        try:
            return gateway.position(queue)
        finally:
            gateway.close()

    def publish(
        self, texts: list[str], address: str = "flights", routing: str = "multicast"
    ) -> None:
        """Durable text messages, confirmed when this returns; the first letter is a property."""
        with blocking.connect(f"tcp://{self.server}", user=USER, password=PASSWORD) as connection:
            producer = connection.producer(address, routing=routing)
            for text in texts:
                producer.send_soon(Message(text=text, properties={"initial": text[:1]}))
            producer.drain()

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(number)
            process.wait(30)
            if process.stdout is not None:
                process.stdout.close()


class BrokerCluster:
    """Nodes that form one cluster."""

    def __init__(self, folder: Path, count: int) -> None:
        ports = free_ports(count)
        self.nodes = [BrokerNode(folder / f"node-{at}", at, ports) for at in range(count)]

    @property
    def servers(self) -> str:
        return ",".join(node.server for node in self.nodes)

    def start(self) -> None:
        for node in self.nodes:
            node.start()

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def __enter__(self) -> BrokerCluster:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self.kill()

    def waiting(self, queue: str = QUEUE) -> int:
        return sum(node.position(queue).messages for node in self.nodes)

    def wait_until_empty(self, queue: str = QUEUE, timeout_s: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_s
        while self.waiting(queue):
            assert time.monotonic() < deadline, f"{self.waiting(queue)} messages are left"
            time.sleep(0.1)
