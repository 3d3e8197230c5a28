"""SIGKILL in the middle of a stream: what was confirmed is there, once, in order; the rest goes on."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from atalanta.client import Message, connect
from tests.broker_process import BrokerProcess, free_port, write_broker_xml

pytestmark = pytest.mark.process

COUNT = 3000
QUEUE = "stream"
# A compacted, many-segment journal is part of the question.
SMALL_SEGMENTS = "<journal-file-size>256K</journal-file-size>"
BODY = bytes(200)


class KilledBroker:
    """A broker that is killed and started again on its data, whenever a test says so."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.path = write_broker_xml(folder, port, more=SMALL_SEGMENTS)
        self.url = f"tcp://127.0.0.1:{port}?reconnectAttempts=-1&retryInterval=50"
        self.process = BrokerProcess(self.path)

    def __enter__(self) -> KilledBroker:
        self.process.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.process.__exit__(None, None, None)

    def kill_and_restart(self) -> None:
        """Blocks; run it in a thread while clients stream."""
        assert self.process.end(signal.SIGKILL) == -signal.SIGKILL
        self.process.__exit__(None, None, None)
        self.process = BrokerProcess(self.path)
        self.process.__enter__()


async def send_all(broker: KilledBroker, kill_at: int) -> int:
    """Sends COUNT numbered messages, with one kill once `kill_at` are confirmed; the re-sent ones."""
    async with connect(broker.url) as connection:
        await connection.create_queue(QUEUE, address=QUEUE, routing="anycast", durable=True)
        producer = await connection.producer(QUEUE, routing="anycast")
        killing: asyncio.Future[None] | None = None
        for number in range(COUNT):
            await producer.send_soon(Message(body=BODY, properties={"n": number}))
            if killing is None and producer.confirmed >= kill_at:
                killing = asyncio.ensure_future(asyncio.to_thread(broker.kill_and_restart))
        await producer.drain()
        assert killing is not None, "the kill was to come in the middle"
        await killing
        assert producer.confirmed == COUNT
        return producer.resent


def test_a_producer_streams_through_a_kill(tmp_path: Path) -> None:
    async def main(broker: KilledBroker) -> None:
        await send_all(broker, kill_at=COUNT // 3)
        numbers = []
        async with connect(broker.url) as connection:
            consumer = await connection.consumer(QUEUE, ack="auto")
            async for message in consumer:
                numbers.append(message.properties["n"])
                if len(numbers) == COUNT:
                    break
            await consumer.close()  # sends the acknowledgements it still holds
            position = await connection.query_queue(QUEUE)
            assert position.message_count == 0, "a re-sent message became a second one"
        assert numbers == list(range(COUNT))

    with KilledBroker(tmp_path) as broker:
        asyncio.run(asyncio.wait_for(main(broker), 100))


def test_a_consumer_reads_through_a_kill(tmp_path: Path) -> None:
    async def main(broker: KilledBroker) -> None:
        await send_all(broker, kill_at=1)
        seen: list[object] = []
        # A small window: the consumer must not have all of it at hand when the broker dies.
        async with connect(f"{broker.url}&consumerWindowSize=20000") as connection:
            consumer = await connection.consumer(QUEUE, ack="individual")
            killing: asyncio.Future[None] | None = None
            async for message in consumer:
                # What the broker had not yet acknowledged on disk comes again, and may: the
                # default of the protocol is not to wait for acknowledgements.
                number = message.properties["n"]
                if number not in seen:
                    seen.append(number)
                await message.acknowledge()
                if len(seen) == COUNT // 2 and killing is None:
                    killing = asyncio.ensure_future(asyncio.to_thread(broker.kill_and_restart))
                if len(seen) == COUNT:
                    break
            assert killing is not None
            await killing
            await consumer.close()
            left = await connection.query_queue(QUEUE)
            assert left.message_count == 0
        assert seen == list(range(COUNT)), "in order, none missing"

    with KilledBroker(tmp_path) as broker:
        asyncio.run(asyncio.wait_for(main(broker), 100))
