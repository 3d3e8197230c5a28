"""Clients in constant use, in a thread of their own, and what they saw: for tests of `atalanta rebalance`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from atalanta.client import Connection, Message, TransactionRolledBack, connect

CONSUMER_WINDOW = "consumerWindowSize=20000"
WORK_S = 0.005


class Work:
    """Counts what all clients of a test did. `errors` are those that a program would see."""

    def __init__(self) -> None:
        self.over = False
        self.sending = True
        self.ready = 0
        self.errors: list[str] = []
        self.confirmed: list[str] = []
        self.received: dict[str, int] = {}
        self.attempts: dict[str, int] = {}

    def took(self, text: str, attempts: int) -> None:
        self.received[text] = self.received.get(text, 0) + 1
        self.attempts[text] = max(attempts, self.attempts.get(text, 0))

    def lost(self) -> list[str]:
        return [text for text in list(self.confirmed) if text not in self.received]

    def repeated(self) -> list[str]:
        """Received, or delivered, more than twice."""
        return [
            text
            for text, count in list(self.received.items())
            if count > 2 or self.attempts[text] > 2
        ]


Kind = Callable[[Connection, Work, str], Coroutine[Any, Any, None]]


async def consume(connection: Connection, work: Work) -> None:
    """Consumes as a client that always has some messages ahead, and takes its time for each."""
    consumer = await connection.consumer("orders")
    work.ready += 1
    while not work.over:
        message = await consumer.receive(0.2)
        if message is not None:
            work.took(message.text or "", message.delivery_count)
            await asyncio.sleep(WORK_S)
            message.acknowledge()


def asking(period_s: float) -> Kind:
    """Questions that use no credit to send."""

    async def ask(connection: Connection, work: Work, name: str) -> None:
        work.ready += 1
        while not work.over:
            await connection.query_queue("orders")
            await asyncio.sleep(period_s)

    return ask


def sending(period_s: float) -> Kind:
    """One message after the other, each confirmed before the next; and a consumer."""

    async def send(connection: Connection, work: Work, name: str) -> None:
        producer = await connection.producer("orders", routing="anycast")
        consuming = asyncio.create_task(consume(connection, work))
        number = 0
        while not work.over:
            if work.sending:
                number += 1
                text = f"{name}/{number}"
                await producer.send(Message(text=text))
                work.confirmed.append(text)
            await asyncio.sleep(period_s)
        await consuming

    return send


async def streaming(connection: Connection, work: Work, name: str) -> None:
    """Sends ahead of the confirmations."""
    producer = await connection.producer("orders", routing="anycast", window=50)
    consuming = asyncio.create_task(consume(connection, work))
    number = 0
    while not work.over:
        sent = []
        for _ in range(20 if work.sending else 0):
            number += 1
            sent.append(f"{name}/{number}")
            await producer.send_soon(Message(text=sent[-1]))
            await asyncio.sleep(0.002)
        await producer.drain()
        work.confirmed += sent
        await asyncio.sleep(0.01 if sent else 0.1)
    await consuming


async def transacted(connection: Connection, work: Work, name: str) -> None:
    """Takes, sends and commits without a pause; a transaction that went with its connection is done again."""
    number = 0
    work.ready += 1
    transaction = connection.transaction()
    await transaction.open()
    consumer = await transaction.consumer("orders")
    while not work.over:
        got = []
        sent = []
        try:
            for _ in range(5 if work.sending else 20):
                message = await consumer.receive(0.05)
                if message is None:
                    break
                got.append((message.text or "", message.delivery_count))
                message.acknowledge()
            for _ in range(3 if work.sending else 0):
                number += 1
                sent.append(f"{name}/{number}")
                await transaction.send("orders", Message(text=sent[-1]), routing="anycast")
                await asyncio.sleep(0.001)
            await transaction.commit()
        except TransactionRolledBack:
            await transaction.rollback()
            continue
        work.confirmed += sent
        for text, attempts in got:
            work.took(text, attempts)
    await transaction.close()


class Busy:
    """`connections` of that many clients, open and at work inside `running`."""

    def __init__(self, url: str, clients: int, kind: Kind) -> None:
        self.url = url
        self.clients = clients
        self.kind = kind
        self.work = Work()
        self.connections: list[Connection] = []
        self.thread = threading.Thread(target=self._run, name="busy clients")

    def at(self, port: int) -> int:
        """Returns how many are at that node."""
        return sum(
            1
            for each in self.connections
            if each.connected and each.server is not None and each.server.port == port
        )

    def _run(self) -> None:
        asyncio.run(self._all())

    async def _all(self) -> None:
        await asyncio.gather(*[self._one(f"c{number}") for number in range(self.clients)])

    async def _one(self, name: str) -> None:
        async with connect(self.url) as connection:
            self.connections.append(connection)
            try:
                await self.kind(connection, self.work, name)
            except Exception as error:
                self.work.errors.append(f"{name}: {error!r}")
                self.work.over = True


@contextmanager
def running(url: str, clients: int, kind: Kind) -> Iterator[Busy]:
    busy = Busy(url, clients, kind)
    busy.thread.start()
    try:
        yield busy
    finally:
        busy.work.over = True
        busy.thread.join(60)
