"""A cluster for the tests of the console, with an operator who has a password of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from atalanta.client import Connection, Message, connect
from tests.cli.calls import Cli
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

USER, PASSWORD = "operator", "a good password for the console"
Nodes = list[BrokerProcess]


def shaping(index: int, ports: list[int]) -> Shape:
    """All know all; each message stays where it is sent, so that every number is known."""
    others = tuple(port for port in ports if port != ports[index])
    return Shape(Cluster(others, load_balancing="OFF"), own="configuration-changes = true\n")


@contextmanager
def console_nodes(brokers: Lineup, kinds: str) -> Iterator[Nodes]:
    """Nodes whose operator has a password of its own, each with a link to each other one."""
    found = brokers.cluster(kinds, shaping)
    for node in found:
        (node.folder / "etc" / "artemis-users.properties").write_text(f"{USER} = {PASSWORD}\n")
        (node.folder / "etc" / "artemis-roles.properties").write_text(f"amq = {USER}\n")
    try:
        for node in found:
            node.launch()
        for node in found:
            node.await_ready()
        until("all forward to all", lambda: linked(found))
        yield found
    finally:
        for node in found:
            node.close()


def at(node: BrokerProcess) -> str:
    return f"127.0.0.1:{node.port}"


def cli(node: BrokerProcess) -> Cli:
    found = Cli(f"tcp://{at(node)}")
    found.environment |= {"ATALANTA_USER": USER, "ATALANTA_PASSWORD": PASSWORD}
    return found


def picture(node: BrokerProcess) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cli(node)("topology", at(node), "--wait", "0", "--json"))
    return found


def linked(nodes: Nodes) -> bool:
    """Has everybody a link to everybody else?"""
    links = [link for link in picture(nodes[0])["links"] if link["linked"]]
    return len(links) == len(nodes) * (len(nodes) - 1)


@asynccontextmanager
async def client(node: BrokerProcess, options: str = "") -> AsyncIterator[Connection]:
    async with connect(f"tcp://{at(node)}?stay=true{options}", user=USER, password=PASSWORD) as found:
        yield found


async def fill(node: BrokerProcess, queue: str, messages: list[Message]) -> None:
    async with client(node) as connection:
        await connection.create_queue(queue, routing="anycast", ignore_existing=True)
        producer = await connection.producer(f"{queue}::{queue}")
        for message in messages:
            await producer.send(message)


async def count(node: BrokerProcess, queue: str) -> int:
    async with client(node) as connection:
        return int((await connection.query_queue(queue)).message_count)


def texts(number: int, first: int = 0) -> list[Message]:
    return [Message(text=f"body {each}", properties={"number": each}) for each in range(first, first + number)]
