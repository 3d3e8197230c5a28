"""The Python client against a real Artemis (and, with --target both, against our own node)."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps

import pytest

from atalanta.client import (
    Byte,
    Connecting,
    Float,
    Int,
    LogViewUnsupported,
    Message,
    ReceivedMessage,
    SettleUnsupported,
    Short,
    connect,
)
from atalanta.client.blocking import connect as connect_blocking
from atalanta.client.encoding import encode_text
from atalanta.client.message import Property
from tests.interop.harness.jms import PASSWORD, USER, Jms
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

USUAL_TARGET = "artemis"
pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

ARRIVES_SECONDS = 10.0
NOTHING_SECONDS = 0.4


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A destination name of this test's own."""
    return f"py.{request.node.name}".replace("[", ".").replace("]", "")


def url(node: BrokerProcess, options: str = "") -> str:
    """The node as the client wants it."""
    return "?".join(part for part in (f"tcp://127.0.0.1:{node.port}", options) if part)


def awaited(test: Callable[..., Coroutine[object, object, None]]) -> Callable[..., None]:
    """The test's coroutine runs to its end."""

    @wraps(test)
    def run(**fixtures: object) -> None:
        asyncio.run(test(**fixtures))

    return run


def opened(node: BrokerProcess, options: str = "") -> Connecting:
    """A connection of the asynchronous client, for `async with`."""
    return connect(url(node, options), user=USER, password=PASSWORD)


async def take(consumer: AsyncIterator[ReceivedMessage], count: int) -> list[ReceivedMessage]:
    """The next messages, not acknowledged."""
    return [await asyncio.wait_for(anext(consumer), ARRIVES_SECONDS) for _ in range(count)]


async def nothing(consumer: AsyncIterator[ReceivedMessage]) -> None:
    """No message comes."""
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(anext(consumer), NOTHING_SECONDS)


@awaited
async def test_send_and_receive(node: BrokerProcess, name: str) -> None:
    async with opened(node) as connection:
        producer = await connection.producer(name, routing="anycast")
        for n in range(50):
            await producer.send(Message(text=f"text {n} ä\U0001f680", properties={"n": n}))
        consumer = await connection.consumer(name)
        got = await take(consumer, 50)
        assert [m.text for m in got] == [f"text {n} ä\U0001f680" for n in range(50)]
        assert [m.properties["n"] for m in got] == list(range(50))
        assert not any(m.redelivered for m in got)
        for message in got:
            await message.acknowledge()
        await nothing(consumer)


@awaited
async def test_bodies(node: BrokerProcess, name: str) -> None:
    async with opened(node) as connection:
        producer = await connection.producer(name, routing="anycast")
        consumer = await connection.consumer(name, ack="auto")
        for size in (1, 1000, 100_000, 102_400, 250_000, 3_000_000):
            sent = bytes(n % 251 for n in range(size))
            await producer.send(Message(body=sent))
            (got,) = await take(consumer, 1)
            assert got.body == sent


def test_streamed_bodies(jms: Jms, node: BrokerProcess, name: str) -> None:
    """Sent piece by piece: by this client and by a real JMS client received whole; nothing of what broke off."""
    bodies = [bytes(n % 251 for n in range(size)) for size in (102_400, 250_000, 3_000_000)]

    def torn() -> Iterator[bytes]:
        yield bodies[1]
        raise OSError("the tape is torn")

    with connect_blocking(url(node), user=USER, password=PASSWORD) as connection:
        producer = connection.producer(name, routing="anycast")
        with pytest.raises(OSError, match="torn"):
            producer.send(Message(stream=torn()))
        for body in bodies:
            producer.send(Message(stream=io.BytesIO(body)))
        with connection.transaction() as tx:
            tx.send(name, Message(stream=(piece for piece in (bodies[0], bodies[1]))))
        with connection.consumer(name, ack="auto") as consumer:
            for body in (*bodies, bodies[0] + bodies[1]):
                received = consumer.receive(ARRIVES_SECONDS)
                assert received is not None and received.body == body
            assert consumer.receive(0) is None
        # A text for JMS: a nullable string in UTF-16, of 300,000 characters.
        producer.send(Message(stream=io.BytesIO(encode_text("x" * 300_000)), type=3))
    connection_name = jms.open(name, node)
    consumer_name = jms.consumer(name + ".c", connection_name, "queue:" + name)
    assert jms.receive(consumer_name, 1, 10_000) == ["x" * 300_000]


