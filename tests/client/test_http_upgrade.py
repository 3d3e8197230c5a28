"""Real nodes behind HTTP, as WildFly's are: both clients, and a cluster whose links begin with a request."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from atalanta.client import ConnectionLost, Message, connect
from atalanta.client.blocking import connect as connect_blocking
from tests.broker_process import BrokerProcess
from tests.broker_xml import ORDERS, REDISTRIBUTED, cluster, write_broker_xml
from tests.ports import free_port

pytestmark = pytest.mark.process

UPGRADING = "?httpUpgradeEnabled=true;httpUpgradeEndpoint=artemis"
OPTIONS = "httpUpgradeEnabled=true&httpUpgradeEndpoint=artemis&useTopologyForLoadBalancing=false"


def node(folder: Path, own: int, other: int, upgrade: str = "true") -> BrokerProcess:
    more = cluster(own, [other], options=UPGRADING) + ORDERS + REDISTRIBUTED
    path = write_broker_xml(
        folder, own, folder.name, more, options=f"?httpUpgradeEnabled={upgrade}"
    )
    return BrokerProcess(path)


def test_clients_and_a_cluster_behind_http(tmp_path: Path) -> None:
    ports = [free_port(), free_port()]
    with node(tmp_path / "a", ports[0], ports[1]), node(tmp_path / "b", ports[1], ports[0]):
        with connect_blocking(f"tcp://127.0.0.1:{ports[0]}?{OPTIONS}") as connection:
            producer = connection.producer("orders")
            for number in range(10):
                producer.send(Message(text=f"{number}"))
        # Redistribution: the messages lie at the first node, the consumer comes to the second.
        got = asyncio.run(received(f"tcp://127.0.0.1:{ports[1]}?{OPTIONS}", 10))
    assert got == [f"{number}" for number in range(10)]


async def received(url: str, count: int) -> list[object]:
    async with asyncio.timeout(60), connect(url) as connection:
        consumer = await connection.consumer("orders")
        got: list[object] = []
        while len(got) < count:
            message = await consumer.receive(20)
            assert message is not None, f"only {len(got)} came"
            got.append(message.text)
            await message.acknowledge()
        return got


def test_without_the_option_http_is_refused(tmp_path: Path) -> None:
    own, other = free_port(), free_port()
    with node(tmp_path / "a", own, other, "false"):
        with pytest.raises(ConnectionLost), connect_blocking(f"tcp://127.0.0.1:{own}?{OPTIONS}"):
            pass
        with socket.create_connection(("127.0.0.1", own), 5) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert plain.recv(100) == b""
