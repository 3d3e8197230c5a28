"""`artemis user …` on a running node: the changed user logs in at once, and after a crash."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.client import ManagementFailed, NotAuthorized, connect
from tests.broker_process import BrokerProcess
from tests.ports import free_port

pytestmark = pytest.mark.process


def test_users_change_while_the_node_runs(tmp_path: Path) -> None:
    port = free_port()
    words = ["create", str(tmp_path / "node"), "--port", str(port), "--password", "admin"]
    result = CliRunner().invoke(application, words)
    assert result.exit_code == 0, result.output
    path = tmp_path / "node" / "etc" / "broker.xml"
    url = f"tcp://127.0.0.1:{port}"

    async def operate(user: str, password: str, operation: str, *given: object) -> object:
        async with connect(url, user=user, password=password) as connection:
            return await connection.management().call("broker", operation, *given)

    async def change() -> None:
        await operate("admin", "admin", "addUser", "anna", "säge", "amq", False)
        await operate("admin", "admin", "addUser", "bert", "pw", "guests", False)
        listed = await operate("anna", "säge", "listUser", "")
        assert isinstance(listed, str)
        assert {"username": "anna", "roles": ["amq"]} in json.loads(listed)
        with pytest.raises(ManagementFailed, match="AMQ229223"):
            await operate("anna", "säge", "addUser", "bert", "pw", "amq", False)
        with pytest.raises(NotAuthorized):
            await operate("bert", "pw", "addUser", "carl", "pw", "amq", False)
        await operate("anna", "säge", "resetUser", "bert", "other", "amq", False)
        with pytest.raises(NotAuthorized):
            await operate("bert", "pw", "listUser", "")
        async with connect(url, user="bert", password="other") as bert:
            await bert.create_queue("his")
            await asyncio.gather(
                *(
                    operate("admin", "admin", "addUser", f"user{number}", "pw", "amq", False)
                    for number in range(10)
                )
            )
            await operate("admin", "admin", "removeUser", "bert")
            with pytest.raises(NotAuthorized):
                await bert.create_queue("another")

    async def remained() -> None:
        for number in range(10):
            await operate(f"user{number}", "pw", "listUser", "")
        with pytest.raises(NotAuthorized):
            await operate("bert", "other", "listUser", "")

    with BrokerProcess(path) as broker:
        asyncio.run(change())
        broker.end(signal.SIGKILL)
    with BrokerProcess(path):
        asyncio.run(remained())