@pytest.mark.parametrize("window", [0, 10, 100_000, 1 << 20])
def test_large_messages_are_browsed_and_polled(node: BrokerProcess, name: str, window: int) -> None:
    sizes = [10, 300_000, 20, 3_000_000, 150_000, 30]
    with connect_blocking(url(node), user=USER, password=PASSWORD) as connection:
        producer = connection.producer(name, routing="anycast")
        for size in sizes:
            producer.send(Message(b"x" * size))
        browser = connection.consumer(name, browse=True, window=window)
        assert [len(message.body) for message in browser] == sizes
        with connection.consumer(name, window=window) as consumer:
            for size in sizes:
                message = consumer.receive(0)
                assert message is not None and len(message.body) == size
                message.acknowledge()
            assert consumer.receive(0) is None


def test_typed_properties_to_jms(jms: Jms, node: BrokerProcess, name: str) -> None:
    connection_name = jms.open(name, node)
    consumer = jms.consumer(name + ".c", connection_name, "queue:" + name)

    async def body() -> None:
        async with opened(node) as connection:
            producer = await connection.producer(name, routing="anycast")
            properties: dict[str, Property] = {
                "boolean": False, "byte": Byte(-1), "short": Short(-2), "int": Int(-3),
                "long": -4, "float": Float(0.5), "double": 0.1, "string": "säge",
            }  # fmt: skip
            message = Message(
                text="7",
                properties=properties,
                priority=7,
                correlation_id="c-ü",
                reply_to="queue://answers",
                group_id="g",
                durable=False,
            )
            await producer.send(message)

    asyncio.run(body())
    assert jms.receive(consumer, 1, 5000) == ["7"]
    found = jms("properties", consumer)
    for expected in (
        "boolean=Boolean:false", "byte=Byte:-1", "short=Short:-2", "int=Integer:-3",
        "long=Long:-4", "float=Float:0.5", "double=Double:0.1", "string=String:säge",
        "JMSXGroupID=String:g", "JMSCorrelationID=c-ü", "JMSPriority=7", "JMSDeliveryMode=1",
        "JMSReplyTo=ActiveMQQueue[answers]",
    ):  # fmt: skip
        assert expected in found, found
    jms.close_all(connection_name)


def test_typed_properties_from_jms(jms: Jms, node: BrokerProcess, name: str) -> None:
    connection_name = jms.open(name, node)
    producer = jms.producer(name + ".p", connection_name, "queue:" + name)
    jms.send(producer, range(3, 4), typed="true", dup="d")

    async def body() -> None:
        async with opened(node) as connection:
            consumer = await connection.consumer(name, ack="auto")
            (message,) = await take(consumer, 1)
            assert message.text == "3"
            wanted = {
                "boolean": True, "byte": -1, "short": -2, "int": -3, "long": -4,
                "float": 0.5, "double": 0.1, "string": "säge",
            }  # fmt: skip
            assert {key: message.properties[key] for key in wanted} == wanted
            assert isinstance(message.properties["short"], Short)
            assert message.duplicate_id == "d3"
            assert message.user_id is not None

    asyncio.run(body())
    jms.close_all(connection_name)


@awaited
async def test_individual_acknowledgement(node: BrokerProcess, name: str) -> None:
    async with opened(node) as connection:
        producer = await connection.producer(name, routing="anycast")
        for n in range(5):
            await producer.send(Message(text=str(n)))
    options = "blockOnAcknowledge=true"
    async with opened(node, options) as connection:
        consumer = await connection.consumer(name, ack="individual")
        got = await take(consumer, 5)
        await got[1].acknowledge()
        await got[3].acknowledge()
    async with opened(node) as connection:
        consumer = await connection.consumer(name)
        assert [m.text for m in await take(consumer, 3)] == ["0", "2", "4"]


