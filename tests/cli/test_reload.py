"""A running node takes up changed files: on SIGHUP and by itself, and never half of them."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import pytest

from atalanta.app.configuration_files import read_again, read_files
from atalanta.app.storage import Storage
from atalanta.client import Connection, NotAuthorized, connect
from atalanta.config.users.users_file import UserFiles
from atalanta.runtime.lifecycle.reloader import ReloadRefused
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.certificates import PASSWORD, Authority
from tests.cli.instance_files import change, create
from tests.ports import free_port

pytestmark = pytest.mark.process


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():
            await asyncio.sleep(0.05)


async def exists(connection: Connection, queue: str) -> bool:
    return bool((await connection.query_queue(queue)).exists)


async def refused(connection: Connection, queue: str) -> bool:
    try:
        await connection.create_queue(queue)
    except NotAuthorized:
        return True
    return False


def test_sighup(tmp_path: Path) -> None:
    port = free_port()
    path = create(tmp_path / "node", port, -1)
    url = f"tcp://127.0.0.1:{port}"

    async def main(broker: BrokerProcess) -> None:
        async with connect(url, user="admin", password="admin") as admin:
            added = '<address name="fresh"><anycast><queue name="fresh"/></anycast></address>\n'
            change(path, "</addresses>", f"{added}</addresses>")
            UserFiles(path.parent).add("anna", "secret", ("guests",))
            os.kill(broker.process.pid, signal.SIGHUP)
            await until(lambda: exists(admin, "fresh"))
            async with connect(url, user="anna", password="secret") as anna:
                assert await refused(anna, "hers")
                change(path, 'type="createDurableQueue" roles="amq"',
                       'type="createDurableQueue" roles="amq,guests"')  # fmt: skip
                change(path, 'type="createAddress" roles="amq"',
                       'type="createAddress" roles="amq,guests"')  # fmt: skip
                os.kill(broker.process.pid, signal.SIGHUP)

                async def granted() -> bool:
                    return not await refused(anna, "hers")

                await until(granted)
                UserFiles(path.parent).remove("anna")
                os.kill(broker.process.pid, signal.SIGHUP)
                await until(lambda: refused(anna, "another"))
            with pytest.raises(NotAuthorized):
                async with connect(url, user="anna", password="secret"):
                    pass
            change(path, "</addresses>", "</adresses>")
            os.kill(broker.process.pid, signal.SIGHUP)

            async def told() -> bool:
                return "reload_refused" in broker.log()

            await until(told)
            assert await exists(admin, "fresh")

    with BrokerProcess(path) as broker:
        asyncio.run(main(broker))
        log = broker.log()
        [line] = [line for line in log.splitlines() if "reload_refused" in line]
        assert f"{path}:" in line
        assert log.count("configuration_reloaded") == 3
        assert "reload_incomplete" not in log
        assert broker.end(signal.SIGTERM) == 0


def test_changes_are_noticed_a_new_certificate_as_well(tmp_path: Path) -> None:
    port = free_port()
    path = create(tmp_path / "node", port, 50)
    authority = Authority()
    store = authority.holder("server", "localhost").key_store(path.parent)
    tls = f"?protocols=CORE;sslEnabled=true;keyStorePath=server.p12;keyStorePassword={PASSWORD}"
    change(path, "?protocols=CORE,OPENWIRE,STOMP", tls)
    context = ssl.create_default_context(cafile=str(authority.trust_pem(tmp_path)))
    url = f"tcp://localhost:{port}"

    async def serial() -> int:
        _, writer = await asyncio.open_connection("localhost", port, ssl=context)
        certificate = writer.get_extra_info("peercert")
        writer.close()
        return int(certificate["serialNumber"], 16)

    async def main() -> None:
        async with connect(url, user="admin", password="admin", ssl=context) as connection:
            before = await serial()
            renewed = authority.holder("server", "localhost")
            renewed.key_store(path.parent)

            async def new() -> bool:
                return await serial() == renewed.certificate.serial_number

            await until(new)
            assert before != renewed.certificate.serial_number
            assert not await exists(connection, "none"), "the old connection goes on"
            store.write_bytes(b"damaged")

            async def told() -> bool:
                return "reload_refused" in broker.log()

            await until(told)
            assert await serial() == renewed.certificate.serial_number

    with BrokerProcess(path) as broker:
        asyncio.run(main())


@pytest.mark.parametrize("missing", ["more.xml", "store.pem"])
def test_a_file_that_is_named_before_it_is_there_is_watched(tmp_path: Path, missing: str) -> None:
    path = write_broker_xml(tmp_path, 61_616)
    started = read_files(path)[0]
    text = path.read_text(encoding="utf-8")
    if missing == "more.xml":
        include = '<xi:include href="more.xml" xmlns:xi="http://www.w3.org/2001/XInclude"/>'
        path.write_text(text.replace("</core>", f"{include}</core>"), encoding="utf-8")
    else:
        tls = ":61616?sslEnabled=true;keyStorePath=store.pem"
        path.write_text(text.replace(":61616", tls), encoding="utf-8")
    with pytest.raises(ReloadRefused, match=missing) as caught:
        read_again(started, Storage(UUID(int=1), None))
    assert (path.parent / missing) in caught.value.files
