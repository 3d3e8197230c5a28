"""SIGKILL while last values and a ring go through page files: afterwards the newest are there, and come last."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from atalanta.client import Connection, Message, connect
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.ports import free_port

pytestmark = pytest.mark.process

COUNT = 3_000
KEPT = 400
MORE = """
<journal-file-size>256K</journal-file-size>
<addresses><address name="values"><anycast><queue name="values" last-value-key="key"/></anycast></address>
<address name="ring"><anycast><queue name="ring" ring-size="400"/></anycast></address></addresses>
<address-settings><address-setting match="#"><max-size-bytes>60K</max-size-bytes>
<page-size-bytes>20K</page-size-bytes></address-setting></address-settings>
"""


async def send(connection: Connection, numbers: range) -> None:
    for name in ("values", "ring"):
        producer = await connection.producer(name, routing="anycast")
        for number in numbers:
            message = Message(body=bytes(300), properties={"key": str(number % KEPT), "n": number})
            await producer.send_soon(message)
        await producer.drain()


async def numbers_in(connection: Connection, name: str) -> list[int]:
    consumer = await connection.consumer(name, ack="auto")
    found = []
    while (message := await consumer.receive(timeout_s=1.0)) is not None:
        found.append(int(str(message.properties["n"])))
    return found


def page_files(folder: Path) -> int:
    return len([path for path in folder.rglob("*.page") if path.is_file()])


def test_the_newest_are_there_after_a_kill(tmp_path: Path) -> None:
    port = free_port()
    path = write_broker_xml(tmp_path, port, more=MORE)
    url = f"tcp://127.0.0.1:{port}"

    async def fill() -> None:
        async with connect(url) as connection:
            await send(connection, range(COUNT))

    async def drain() -> tuple[list[int], list[int]]:
        async with connect(url) as connection:
            return await numbers_in(connection, "values"), await numbers_in(connection, "ring")

    with BrokerProcess(path) as broker:
        asyncio.run(fill())
        assert page_files(tmp_path) > 1
        assert broker.end(signal.SIGKILL) == -signal.SIGKILL
    with BrokerProcess(path):
        values, ring = asyncio.run(drain())
        kept = list(range(COUNT - KEPT, COUNT))
        assert ring == kept
        # Older ones may have been in files with them; each comes once, and before the newest of its value.
        assert values == sorted(set(values))
        assert sorted({number % KEPT: number for number in values}.values()) == kept
        assert page_files(tmp_path) <= 1
