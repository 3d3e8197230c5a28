"""A load on a pair or a group of processes: numbered messages, each sent until it is confirmed."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable

from atalanta.client import Connection, Message, ReceivedMessage, connect
from tests.waiting import DEADLINE_S, reached


class Load:
    """A sender whose messages are numbered, and what it was told."""

    def __init__(self, connection: Connection, body: str = "") -> None:
        self.connection = connection
        self.confirmed: list[int] = []
        self.next = 0
        self.stopping = False
        self._body = body

    async def run(self) -> None:
        """Sends until `stopping`; each send waits for its confirmation."""
        producer = await self.connection.producer("orders")
        while not self.stopping:
            number = self.next
            self.next += 1
            await producer.send(Message(f"{number}{self._body}"))
            self.confirmed.append(number)

    async def past(self, count: int) -> None:
        """Waits until `count` more messages are confirmed."""
        wanted = len(self.confirmed) + count
        await reached(lambda: len(self.confirmed) >= wanted)


@contextlib.asynccontextmanager
async def loaded(url: str, body: str = "") -> AsyncIterator[Load]:
    """Yields a running load. Afterwards every confirmed message is in the queue, once. `body` follows each number."""
    async with asyncio.timeout(120), connect(url) as connection:
        load = Load(connection, body)
        sending = asyncio.create_task(load.run())
        try:
            yield load
        except BaseException:
            sending.cancel()
            raise
        load.stopping = True
        await sending
        consumer = await connection.consumer("orders", ack="auto")
        found: Counter[int] = Counter()
        while (message := await consumer.receive(1)) is not None:
            found[number_of(message)] += 1
        assert sorted(set(load.confirmed) - set(found)) == []
        assert [number for number, times in found.items() if times > 1] == []


async def send(url: str, numbers: Iterable[int]) -> None:
    """Sends numbered messages; each is confirmed."""
    async with asyncio.timeout(DEADLINE_S), connect(url) as connection:
        producer = await connection.producer("orders", routing="anycast")
        for number in numbers:
            await producer.send(Message(str(number)))


async def receive(url: str, most: int = 10_000, sure: int = 0) -> list[int]:
    """Receives and acknowledges up to `most` messages, and returns their numbers. The first `sure` are waited for."""
    found: list[int] = []
    async with asyncio.timeout(DEADLINE_S), connect(url) as connection:
        consumer = await connection.consumer("orders")
        while len(found) < most:
            message = await consumer.receive(DEADLINE_S if len(found) < sure else 1)
            if message is None:
                break
            await message.acknowledge()
            found.append(number_of(message))
    return found


def number_of(message: ReceivedMessage | None) -> int:
    """Returns the number at the begin of the message."""
    assert message is not None and message.text is not None
    return int(message.text.partition(" ")[0])
