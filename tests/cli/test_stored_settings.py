"""Settings made by management: at once, after a restart and a reload, in `atalanta check`, and in a damaged file."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from atalanta.client import Connection, Message, MessageDropped, NotAuthorized, connect
from atalanta.client.management import ManagementFailed
from atalanta.config.users.users_file import UserFiles
from atalanta.runtime.process import exit_codes
from tests.broker_process import BrokerProcess, refused
from tests.cli.instance.check_rig import call, told
from tests.cli.instance_files import change, create
from tests.ports import free_port

pytestmark = pytest.mark.process


async def may_send(port: int, address: str) -> bool:
    url = f"tcp://127.0.0.1:{port}"
    async with connect(url, user="anna", password="secret") as anna:
        try:
            async with await anna.producer(address) as producer:
                await producer.send(Message(b"x"))
        except NotAuthorized:
            return False
        except MessageDropped:  # she may not create the queue
            return True
        return True


async def delivery_attempts(admin: Connection) -> int:
    settings = await admin.management().call("broker", "getAddressSettingsAsJSON", "orders.a")
    return int(str(settings).partition('"maxDeliveryAttempts":')[2].partition(",")[0])


def test_settings_last_until_they_are_removed(tmp_path: Path) -> None:
    port = free_port()
    path = create(tmp_path / "node", port)
    change(path, "</addresses>", '<address name="orders.a"><anycast/></address></addresses>')
    UserFiles(path.parent).add("anna", "secret", ("sales",))
    kept = tmp_path / "node" / "data" / "journal" / "management-settings.xml"
    url = f"tcp://127.0.0.1:{port}"

    async def change_all() -> None:
        async with connect(url, user="admin", password="admin") as admin:
            broker = admin.management()
            assert not await may_send(port, "orders.a")
            asked = [
                broker.call("broker", "addSecuritySettings", "orders.#", "sales, amq", *["amq"] * 11),
                admin.management().call(
                    "broker", "addAddressSettings", "orders.#", '{"maxDeliveryAttempts": 3}'
                ),
            ]
            assert (await asyncio.gather(*asked))[1] == '{"maxDeliveryAttempts":3}'
            assert await may_send(port, "orders.a")
            assert await delivery_attempts(admin) == 3
            with pytest.raises(ManagementFailed, match="'SHRED' is none of"):
                text = '{"addressFullMessagePolicy": "SHRED"}'
                await broker.call("broker", "addAddressSettings", "orders.#", text)
            async with connect(url, user="anna", password="secret") as anna:
                with pytest.raises(NotAuthorized):
                    await anna.management().call("broker", "removeSecuritySettings", "orders.#")

    async def remove_all() -> None:
        async with connect(url, user="admin", password="admin") as admin:
            assert await may_send(port, "orders.a") and await delivery_attempts(admin) == 3
            broker = admin.management()
            await broker.call("broker", "reloadConfigurationFile")
            node.until_logged("configuration_reloaded")
            assert await may_send(port, "orders.a") and await delivery_attempts(admin) == 3
            await broker.call("broker", "removeSecuritySettings", "orders.#")
            await broker.call("broker", "removeAddressSettings", "orders.#")
            assert not await may_send(port, "orders.a") and await delivery_attempts(admin) == 10

    with BrokerProcess(path) as node:
        asyncio.run(change_all())
        node.process.kill()
    found = [each for each in call(path) if each["file"] == str(kept)]
    assert sorted((each["level"], each["text"]) for each in found) == [
        ("info", "address-setting 'orders.#' was made by management"),
        ("info", "security-setting 'orders.#' was made by management"),
    ]
    with BrokerProcess(path) as node:
        asyncio.run(remove_all())
        assert node.end(signal.SIGTERM) == 0
    assert not [each for each in call(path) if each["file"] == str(kept)]
    with BrokerProcess(path) as node:
        assert not asyncio.run(may_send(port, "orders.a"))


def test_a_node_does_not_start_without_its_settings(tmp_path: Path) -> None:
    path = create(tmp_path / "node", free_port())
    kept = tmp_path / "node" / "data" / "journal" / "management-settings.xml"
    kept.parent.mkdir(parents=True)
    setting = '<security-setting match="#"><permission type="send" roles="ops"/></security-setting>'
    kept.write_text(f"<core>\n<security-settings>{setting}</security-settings>\n</core>")
    assert told(call(path), "info")[-1:] == [
        "security-setting '#' was made by management, instead of that of broker.xml"
    ]
    [finding] = [each for each in call(path) if "'ops'" in each["text"]]
    assert (finding["file"], finding["line"]) == (str(kept), 2), "no user has this role"
    kept.write_text(kept.read_text()[:-20])
    with refused(path) as node:
        assert node.wait() == exit_codes.BAD_CONFIGURATION
        assert f"{kept}:2: not well-formed XML" in node.log() and "move the file away" in node.log()
    [error] = told(call(path, status=1), "error")
    assert "not well-formed XML" in error


def test_a_node_without_a_data_folder_keeps_settings_until_it_ends(tmp_path: Path) -> None:
    port = free_port()
    path = create(tmp_path / "node", port)
    change(path, "<persistence-enabled>true", "<persistence-enabled>false")

    async def main() -> None:
        async with connect(f"tcp://127.0.0.1:{port}", user="admin", password="admin") as admin:
            broker = admin.management()
            await broker.call("broker", "addAddressSettings", "#", '{"maxDeliveryAttempts": 3}')
            await broker.call("broker", "reloadConfigurationFile")
            node.until_logged("configuration_reloaded")
            assert await delivery_attempts(admin) == 3

    with BrokerProcess(path) as node:
        asyncio.run(main())
    assert not list(tmp_path.glob("**/management-settings.xml"))
