"""Three nodes from files of version 1, as `atalanta convert` writes them, are a cluster that shares its queues."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest

from atalanta.cli.commands.files.convert import convert
from atalanta.client import Message, connect
from tests.broker_process import BrokerProcess
from tests.broker_xml import RETRIES, cluster, write_broker_xml
from tests.ports import free_port
from tests.waiting import DEADLINE_S, reached

pytestmark = pytest.mark.process

JMS = '<jms xmlns="urn:activemq:jms"><queue name="orders"><entry name="/queue/orders"/></queue></jms>'
HEAD = '<configuration xmlns="urn:activemq">'
EVERYTHING = f"<address>jms</address>{RETRIES}"
MESSAGES = 10


async def spread(urls: list[str]) -> list[Counter[str]]:
    """Sends to the first node until a consumer at each gets its share, and returns what each has got at last."""
    async with asyncio.timeout(DEADLINE_S), AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(connect(url)) for url in urls]
        found: list[Counter[str]] = [Counter() for _ in urls]
        consumers = [await each.consumer("jms.queue.orders") for each in connections]

        async def take(index: int) -> None:
            while (message := await consumers[index].receive()) is not None:
                found[index][str(message.text)] += 1
                await message.acknowledge()

        tasks = [asyncio.create_task(take(index)) for index in range(len(urls))]
        producer = await connections[0].producer("jms.queue.orders")
        while True:  # the first messages may be sent before this node knows the consumers of the others
            for each in found:
                each.clear()
            for number in range(MESSAGES):
                await producer.send(Message(str(number)))
            await reached(lambda: sum(each.total() for each in found) == MESSAGES)
            if all(each.total() >= MESSAGES // len(urls) for each in found):
                break
        for task in tasks:
            task.cancel()
        return found


def test_they_share_the_queues_of_jms(tmp_path: Path) -> None:
    ports = [free_port() for _ in range(3)]
    with ExitStack() as stack:
        for index, port in enumerate(ports):
            others = [each for each in ports if each != port]
            old = write_broker_xml(tmp_path / f"old{index}", port, f"n{index}", cluster(port, others, EVERYTHING))
            old.write_text(old.read_text().replace(HEAD, HEAD + JMS))
            new = old.with_name("new.xml")
            convert(old, new)
            stack.enter_context(BrokerProcess(new))
        found = asyncio.run(spread([f"tcp://127.0.0.1:{port}" for port in ports]))
    assert sum(found, Counter()) == Counter(str(number) for number in range(MESSAGES))
