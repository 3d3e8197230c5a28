"""Management by message from the client, blocking and with asyncio."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from atalanta.client import ManagementFailed, Message, connect
from atalanta.client.blocking import connect as connect_blocking
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.ports import free_port

pytestmark = pytest.mark.process


def test_attributes_operations_and_refusals(tmp_path: Path) -> None:
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"

    async def main() -> None:
        async with asyncio.timeout(30), connect(url) as connection:
            management = connection.management()
            assert await management.get("broker", "Name") == "manäged"
            with pytest.raises(ManagementFailed, match="queue.nosuch: MessageCount: "):
                await management.get("queue.nosuch", "MessageCount")
            await management.call("queue.orders", "pause")
            await management.close()
            assert await management.call("queue.orders", "countMessages") == 2

    with (
        BrokerProcess(write_broker_xml(tmp_path, port, name="manäged")),
        connect_blocking(url) as connection,
    ):
        producer = connection.producer("orders", routing="anycast")
        for _ in range(2):
            producer.send(Message(text="x"))
        management = connection.management()
        assert management.get("queue.orders", "MessageCount") == 2
        asyncio.run(main())
        consumer = connection.consumer("orders", ack="auto")
        assert consumer.receive(0) is None, "the queue is paused"
        management.call("queue.orders", "resume")
        assert consumer.receive(10) is not None
        with pytest.raises(ManagementFailed, match="nonsense"):
            management.call("broker", "nonsense", 1, "a", None)