@pytest.mark.parametrize("ack", ["individual", "cumulative"])
@awaited
async def test_reject_and_release(node: BrokerProcess, target: str, name: str, ack: str) -> None:
    async with opened(node) as connection:
        producer = await connection.producer(name, routing="anycast")
        for text in ("dead", "later", "last"):
            await producer.send(Message(text=text))
        async with await connection.consumer(name, ack=ack) as consumer:
            dead, later, last = await take(consumer, 3)
            if target == "artemis":
                for give_back in (dead.reject, dead.release, lambda: dead.release(delay=1.0)):
                    with pytest.raises(SettleUnsupported, match="not an Atalanta node"):
                        await give_back()
                await last.acknowledge()  # the connection is as good as before
            else:
                await dead.reject()
                await later.release(delay=0.2)
                await last.acknowledge()
                (again,) = await take(consumer, 1)
                assert (again.text, again.delivery_count) == ("later", 2)
                await again.acknowledge()
        found = [each.text async for each in await connection.consumer(name, browse=True)]
        letters = [each.text async for each in await connection.consumer("DLQ", browse=True)]
        kept = ["dead", "later"] if ack == "individual" else []
        assert found == (kept if target == "artemis" else [])
        assert target == "artemis" or letters[-1:] == ["dead"]


@awaited
async def test_cumulative_acknowledgement(node: BrokerProcess, name: str) -> None:
    async with opened(node) as connection:
        producer = await connection.producer(name, routing="anycast")
        for n in range(5):
            await producer.send(Message(text=str(n)))
        consumer = await connection.consumer(name, ack="cumulative")
        got = await take(consumer, 4)
        await got[2].acknowledge()
    async with opened(node) as connection:
        rest = await take(await connection.consumer(name), 2)
        assert [m.text for m in rest] == ["3", "4"]


@awaited
async def test_transactions(node: BrokerProcess, name: str) -> None:
    async with opened(node) as connection:
        await connection.create_queue(name, address=name, routing="anycast", durable=True)
        async with connection.transaction() as transaction:
            await transaction.send(name, Message(text="1"))
            await transaction.send(name, Message(text="2"))
        with pytest.raises(ZeroDivisionError):
            async with connection.transaction() as transaction:
                await transaction.send(name, Message(text="never"))
                raise ZeroDivisionError
        consumer = await connection.consumer(name)
        assert [m.text for m in await take(consumer, 2)] == ["1", "2"]
        await nothing(consumer)


@awaited
async def test_selectors_and_browsing(node: BrokerProcess, name: str) -> None:
    async with opened(node) as connection:
        producer = await connection.producer(name, routing="anycast")
        for n in range(10):
            await producer.send(Message(text=str(n), properties={"n": n, "even": n % 2 == 0}))
        browser = await connection.consumer(name, browse=True)
        assert [m.text for m in await take(browser, 10)] == [str(n) for n in range(10)]
        selector = "even = TRUE AND n BETWEEN 2 AND 7"
        consumer = await connection.consumer(name, selector=selector, ack="auto")
        assert [m.text for m in await take(consumer, 3)] == ["2", "4", "6"]
        await nothing(consumer)


@awaited
async def test_multicast_and_fully_qualified_names(node: BrokerProcess, name: str) -> None:
    async with opened(node) as connection:
        for queue in ("all", "late"):
            await connection.create_queue(
                f"{name}.{queue}",
                address=name,
                routing="multicast",
                durable=True,
                filter="delay > 60" if queue == "late" else None,
            )
        producer = await connection.producer(name, routing="multicast")
        for delay in (10.0, 61.0, 600.0):
            await producer.send(Message(text=str(delay), properties={"delay": delay}))
        everything = await connection.consumer(f"{name}::{name}.all")
        assert [m.text for m in await take(everything, 3)] == ["10.0", "61.0", "600.0"]
        late = await connection.consumer(f"{name}::{name}.late")
        assert [m.text for m in await take(late, 2)] == ["61.0", "600.0"]


@awaited
async def test_pipelined_sends(node: BrokerProcess, name: str) -> None:
    async with opened(node) as connection:
        producer = await connection.producer(name, routing="anycast")
        for n in range(5000):
            await producer.send_soon(Message(text=str(n)))
        await producer.drain()
        consumer = await connection.consumer(name, ack="auto")
        assert [m.text for m in await take(consumer, 5000)] == [str(n) for n in range(5000)]


