"""The configuration of real nodes, changed by management: what clients see of it, who may, and what a restart keeps."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from atalanta.client import ClientError, Connection, Message, connect
from atalanta.client.management import Management, ManagementFailed
from atalanta.config.users.users_file import UserFiles
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.cli.instance_files import RIGHTS, change, create
from tests.ports import free_port

pytestmark = pytest.mark.process


async def ask(management: Management, operation: str, request: object = None) -> Any:
    """The answer of an operation, read."""
    given = [] if request is None else [json.dumps(request)]
    answer = await management.call("broker", operation, *given)
    assert isinstance(answer, str)
    return json.loads(answer)


async def changed(management: Management, *changes: dict[str, object], digest: str = "") -> Any:
    """The answer to a change of the files as they are."""
    digest = digest or (await ask(management, "listConfiguration"))["digest"]
    return await ask(management, "changeConfiguration", {"digest": digest, "changes": changes, "by": "10.1.1.1"})


async def undone(management: Management, number: int = 0) -> Any:
    """The answer to an undo of the newest change, or of an earlier one."""
    kept = await ask(management, "listConfigurationChanges")
    digest = (await ask(management, "listConfiguration"))["digest"]
    return await ask(management, "undoConfiguration", {"id": kept[number]["id"], "digest": digest})


async def send(connection: Connection, address: str, text: str) -> None:
    """Sends one text."""
    producer = await connection.producer(address, routing="anycast")
    await producer.send(Message(text=text))


def test_an_added_bridge_moves_a_message_and_an_undo_stops_it(tmp_path: Path) -> None:
    port, far = free_port(), free_port()
    path, other = create(tmp_path / "here", port), write_broker_xml(tmp_path / "there", far)
    before = path.read_text()

    async def main(broker: BrokerProcess) -> None:
        near = f"tcp://127.0.0.1:{port}"
        async with connect(near, user="admin", password="admin") as here, connect(f"tcp://127.0.0.1:{far}") as there:
            management = Management(here)
            await here.create_queue("orders", routing="anycast")
            await there.create_queue("orders", routing="anycast")
            target: dict[str, object] = {"host": "127.0.0.1", "port": str(far)}
            answer = await changed(
                management,
                {"action": "add", "kind": "connector", "name": "far", "values": target},
                {
                    "action": "add", "kind": "bridge", "name": "out",
                    "values": {"queue-name": "orders", "static-connectors": ["far"], "retry-interval": "100"},
                },
            )  # fmt: skip
            assert answer["refused"] == "" and answer["written"], answer
            assert answer["now"] == ["connector 'far' is added", "bridge 'out' is added"]
            listed = await ask(management, "listConfiguration")
            [bridge] = [each for each in listed["elements"] if each["kind"] == "bridge"]
            assert (bridge["name"], bridge["state"], listed["permitted"]) == ("out", "started", True)
            await send(here, "orders", "coffee")
            async with await there.consumer("orders") as consumer:
                message = await consumer.receive(30)
                assert message is not None and message.text == "coffee"
                # Undone, after a restart of the node, which has kept the change.
                await here.close()
                broker.end(signal.SIGTERM)
                broker.start()
                broker.wait_ready()
                async with connect(near, user="admin", password="admin") as again:
                    answer = await undone(Management(again))
                    assert answer["refused"] == "" and path.read_text() == before
                    with pytest.raises(ManagementFailed, match="AMQ229067"):
                        await Management(again).get("bridge.out", "Started")
                    [newest, first] = await ask(Management(again), "listConfigurationChanges")
                    assert first["undone"] and first["user"] == "admin" and first["from"] == "10.1.1.1"
                    await send(again, "orders", "tea")
                    assert await consumer.receive(0.3) is None

    with BrokerProcess(other), BrokerProcess(path) as broker:
        asyncio.run(main(broker))
        log = broker.log()
        assert "configuration_changed user=admin from=10.1.1.1" in log and "configuration_change_undone" in log


def test_a_removed_group_is_silent_for_an_editor_and_stays_for_a_viewer(tmp_path: Path) -> None:
    port, place = free_port(), free_port()
    path = create(tmp_path / "node", port)
    change(path, "</security-settings>", RIGHTS)
    rbac = "<management-message-rbac>true</management-message-rbac>"
    change(path, "<security-enabled>", f"{rbac}\n    <security-enabled>")
    UserFiles(path.parent).add("viewer", "viewer", ("viewers",))
    found = f"udp://231.7.7.7:{place}?localBindAddress=127.0.0.1&initialWaitTimeout=1000&refreshTimeout=500"
    group: dict[str, object] = {
        "local-bind-address": "127.0.0.1", "group-address": "231.7.7.7", "group-port": str(place),
        "broadcast-period": "100", "connector-ref": ["self"],
    }  # fmt: skip
    add: dict[str, object] = {"action": "add", "kind": "broadcast-group", "name": "bg", "values": group}
    remove: dict[str, object] = {"action": "remove", "kind": "broadcast-group", "name": "bg"}

    async def heard() -> bool:
        try:
            async with asyncio.timeout(20), connect(found, user="admin", password="admin"):
                return True
        except ClientError:
            return False

    async def main() -> None:
        url = f"tcp://127.0.0.1:{port}"
        async with connect(url, user="admin", password="admin") as admin, connect(
            url, user="viewer", password="viewer"
        ) as looker:
            management, views = Management(admin), Management(looker)
            listed = await ask(views, "listConfiguration")
            assert listed["permitted"] is False and (await ask(views, "listConfigurationChanges")) == []
            for operation in ("changeConfiguration", "previewConfiguration", "undoConfiguration"):
                with pytest.raises(ManagementFailed, match=f"EDIT.*{operation}|{operation}.*EDIT"):
                    await ask(views, operation, {"digest": listed["digest"], "changes": [add]})
            answer = await changed(management, add)
            assert answer["refused"] == "", answer
            assert await heard()
            # Two operators: the second one has read the file before.
            stale = await changed(management, remove, digest=listed["digest"])
            assert "has changed since it was read" in stale["refused"] and "bg" in stale["difference"]
            assert await heard()
            assert (await changed(management, remove))["refused"] == ""
            assert not await heard()
            assert (await undone(management))["refused"] == ""
            assert await heard()

    with BrokerProcess(path):
        asyncio.run(main())


def test_a_file_that_cannot_be_written_keeps_its_text_over_a_reload_and_the_last_acceptor_is_put_back(
    tmp_path: Path,
) -> None:
    port, more = free_port(), free_port()
    path = create(tmp_path / "node", port)
    before = path.read_text()
    os.chmod(path, 0o400)
    acceptor: dict[str, object] = {
        "action": "add", "kind": "acceptor", "name": "more", "values": {"host": "127.0.0.1", "port": str(more)},
    }  # fmt: skip

    async def main(broker: BrokerProcess) -> None:
        async with connect(f"tcp://127.0.0.1:{port}", user="admin", password="admin") as admin:
            management = Management(admin)
            answer = await changed(management, acceptor)
            assert (answer["refused"], answer["written"]) == ("", False)
            assert answer["why_not_written"] == "broker.xml is read-only"
            await management.call("broker", "reloadConfigurationFile")
            async with connect(f"tcp://127.0.0.1:{more}", user="admin", password="admin"):
                pass
            assert f":{more}" in (await ask(management, "downloadConfiguration"))["text"]
            assert path.read_text() == before
            os.chmod(path, 0o600)
            await management.call("broker", "reloadConfigurationFile")
            answer = await changed(
                management,
                {"action": "remove", "kind": "acceptor", "name": "more"},
                {"action": "remove", "kind": "acceptor", "name": "artemis"},
            )
            assert answer["refused"] and not answer["written"]
            assert (await ask(management, "listConfiguration"))["digest"] == answer["digest"]
        async with connect(f"tcp://127.0.0.1:{port}", user="admin", password="admin"):
            pass

    with BrokerProcess(path) as broker:
        asyncio.run(main(broker))
        assert path.read_text() == before
