"""`release` and `reject`: a real node, and a broker that knows neither."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.client import (
    Closed,
    IllegalState,
    Message,
    ReceivedMessage,
    SettleUnsupported,
    connect,
)
from atalanta.client.blocking import Connection, Consumer
from atalanta.client.blocking import connect as connect_blocking
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.client.fake_server import FakeServer
from tests.ports import free_port
from tests.wire.core.client.fake_broker import PASSWORD

SETTINGS = """
    <address-settings><address-setting match="#">
      <dead-letter-address>DLQ</dead-letter-address>
      <max-delivery-attempts>3</max-delivery-attempts>
      <redelivery-delay>{delay_ms}</redelivery-delay>
    </address-setting></address-settings>
    <addresses><address name="DLQ"><anycast><queue name="DLQ"/></anycast></address></addresses>
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node that dead-letters after three attempts."""
    port = free_port()
    folder = tmp_path_factory.mktemp("settle")
    with BrokerProcess(write_broker_xml(folder, port, more=SETTINGS.format(delay_ms=0))):
        yield f"tcp://127.0.0.1:{port}"


def taken(consumer: Consumer) -> ReceivedMessage:
    message = consumer.receive(10)
    assert message is not None
    return message


def put(connection: Connection, queue: str, *texts: str) -> None:
    producer = connection.producer(queue, routing="anycast")
    for text in texts:
        producer.send(Message(text=text))


@pytest.mark.process
@pytest.mark.parametrize("ack", ["individual", "cumulative", "auto"])
def test_a_poison_message_reaches_the_dead_letter_queue(url: str, ack: str) -> None:
    queue = f"poison.{ack}"
    with connect_blocking(url) as connection:
        put(connection, queue, f"poison {ack}", "good")
        with connection.consumer(queue, ack=ack, window=0) as consumer:
            for count in (1, 2, 3):
                message = taken(consumer)
                assert (message.text, message.delivery_count) == (f"poison {ack}", count)
                message.release()
            message = taken(consumer)
            assert message.text == "good"
            message.acknowledge()
        with connection.consumer("DLQ") as dead:
            message = taken(dead)
            assert message.text == f"poison {ack}"
            message.acknowledge()


@pytest.mark.process
def test_a_rejected_message_is_dead_at_once_and_a_delay_is_kept(url: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), connect(url) as connection:
            producer = await connection.producer("mixed", routing="anycast")
            for text in ("reject", "later", "keep"):
                await producer.send(Message(text=text))
            consumer = await connection.consumer("mixed")
            rejected, later, keep = [await anext(consumer) for _ in range(3)]
            rejected.reject()  # nobody waits, and it is done before the close of the consumer
            since = time.monotonic()
            await later.release(delay=0.5)
            await keep.acknowledge()
            again = await anext(consumer)
            assert time.monotonic() - since >= 0.49  # the node counts whole milliseconds
            assert (again.text, again.delivery_count) == ("later", 2)
            await again.acknowledge()
            with pytest.raises(IllegalState):
                await rejected.reject()
            with pytest.raises(ValueError, match="seconds"):
                again.release(delay=-1)
            await consumer.close()
            with pytest.raises(Closed):
                await keep.release()
            dead = await connection.consumer("DLQ")
            message = await anext(dead)
            assert message.text == "reject"
            await message.acknowledge()
            assert (await connection.query_queue("mixed")).message_count == 0
            browser = await connection.consumer("DLQ", browse=True)
            assert [each.text async for each in browser] == []

    asyncio.run(main())


@pytest.mark.process
def test_the_address_has_a_delay_that_a_release_may_replace(tmp_path: Path) -> None:
    port = free_port()
    with BrokerProcess(write_broker_xml(tmp_path, port, more=SETTINGS.format(delay_ms=600_000))):
        with connect_blocking(f"tcp://127.0.0.1:{port}") as connection:
            put(connection, "q", "waits", "at once")
            consumer = connection.consumer("q")
            taken(consumer).release()
            taken(consumer).release(delay=0)
            message = taken(consumer)
            assert (message.text, message.delivery_count) == ("at once", 2)
            assert consumer.receive(0.1) is None


def test_a_broker_that_does_not_know_it_gets_no_such_packet() -> None:
    async def main() -> None:
        async with FakeServer("q") as server, connect(
            server.url(), user="u", password=PASSWORD
        ) as connection:
            await (await connection.producer("q")).send(Message(text="one"))
            message = await anext(await connection.consumer("q"))
            for give_back in (message.reject, message.release):
                with pytest.raises(SettleUnsupported, match="not an Atalanta node"):
                    await give_back()
            await message.acknowledge()
            browser = await connection.consumer("q", browse=True)
            assert [each.text async for each in browser] == []

    asyncio.run(main())