@awaited
async def test_duplicate_ids(node: BrokerProcess, name: str) -> None:
    async with opened(node) as connection:
        producer = await connection.producer(name, routing="anycast")
        for _ in range(2):
            await producer.send(Message(text="text id", duplicate_id="id"))
            await producer.send(Message(text="bytes id", duplicate_id=b"\0\1id"))
        consumer = await connection.consumer(name)
        assert [m.text for m in await take(consumer, 2)] == ["text id", "bytes id"]
        await nothing(consumer)


@awaited
async def test_wrong_password(node: BrokerProcess) -> None:
    with pytest.raises(Exception, match="(?i)user|password|security|AMQ229031"):
        async with connect(url(node), user=USER, password="wrong") as connection:
            await connection.producer("anything")


@awaited
async def test_queue_queries(node: BrokerProcess, name: str) -> None:
    async with opened(node) as connection:
        await connection.create_queue(name, address=name, routing="anycast", durable=True)
        producer = await connection.producer(name, routing="anycast")
        await producer.send(Message(text="1"))
        found = await connection.query_queue(name)
        assert found.exists and found.durable and found.message_count == 1
        await connection.delete_queue(name)
        assert not (await connection.query_queue(name)).exists


def test_topology(brokers: Lineup, target: str) -> None:
    nodes = brokers.pair(f"{target}+{target}")
    for broker in nodes:
        broker.start()
    expected = sorted(f"127.0.0.1:{broker.port}" for broker in nodes)

    async def body() -> None:
        async with opened(nodes[0]) as connection:
            for _ in range(100):
                found = sorted(f"{m.host}:{m.port}" for m in connection.topology)
                if found == expected:
                    return
                await asyncio.sleep(0.1)
            pytest.fail(f"{found} is not {expected}")

    asyncio.run(body())
    for broker in nodes:
        broker.close()


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_reconnects_after_a_restart(brokers: Lineup, target: str, ending: str) -> None:
    broker = brokers.single(target)
    broker.start()

    async def body() -> None:
        options = "reconnectAttempts=-1&retryInterval=100"
        async with opened(broker, options) as connection:
            producer = await connection.producer("kept", routing="anycast")
            consumer = await connection.consumer("kept", ack="individual")
            for n in range(20):
                await producer.send(Message(text=str(n), duplicate_id=f"d{n}"))
            for message in await take(consumer, 20):
                await message.acknowledge()
            loop = asyncio.get_running_loop()
            for n in range(20, 30):
                await producer.send(Message(text=str(n), duplicate_id=f"d{n}"))
            await loop.run_in_executor(None, getattr(broker, ending))
            sends = [
                asyncio.ensure_future(producer.send(Message(text=str(n), duplicate_id=f"d{n}")))
                for n in range(30, 40)
            ]
            await loop.run_in_executor(None, broker.start)
            await asyncio.wait_for(asyncio.gather(*sends), 30)
            seen: list[str] = []
            while not {str(n) for n in range(20, 40)} <= set(seen):
                (message,) = await take(consumer, 1)
                seen.append(str(message.text))
                await message.acknowledge()
            fresh = [text for text in seen if int(text) >= 30]
            assert sorted(fresh) == [str(n) for n in range(30, 40)]

    asyncio.run(body())
    broker.close()


def test_blocking_client(node: BrokerProcess, name: str) -> None:
    with connect_blocking(url(node), user=USER, password=PASSWORD) as connection:
        producer = connection.producer(name, routing="anycast")
        for n in range(10):
            producer.send(Message(text=str(n)))
        consumer = connection.consumer(name)
        for n in range(10):
            message = consumer.receive(ARRIVES_SECONDS)
            assert message is not None and message.text == str(n)
            message.acknowledge()
        assert consumer.receive(0.2) is None


@awaited
async def test_log_view_is_ours_alone(node: BrokerProcess, target: str, name: str) -> None:
    async with opened(node) as connection:
        await connection.create_queue(name, address=name, routing="anycast", durable=True)
        view = connection.logview(name)
        if target == "artemis":
            with pytest.raises(LogViewUnsupported, match=f"127.0.0.1:{node.port}|node"):
                await view.position()
        else:
            assert (await view.position()).messages == 0
