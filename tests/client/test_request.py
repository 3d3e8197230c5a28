"""`request` and durable subscriptions, with a real node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from atalanta.client import (
    CallTimedOut,
    Closed,
    Connection,
    Message,
    QueueExists,
    TooManyConsumers,
    connect,
)
from atalanta.client.blocking import connect as connect_blocking
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.ports import free_port

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    with BrokerProcess(write_broker_xml(tmp_path_factory.mktemp("request"), port)):
        yield f"tcp://127.0.0.1:{port}"


async def serve(connection: Connection) -> None:
    """Answers in pairs, the later request first; "quiet" gets no answer."""
    consumer = await connection.consumer("service", ack="auto")
    held: list[tuple[str, Message]] = []
    async for message in consumer:
        assert message.reply_to is not None
        if message.text == "quiet":
            continue
        answer = Message(f"re: {message.text}", correlation_id=message.correlation_id)
        held.append((message.reply_to, answer))
        if len(held) == 2 or message.text == "alone":
            for address, each in reversed(held):
                await (await connection.producer(address)).send(each)
            held.clear()


def test_requests_get_their_own_replies(url: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), connect(url) as services, connect(url) as connection:
            await services.create_queue("service", routing="anycast")
            service = asyncio.create_task(serve(services))
            with pytest.raises(CallTimedOut, match="no reply within"):
                await connection.request("service", Message("quiet"), 0.2)
            texts = [f"{number}" for number in range(40)]
            requests = (connection.request("service", Message(text), 20) for text in texts)
            replies = await asyncio.gather(*requests)
            assert [reply.text for reply in replies] == [f"re: {text}" for text in texts]
            given = Message("alone", correlation_id="mine")
            assert (await connection.request("service", given)).correlation_id == "mine"
            assert given.reply_to is None
            with connect_blocking(url) as blocking:
                reply = await asyncio.to_thread(blocking.request, "service", Message("alone"), 20)
                assert reply.text == "re: alone"
            waiting = asyncio.create_task(connection.request("service", Message("quiet"), 30))
            await asyncio.sleep(0.2)
            await connection.close()
            with pytest.raises(Closed):
                await waiting
            service.cancel()

    asyncio.run(main())


def test_a_durable_subscription_keeps_messages(url: str) -> None:
    with connect_blocking(f"{url}?clientID=a.b") as connection:
        with connection.subscription("news", "daily", "kind = 'good'") as consumer:
            assert consumer.queue == "news::a\\.b.daily"
            with pytest.raises(TooManyConsumers):
                connection.subscription("news", "daily", "kind = 'good'")
            connection.subscription("news", "daily", "kind = 'good'", shared=True).close()
        with connection.producer("news", routing="multicast") as producer:
            for kind in ("good", "bad"):
                producer.send(Message(kind, properties={"kind": kind}))
        with pytest.raises(QueueExists, match="exists for news"):
            connection.subscription("news", "daily")
        with connection.subscription("news", "daily", "kind = 'good'") as consumer:
            message = consumer.receive(10)
            assert message is not None and message.text == "good"
            message.acknowledge()
            assert consumer.receive(0) is None
        connection.unsubscribe("daily")
        assert not connection.query_queue("a\\.b.daily").exists
