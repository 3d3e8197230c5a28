"""Real nodes in processes of their own, which a test may kill and start again."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

from atalanta.client import Message, Position, blocking
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.gateway.gateway import Credentials
from tests.broker_process import BrokerProcess, BrokerProcesses
from tests.broker_xml import RETRIES, USE, cluster, permissions, write_broker_xml, write_users
from tests.ports import free_port
from tests.waiting import DEADLINE_S, until

USER, PASSWORD = "spark", "a secret"
QUEUE = "flights::archive"
SETTINGS = """<address-settings>
      <address-setting match="#">
        <auto-create-addresses>false</auto-create-addresses>
        <auto-create-queues>false</auto-create-queues>
      </address-setting>
      <address-setting match="flights.#"><redistribution-delay>0</redistribution-delay></address-setting>
    </address-settings>
    <addresses>
      <address name="flights"><multicast><queue name="archive"/></multicast></address>
      <address name="out"><anycast><queue name="out"/></anycast></address>
    </addresses>
"""


class BrokerNode(BrokerProcess):
    """One `atalanta run`; its data stays in the folder."""

    def __init__(self, folder: Path, port: int, others: Sequence[int]) -> None:
        more = cluster(port, others, RETRIES) + permissions("all", [*USE, "manage"]) + SETTINGS
        super().__init__(write_broker_xml(folder, port, folder.name, more, security=True), port=port)
        write_users(self.broker_xml, {USER: PASSWORD}, {"all": USER})
        self.server = f"127.0.0.1:{port}"
        self.url = f"tcp://{self.server}?stay=true"

    def start(self) -> None:
        """Returns as soon as it accepts."""
        super().start()
        self.wait_ready()

    def kill(self) -> None:
        self.__exit__()

    def stop(self) -> None:
        self.end(signal.SIGTERM)

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


class BrokerCluster(BrokerProcesses[BrokerNode]):
    """Nodes that form one cluster, and run within the block."""

    def __init__(self, folder: Path, count: int) -> None:
        ports = [free_port() for _ in range(count)]
        self.nodes = [
            BrokerNode(folder / f"node-{at}", port, [each for each in ports if each != port])
            for at, port in enumerate(ports)
        ]
        super().__init__(self.nodes)

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

    def waiting(self, queue: str = QUEUE) -> int:
        return sum(node.position(queue).messages for node in self.nodes)

    def wait_until_empty(self, queue: str = QUEUE, timeout_s: float = DEADLINE_S) -> None:
        until(lambda: not self.waiting(queue), lambda: f"{self.waiting(queue)} messages are left", timeout_s)
