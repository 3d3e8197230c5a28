"""Streams beside other things that one asyncio client does at the same time."""

from __future__ import annotations

import asyncio
import io
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from atalanta.client import ClientError, Message, blocking, connect
from atalanta.client.asyncio_client import run
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.ports import free_port

pytestmark = pytest.mark.process

BODY = bytes(range(251)) * 2_000  # half a MiB: five pieces


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    with BrokerProcess(write_broker_xml(tmp_path_factory.mktemp("together"), port)) as broker:
        yield f"tcp://127.0.0.1:{port}"
        assert broker.end(signal.SIGTERM) == 0


async def slowly(body: bytes, begun: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    if begun is not None:
        begun.set()
    for at in range(0, len(body), 50_000):
        await asyncio.sleep(0.01)
        yield body[at : at + 50_000]


def test_a_transaction_sends_streams_and_large_messages_at_the_same_time(url: str) -> None:
    """Pieces of one large message between those of another one had the node close the connection."""

    async def main() -> list[bytes]:
        async with connect(url) as connection:
            async with connection.transaction() as tx:
                sends = [
                    tx.send("together", Message(stream=slowly(b"1" + BODY)), "anycast"),
                    tx.send("together", Message(b"2" + BODY), "anycast"),
                    tx.send("together", Message(stream=slowly(b"3" + BODY)), "anycast"),
                    tx.send("together", Message(b"small"), "anycast"),
                    tx.send("together", Message(b"4" + BODY), "anycast"),
                ]
                await asyncio.gather(*sends)
            bodies: list[bytes] = []
            async with await connection.consumer("together", ack="auto") as consumer:
                for _ in sends:
                    received = await consumer.receive(20)
                    assert received is not None
                    bodies.append(received.body)
            return bodies

    assert sorted(run(main())) == [*(number + BODY for number in (b"1", b"2", b"3", b"4")), b"small"]


def test_a_commit_waits_for_the_stream(url: str) -> None:
    async def main() -> bytes:
        async with connect(url) as connection:
            tx = await connection.transaction().open()
            begun = asyncio.Event()
            sending = asyncio.create_task(
                tx.send("committed", Message(stream=slowly(BODY, begun)), "anycast")
            )
            await begun.wait()
            await tx.commit()
            await sending
            async with await connection.consumer("committed", ack="auto") as consumer:
                received = await consumer.receive(20)
                assert received is not None
            await tx.close()
            return received.body

    assert run(main()) == BODY


def test_a_stream_that_sends_into_its_own_transaction_is_told(url: str) -> None:
    async def main() -> None:
        async with connect(url) as connection:
            tx = await connection.transaction().open()

            async def items() -> AsyncIterator[bytes]:
                yield BODY
                await tx.send("own", Message(BODY), "anycast")

            await tx.send("own", Message(stream=items()), "anycast")

    with pytest.raises(ClientError, match="one at a time"):
        run(main())

    with blocking.connect(url) as connection, pytest.raises(ClientError, match="one at a time"):
        tx = connection.transaction()
        tx.open()

        def items() -> Iterator[bytes]:
            yield BODY
            tx.send("own", Message(BODY), "anycast")

        tx.send("own", Message(stream=items()), "anycast")


class Stuck(io.RawIOBase):
    """A pipe whose other end says nothing until `open` is set."""

    def __init__(self, open_: threading.Event) -> None:
        self.open = open_

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self.open.wait(30)
        return b""


def test_streams_that_say_nothing_do_not_hold_up_the_resolution_of_names(url: str) -> None:
    opened = threading.Event()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        async with connect(url) as connection:
            producer = await connection.producer("names", routing="anycast")
            sending = [
                asyncio.create_task(producer.send(Message(stream=Stuck(opened)))) for _ in range(3)
            ]
            await asyncio.sleep(0.05)
            try:
                await asyncio.wait_for(loop.getaddrinfo("127.0.0.1", 1), 5)
            finally:
                opened.set()
            await asyncio.gather(*sending)

    asyncio.run(main())  # uvloop resolves in threads of its own
