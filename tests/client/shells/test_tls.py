"""Real nodes that speak TLS: both clients, client certificates, and a cluster without a plain byte."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from atalanta.client import ConnectFailed, ConnectionLost, Message, UriError, connect
from atalanta.client.blocking import connect as connect_blocking
from tests.broker_process import BrokerProcess, refused
from tests.broker_xml import write_broker_xml
from tests.certificates import PASSWORD, Authority
from tests.client.tls_node import ASKING, write_node
from tests.ports import free_port

pytestmark = pytest.mark.process

CLUSTER = """<connectors>
    <connector name="own">tcp://127.0.0.1:{own}?sslEnabled=true;trustStorePath=authority-trust.pem;\
keyStorePath=client.p12;keyStorePassword={password}</connector>
    <connector name="other">tcp://127.0.0.1:{other}?sslEnabled=true;\
trustStorePath=authority-trust.pem;keyStorePath=client.p12;keyStorePassword={password}</connector>
  </connectors>
  <address-settings><address-setting match="#"><redistribution-delay>0</redistribution-delay>
  </address-setting></address-settings>
  <cluster-connections><cluster-connection name="tls"><connector-ref>own</connector-ref>
    <static-connectors><connector-ref>other</connector-ref></static-connectors>
  </cluster-connection></cluster-connections>"""


def test_both_clients_and_who_is_not_believed(tmp_path: Path) -> None:
    port = free_port()
    path = write_node(tmp_path / "a", Authority(), port)
    etc = path.parent
    base = f"tcp://localhost:{port}?sslEnabled=true"
    trusting = f"{base}&trustStorePath={etc / 'authority-trust.p12'}&trustStorePassword={PASSWORD}"
    text = "x" * 300_000

    async def main() -> None:
        async with asyncio.timeout(60), connect(trusting) as connection:
            producer = await connection.producer("orders")
            await producer.send(Message(text=text))
            consumer = await connection.consumer("orders")
            message = await consumer.receive(10)
            assert message is not None and message.text == text
            await message.acknowledge()
        own = ssl.create_default_context(cafile=str(etc / "authority-trust.pem"))
        async with asyncio.timeout(60), connect(f"tcp://localhost:{port}", ssl=own) as connection:
            assert (await connection.query_queue("orders")).exists
        for url in (base, f"tcp://localhost:{port}?callTimeout=500"):
            with pytest.raises((ConnectFailed, ConnectionLost)):
                async with asyncio.timeout(60), connect(url):
                    pass

    with BrokerProcess(path) as broker:
        asyncio.run(main())
        with connect_blocking(trusting) as connection:
            producer = connection.producer("orders")
            for number in range(200):
                producer.send_soon(Message(text=text[: number * 500]))
            producer.drain()
            consumer = connection.consumer("orders", ack="auto")
            for number in range(200):
                message = consumer.receive(10)
                assert message is not None and len(message.text or "") == number * 500
        with pytest.raises(ConnectFailed, match="certificate verify failed"):
            connect_blocking(base)
        with pytest.raises(UriError, match="trustStorePath: .*cannot be read"):
            connect_blocking(f"{base}&trustStorePath=none.pem")
        assert "tls_refused" in broker.log()


def test_a_cluster_whose_nodes_show_certificates(tmp_path: Path) -> None:
    ports = free_port(), free_port()
    folders = tmp_path / "a", tmp_path / "b"
    authority = Authority()
    paths = [
        write_node(
            folder, authority, own, ASKING, CLUSTER.format(own=own, other=other, password=PASSWORD)
        )
        for folder, own, other in zip(folders, ports, reversed(ports), strict=True)
    ]
    etc = paths[0].parent
    urls = [
        f"tcp://127.0.0.1:{port}?sslEnabled=true&trustStorePath={etc / 'authority-trust.pem'}"
        f"&keyStorePath={etc / 'client.p12'}&keyStorePassword={PASSWORD}"
        for port in ports
    ]

    async def main() -> None:
        async with asyncio.timeout(60), connect(urls[0]) as first, connect(urls[1]) as second:
            while len(first.topology) < 2 or len(second.topology) < 2:
                await asyncio.sleep(0.05)
            consumer = await second.consumer("orders")
            producer = await first.producer("orders")
            for number in range(10):
                await producer.send(Message(text=str(number)))
            seen: list[str] = []
            while len(seen) < 10:
                message = await consumer.receive(20)
                assert message is not None
                seen.append(message.text or "")
                await message.acknowledge()
            # In any order: what was sent before the first node knew of the consumer is redistributed.
            assert sorted(seen) == [str(number) for number in range(10)]

    with BrokerProcess(paths[0]), BrokerProcess(paths[1]):
        asyncio.run(main())


def test_a_key_store_that_is_not_supported_keeps_the_node_from_starting(tmp_path: Path) -> None:
    path = write_node(tmp_path / "a", Authority(), free_port(), "keyStoreType=BKS")
    with refused(path) as process:
        assert process.wait() == 78
    assert "acceptor 'artemis': keyStoreType: 'BKS' is not supported" in process.log()


def test_plain_against_tls_is_told_by_both_ends(tmp_path: Path) -> None:
    """In both directions, by both clients; the node's line comes once however often the client tries."""
    plain_port, tls_port = free_port(), free_port()
    secure = write_node(tmp_path / "a", Authority(), tls_port)
    plain = write_broker_xml(tmp_path / "b", plain_port)
    trust = f"sslEnabled=true&trustStorePath={secure.parent / 'authority-trust.p12'}&trustStorePassword={PASSWORD}"
    cases = [
        (secure, f"tcp://localhost:{tls_port}", "add sslEnabled=true", "tls_refused"),
        (plain, f"tcp://localhost:{plain_port}?{trust}", "remove sslEnabled=true", "protocol_error"),
    ]

    async def dial(url: str) -> None:
        async with asyncio.timeout(60), connect(url):
            pass

    for path, url, remedy, event in cases:
        with BrokerProcess(path) as broker:
            for _ in range(2):
                with pytest.raises(ConnectionLost, match=remedy):
                    asyncio.run(dial(url))
                with pytest.raises(ConnectionLost, match=remedy):
                    connect_blocking(url)
            broker.until_logged(event)
            lines = [line for line in broker.log().splitlines() if event in line]
        assert len(lines) == 1, lines
        assert "sslEnabled=true" in lines[0] and "artemis" in lines[0] and "127.0.0.1" in lines[0]
