"""A client of a pair: two servers with one store, of which one serves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from atalanta.client import FirstElement, Message, TransactionRolledBack, connect
from atalanta.client.blocking import connect as connect_blocking
from tests.client.fake_server import FakeServer
from tests.ports import free_port
from tests.wire.core.client.fake_broker import PASSWORD

AGAIN = "reconnectAttempts=-1&retryInterval=100"


class ServerPair:
    """The serving half and the port of the other one; the store is common."""

    def __init__(self, active: FakeServer) -> None:
        self.active = active
        self.backup_port = free_port()
        active.broker.backup_port = self.backup_port

    async def fail_over(self, after_s: float = 0.0) -> None:
        """The serving half ends, and the other one serves after that time, without a backup of its own."""
        broker = self.active.broker
        await self.active.stop()
        for connection in broker.connections:
            connection.held.clear()
        await asyncio.sleep(after_s)
        self.active = FakeServer(broker=broker)
        self.active.port = self.backup_port
        broker.backup_port, broker.confirm = 0, True
        broker.event_id += 1
        await self.active.start()


def with_pair(*queues: str) -> Callable[[Callable[[ServerPair], Awaitable[None]]], None]:
    """Runs a body with a pair."""

    def start(body: Callable[[ServerPair], Awaitable[None]]) -> None:
        async def main() -> None:
            pair = ServerPair(FakeServer(*queues))
            await pair.active.start()
            async with asyncio.timeout(20):
                try:
                    await body(pair)
                finally:
                    await pair.active.stop()

        asyncio.run(main())

    return start


@pytest.mark.parametrize("options", [AGAIN, AGAIN + "&stay=true"])
def test_producer_and_consumer_go_on_at_the_backup_and_nothing_is_doubled(options: str) -> None:
    async def body(pair: ServerPair) -> None:
        broker = pair.active.broker
        async with connect(pair.active.url(options), user="u", password=PASSWORD) as connection:
            consumer = await connection.consumer("q")
            producer = await connection.producer("q")
            await producer.send(Message(text="before"))
            broker.confirm = False
            sending = [asyncio.ensure_future(producer.send(Message(text=str(each)))) for each in range(3)]
            while broker.messages < 4:  # they are stored, and nobody has been told
                await asyncio.sleep(0.005)
            await pair.fail_over(after_s=0.2)
            await asyncio.gather(*sending)
            await producer.send(Message(text="after"))
            seen: list[str] = []
            while len(set(seen)) < 5:
                message = await consumer.receive(5)
                assert message is not None and message.text is not None
                seen.append(message.text)
                await message.acknowledge()
            assert connection.server is not None and connection.server.port == pair.backup_port
            assert broker.messages == 5 and producer.resent == 3

    with_pair("q")(body)


def test_a_transaction_of_the_lost_half_is_rolled_back_and_the_next_one_works() -> None:
    async def body(pair: ServerPair) -> None:
        broker = pair.active.broker
        async with connect(pair.active.url(AGAIN), user="u", password=PASSWORD) as connection:
            with pytest.raises(TransactionRolledBack):
                async with connection.transaction() as transaction:
                    await transaction.send("q", Message(text="lost"))
                    await pair.fail_over()
                    while not connection.lost_count:
                        await asyncio.sleep(0.005)
            assert broker.messages == 0
            async with connection.transaction() as transaction:
                await transaction.send("q", Message(text="kept"))
            assert broker.messages == 1

    with_pair("q")(body)


def test_another_server_of_the_url_is_not_asked_while_the_pair_fails_over() -> None:
    """The other node has neither messages nor duplicate ids: what was confirmed to nobody would be sent there again."""

    async def body(pair: ServerPair) -> None:
        async with FakeServer("q") as other:
            url = f"({pair.active.url()},{other.url()})?{AGAIN}"
            order = FirstElement()
            async with connect(url, user="u", password=PASSWORD, balancing=order) as connection:
                producer = await connection.producer("q")
                await producer.send(Message(text="before"))
                await pair.fail_over(after_s=0.5)
                await producer.send(Message(text="after"))
            assert other.broker.messages == 0 and not other.broker.connections
            assert pair.active.broker.messages == 2

    with_pair("q")(body)


def test_a_blocking_client_follows_too() -> None:
    async def body(pair: ServerPair) -> None:
        def work(url: str) -> None:
            with connect_blocking(url, user="u", password=PASSWORD) as connection:
                producer = connection.producer("q")
                producer.send(Message(text="before"))
                asyncio.run_coroutine_threadsafe(pair.fail_over(), loop).result(10)
                producer.send(Message(text="after"))

        loop = asyncio.get_running_loop()
        await asyncio.to_thread(work, pair.active.url(AGAIN))
        assert pair.active.broker.messages == 2

    with_pair("q")(body)
