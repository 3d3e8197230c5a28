"""Acceptors of a running node: added, moved, removed, stopped and started, seen by clients."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from atalanta.client import ConnectFailed, Connection, ConnectionLost, Message, connect
from atalanta.client.management import Management, ManagementFailed
from atalanta.config.users.users_file import UserFiles
from tests.broker_process import BrokerProcess
from tests.cli.instance_files import change, create
from tests.ports import free_port

pytestmark = pytest.mark.process

ORDERS = '<address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>'
SECOND = '<acceptor name="second">tcp://127.0.0.1:{port}?protocols=CORE{options}</acceptor>\n'
RIGHTS = """<management-message-rbac>true</management-message-rbac>
    <security-enabled>"""
SETTINGS = """<security-setting match="activemq.management.#">
        <permission type="manage" roles="amq,viewers"/><permission type="send" roles="amq,viewers"/>
        <permission type="consume" roles="amq,viewers"/>
        <permission type="createNonDurableQueue" roles="amq,viewers"/>
        <permission type="createAddress" roles="amq,viewers"/>
      </security-setting>
      <security-setting match="atalanta.management.#">
        <permission type="consume" roles="amq,viewers"/>
        <permission type="createNonDurableQueue" roles="amq,viewers"/>
        <permission type="createAddress" roles="amq,viewers"/>
        <permission type="deleteNonDurableQueue" roles="amq,viewers"/>
      </security-setting>
      <security-setting match="mops.#">
        <permission type="view" roles="amq,viewers"/><permission type="edit" roles="amq"/>
      </security-setting>
    </security-settings>"""


async def passes(port: int, text: str) -> bool:
    """Sends and receives a message there; False if nobody listens."""
    try:
        async with asyncio.timeout(20), connect(f"tcp://127.0.0.1:{port}", user="admin", password="admin") as client:
            producer = await client.producer("orders", routing="anycast")
            await producer.send(Message(text=text))
            consumer = await client.consumer("orders")
            message = await consumer.receive(10)
            assert message is not None and message.text == text
            await message.acknowledge()
            return True
    except ConnectFailed:
        return False


async def reload(management: Management) -> None:
    await management.call("broker", "reloadConfigurationFile")


def test_an_added_acceptor_serves_and_a_removed_one_does_not(tmp_path: Path) -> None:
    port, second, third = free_port(), free_port(), free_port()
    path = create(tmp_path / "node", port)
    change(path, "</addresses>", ORDERS)

    async def main(broker: BrokerProcess) -> None:
        async with connect(f"tcp://127.0.0.1:{port}", user="admin", password="admin") as admin:
            management = Management(admin)
            change(path, "</acceptors>", SECOND.format(port=second, options="") + "</acceptors>")
            os.kill(broker.process.pid, signal.SIGHUP)
            async with asyncio.timeout(20):
                while not await passes(second, "added"):
                    await asyncio.sleep(0.05)
            assert await management.get("acceptor.second", "Started") is True
            async with connect(f"tcp://127.0.0.1:{second}", user="admin", password="admin") as stays:
                moved = f"127.0.0.1:{third}?protocols=CORE;connectionTtlMin=9"
                change(path, f"127.0.0.1:{second}?protocols=CORE", moved)
                await reload(management)
                assert await passes(third, "moved")
                assert not await passes(second, "moved")
                assert (await stays.query_queue("orders")).exists, "who came in before stays"
                with socket.socket() as taken:
                    taken.bind(("127.0.0.1", 0))
                    taken.listen()
                    place = taken.getsockname()[1]
                    change(path, f"127.0.0.1:{third}", f"127.0.0.1:{place}")
                    with pytest.raises(ManagementFailed, match="acceptor 'second': cannot listen on"):
                        await reload(management)
                    assert await passes(third, "nothing has changed")
                change(path, SECOND.format(port=place, options=";connectionTtlMin=9"), "")
                await reload(management)
                assert not await passes(third, "removed")
                with pytest.raises(ConnectionLost):
                    async with asyncio.timeout(10):
                        while True:
                            await stays.query_queue("orders")
                            await asyncio.sleep(0.05)
            change(path, "?protocols=CORE,", "?protocols=")
            with pytest.raises(ManagementFailed, match="'artemis' is the last one for CORE"):
                await reload(management)
            assert await passes(port, "it is open")

    with BrokerProcess(path) as broker:
        asyncio.run(main(broker))
        log = broker.log()
        assert "reload_incomplete" not in log and log.count("reload_refused") == 2
        assert "acceptor_started acceptor=second" in log and "acceptor_stopped acceptor=second" in log
        assert broker.end(signal.SIGTERM) == 0


def test_an_operator_stops_and_starts_an_acceptor_and_one_who_only_looks_does_not(tmp_path: Path) -> None:
    port, second = free_port(), free_port()
    path = create(tmp_path / "node", port)
    change(path, "</acceptors>", SECOND.format(port=second, options=";autoStart=false") + "</acceptors>")
    change(path, "</addresses>", ORDERS)
    change(path, "<security-enabled>", RIGHTS)
    change(path, "</security-settings>", SETTINGS)
    UserFiles(path.parent).add("viewer", "viewer", ("viewers",))

    async def lost(client: Connection) -> bool:
        try:
            await client.query_queue("orders")
        except ConnectionLost:
            return True
        return False

    async def main() -> None:
        url = f"tcp://127.0.0.1:{port}"
        async with connect(url, user="admin", password="admin") as admin, connect(
            url, user="viewer", password="viewer"
        ) as looker:
            management, views = Management(admin), Management(looker)
            assert await views.get("acceptor.second", "Started") is False
            for operation in ("start", "stop"):
                with pytest.raises(ManagementFailed, match="EDIT|edit"):
                    await views.call("acceptor.second", operation)
            assert not await passes(second, "closed")
            await management.call("acceptor.second", "start")
            assert await passes(second, "open") and await views.get("acceptor.second", "Started") is True
            async with connect(f"tcp://127.0.0.1:{second}", user="admin", password="admin") as client:
                assert not await lost(client)
                await management.call("acceptor.second", "stop")
                async with asyncio.timeout(20):
                    while not await lost(client):
                        await asyncio.sleep(0.05)
            assert not await passes(second, "closed")
            with pytest.raises(ManagementFailed, match="'artemis' is the last one for CORE"):
                await management.call("acceptor.artemis", "stop")
            await management.call("acceptor.second", "start")
            await management.call("acceptor.artemis", "stop")
            assert await passes(second, "by the other one")
            assert not await passes(port, "closed")
            async with connect(f"tcp://127.0.0.1:{second}", user="admin", password="admin") as other:
                await Management(other).call("acceptor.artemis", "start")
            assert await passes(port, "open again")

    with BrokerProcess(path) as broker:
        asyncio.run(main())
        assert broker.end(signal.SIGTERM) == 0
