"""The example of docs/guide/zones.md, as it is written there, with other ports and a shorter time."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
from pathlib import Path

import pytest

from atalanta.client import ClientError, Connection, Message, connect
from tests.broker_process import BrokerProcess, BrokerProcesses
from tests.ports import free_port
from tests.source_tree import ROOT
from tests.waiting import reached

PAGE = ROOT / "docs" / "guide" / "zones.md"
NODES = {"east-1": "61616", "east-2": "61617", "west-1": "61618"}
CLIENTS = 6
QUEUE = "orders"

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]


class Cluster:
    """The three nodes of the page."""

    def __init__(self, folder: Path) -> None:
        text = PAGE.read_text(encoding="utf-8")
        self.ports = {name: free_port() for name in NODES}
        (broker_xml,) = re.findall(r"```xml\n(<configuration.*?)```", text, re.DOTALL)
        (toml,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
        toml = toml.replace("zone-stability-time = 30000", "zone-stability-time = 2000")
        self.python_url, self.jms_url = map(self.own, re.findall(r"^    (\(tcp://.*)$", text, re.MULTILINE))
        self.nodes: dict[str, BrokerProcess] = {}
        for name, port in NODES.items():
            etc = folder / name / "etc"
            etc.mkdir(parents=True)
            changed = broker_xml.replace("<name>east-1<", f"<name>{name}<", 1)
            changed = changed.replace("<connector-ref>east-1<", f"<connector-ref>{name}<", 1)
            changed = changed.replace('"artemis">tcp://127.0.0.1:61616', f'"artemis">tcp://127.0.0.1:{port}')
            (etc / "broker.xml").write_text(self.own(changed))
            zone = name.partition("-")[0]
            (etc / "atalanta.toml").write_text(toml.replace('zone = "east"', f'zone = "{zone}"', 1))
            self.nodes[name] = BrokerProcess(etc / "broker.xml")

    def own(self, text: str) -> str:
        """The text with the ports of this run."""
        by_text = {port: str(self.ports[name]) for name, port in NODES.items()}
        return re.sub("|".join(by_text), lambda found: by_text[found.group()], text)

    async def start(self, *names: str) -> None:
        for name in names:
            self.nodes[name].start()
        for name in names:
            await asyncio.to_thread(self.nodes[name].wait_ready)

    async def end(self, number: signal.Signals, *names: str) -> None:
        for name in names:
            await asyncio.to_thread(self.nodes[name].end, number)

    def places(self, connections: list[Connection]) -> list[int]:
        """Returns the number of clients of each node."""
        at = [each.server.port for each in connections if each.connected and each.server is not None]
        return [at.count(self.ports[name]) for name in NODES]


class Work:
    """One client sends and receives until it is told to end."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.sending = True
        self.confirmed: list[str] = []

    async def send(self, connection: Connection) -> None:
        async with await connection.producer(QUEUE, routing="anycast") as producer:
            while self.sending:
                text = f"{self.number}/{len(self.confirmed)}"
                await producer.send(Message(text))
                self.confirmed.append(text)
                await asyncio.sleep(0.05)


async def receive(connection: Connection, received: set[str]) -> None:
    async with await connection.consumer(QUEUE) as consumer:
        while True:
            message = await consumer.receive(1)
            if message is not None:
                received.add(message.text or "")
                with contextlib.suppress(ClientError):
                    await message.acknowledge()


def test_clients_stay_in_their_zone_leave_it_when_it_is_away_and_return(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    with BrokerProcesses(list(cluster.nodes.values())):
        asyncio.run(day(cluster))


async def day(cluster: Cluster) -> None:
    """A rolling restart, the loss of the zone `east`, and its return."""
    await cluster.start(*NODES)
    async with contextlib.AsyncExitStack() as stack:
        connections = [
            await stack.enter_async_context(connect(cluster.python_url)) for _ in range(CLIENTS)
        ]

        def at_home() -> bool:
            east_1, east_2, west = cluster.places(connections)
            return (east_1, east_2, west) in ((3, 3, 0), (2, 4, 0), (4, 2, 0))

        received: set[str] = set()
        works = [Work(number) for number in range(CLIENTS)]
        async with asyncio.TaskGroup() as group:
            sending = [
                group.create_task(work.send(each)) for work, each in zip(works, connections, strict=True)
            ]
            receiving = [group.create_task(receive(each, received)) for each in connections]
            await reached(at_home, f"all in the east: {cluster.places(connections)}")
            for name in NODES:
                await cluster.end(signal.SIGTERM, name)
                await cluster.start(name)
                await reached(at_home, "all are back in the east after a restart")
            await cluster.end(signal.SIGKILL, "east-1", "east-2")
            await reached(lambda: cluster.places(connections) == [0, 0, CLIENTS], "all are in the west")
            await cluster.start("east-1", "east-2")
            await reached(at_home, "all are back in the east")
            for work in works:
                work.sending = False
            await asyncio.gather(*sending)
            confirmed = {text for work in works for text in work.confirmed}
            await reached(lambda: confirmed <= received, "every confirmed message is received")
            for task in receiving:
                task.cancel()
        assert len(confirmed) > 100
