"""Broadcast groups and cluster connections of real nodes, changed by files and by management, with few rights too."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from atalanta.client import ClientError, Message, connect
from atalanta.client.management import Management, ManagementFailed
from atalanta.config.users.users_file import UserFiles
from tests.broker_process import BrokerProcess
from tests.cli.instance_files import RIGHTS, change, create
from tests.ports import free_port

pytestmark = pytest.mark.process

GROUP = """<broadcast-groups><broadcast-group name="bg"><local-bind-address>127.0.0.1</local-bind-address>
      <group-address>231.7.7.7</group-address><group-port>{port}</group-port>
      <broadcast-period>100</broadcast-period><connector-ref>own</connector-ref></broadcast-group></broadcast-groups>
    """
CONNECTOR = '<connectors><connector name="own">tcp://127.0.0.1:{port}</connector></connectors>\n    '


def test_a_client_finds_a_node_by_an_added_group_and_none_by_a_removed_or_stopped_one(tmp_path: Path) -> None:
    port, place = free_port(), free_port()
    path = create(tmp_path / "node", port)
    change(path, "</security-settings>", RIGHTS)
    rbac = "<management-message-rbac>true</management-message-rbac>"
    change(path, "<security-enabled>", f"{rbac}\n    <security-enabled>")
    UserFiles(path.parent).add("viewer", "viewer", ("viewers",))
    text = path.read_text()
    found = f"udp://231.7.7.7:{place}?localBindAddress=127.0.0.1&initialWaitTimeout=1000&refreshTimeout=500"
    url = f"tcp://127.0.0.1:{port}"

    async def heard() -> bool:
        try:
            async with asyncio.timeout(20), connect(found, user="admin", password="admin") as client:
                producer = await client.producer("orders", routing="anycast")
                await producer.send(Message(text="coffee"))
            return True
        except ClientError:
            return False

    async def main(broker: BrokerProcess) -> None:
        async with connect(url, user="admin", password="admin") as admin, connect(
            url, user="viewer", password="viewer"
        ) as looker:
            management, views = Management(admin), Management(looker)
            assert not await heard()
            change(path, "<acceptors>", CONNECTOR.format(port=port) + GROUP.format(port=place) + "<acceptors>")
            os.kill(broker.process.pid, signal.SIGHUP)
            async with asyncio.timeout(20):
                while not await heard():
                    await asyncio.sleep(0.05)
            assert await views.get("broadcastgroup.bg", "Started") is True
            with pytest.raises(ManagementFailed, match="EDIT"):
                await views.call("broadcastgroup.bg", "stop")
            await management.call("broadcastgroup.bg", "stop")
            assert not await heard()
            await management.call("broadcastgroup.bg", "start")
            assert await heard()
            path.write_text(text)
            await management.call("broker", "reloadConfigurationFile")
            assert not await heard()
            with pytest.raises(ManagementFailed, match="AMQ229067"):
                await views.get("broadcastgroup.bg", "Started")

    with BrokerProcess(path) as broker:
        asyncio.run(main(broker))
        assert "reload_incomplete" not in broker.log()
        assert broker.end(signal.SIGTERM) == 0
