"""What options of a URL promise: groups, rates, acknowledgement in advance, time of a call without a connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.client import CallTimedOut, DuplicateMetadata, IllegalState, Message, Xid, connect
from atalanta.client.blocking import connect as connect_blocking
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.client.fake_server import FakeServer, ServerThread, meet
from tests.ports import free_port
from tests.wire.core.client.fake_broker import PASSWORD

LOGIN = f"user=u&password={PASSWORD}"
DEADLINE_S = 20


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    folder: Path = tmp_path_factory.mktemp("node")
    with BrokerProcess(write_broker_xml(folder, port)):
        yield f"tcp://127.0.0.1:{port}"


def groups(url: str, queue: str, options: str) -> list[str | None]:
    """The groups of seven messages: of two producers, a transaction and a branch."""
    with connect_blocking(f"{url}?{options}") as connection:
        for _ in range(2):
            with connection.producer(queue, routing="anycast") as producer:
                producer.send(Message(text="1", group_id="its own"))
                producer.send_soon(Message(text="2"))
        with connection.transaction() as tx:
            tx.send(queue, Message(text="3"))
            tx.send(queue, Message(text="4"))
        with connection.xa_resource.branch(Xid(1, b"b", queue.encode())) as branch:
            branch.send(queue, Message(text="5"))
            branch.prepare()
        connection.xa_resource.commit(Xid(1, b"b", queue.encode()))
        return [each.group_id for each in connection.consumer(queue, browse=True)]


@pytest.mark.process
def test_a_group_for_all_messages(url: str) -> None:
    assert groups(url, "one", "groupID=x%20y") == ["x y"] * 7
    assert groups(url, "none", "") == ["its own", None, "its own", None, None, None, None]


@pytest.mark.process
def test_a_group_for_each_producer(url: str) -> None:
    found = groups(url, "own", "autoGroup=true&groupID=x")
    assert None not in found and "x" not in found and "its own" not in found
    first, second, tx, branch = found[:2], found[2:4], found[4:6], found[6:]
    assert len({*first}) == len({*second}) == len({*tx}) == 1
    assert len({*first, *second, *tx, *branch}) == 4


@pytest.mark.process
def test_acknowledged_in_advance(url: str) -> None:
    """The broker has no such message any more when the client gets it. In a transaction it has."""
    with connect_blocking(url) as sender:
        producer = sender.producer("early", routing="anycast")
        for number in range(4):
            producer.send(Message(text=str(number)))
        with connect_blocking(f"{url}?preAcknowledge=true&consumerWindowSize=0&blockOnAcknowledge=true") as client:
            with client.consumer("early") as consumer:
                first, second = consumer.receive(5), consumer.receive(5)
                assert first is not None and second is not None
                first.acknowledge()
                with pytest.raises(IllegalState, match="preAcknowledge=true: the broker has no such message any more"):
                    second.release()
            with client.transaction() as tx:
                third = tx.consumer("early").receive(5)
                assert third is not None and third.text == "2"
                tx.rollback()
        assert [each.text for each in sender.consumer("early", browse=True)] == ["2", "3"]


@pytest.mark.process
def test_a_client_id_for_all_that_share_it(url: str) -> None:
    shared = f"{url}?clientID=desk&enableSharedClientID=true"
    with connect_blocking(shared), connect_blocking(shared):
        pass
    with connect_blocking(f"{url}?clientID=alone"), pytest.raises(DuplicateMetadata):
        connect_blocking(f"{url}?clientID=alone")


@pytest.mark.parametrize("way", ["send", "send_soon", "transaction"])
def test_the_rate_of_a_producer(way: str) -> None:
    async def main() -> None:
        async with FakeServer("q") as server, asyncio.timeout(DEADLINE_S):
            async with connect(server.url(f"{LOGIN}&producerMaxRate=20")) as connection:
                began_s = time.monotonic()
                if way == "transaction":
                    async with connection.transaction() as tx:
                        for number in range(11):
                            await tx.send("q", Message(text=str(number)))
                else:
                    producer = await connection.producer("q")
                    for number in range(11):
                        await getattr(producer, way)(Message(text=str(number)))
                assert 0.5 <= time.monotonic() - began_s < 3

    asyncio.run(main())


def test_the_rate_of_a_producer_that_many_share() -> None:
    async def main() -> None:
        async with FakeServer("q") as server, asyncio.timeout(DEADLINE_S):
            async with connect(server.url(f"{LOGIN}&producerMaxRate=20")) as connection:
                producer = await connection.producer("q")
                began_s = time.monotonic()
                await asyncio.gather(*(producer.send(Message(text=str(number))) for number in range(11)))
                assert 0.5 <= time.monotonic() - began_s < 3

    asyncio.run(main())


def test_the_rates_of_a_blocking_client() -> None:
    with ServerThread("q") as server, connect_blocking(
        server.url(f"{LOGIN}&producerMaxRate=20&consumerMaxRate=20")
    ) as connection:
        began_s = time.monotonic()
        producer = connection.producer("q")
        for number in range(6):
            producer.send_soon(Message(text=str(number)))
        producer.drain()
        sent_s = time.monotonic()
        consumer = connection.consumer("q")
        texts = [found.text for found in (consumer.receive(5) for _ in range(6)) if found is not None]
        assert texts == [str(number) for number in range(6)]
        assert 0.25 <= sent_s - began_s < 3 and 0.25 <= time.monotonic() - sent_s < 3


def test_the_rate_of_a_consumer() -> None:
    async def main() -> None:
        async with FakeServer("q") as server, asyncio.timeout(DEADLINE_S):
            async with connect(server.url(f"{LOGIN}&consumerMaxRate=20")) as connection:
                producer = await connection.producer("q")
                for number in range(11):
                    await producer.send(Message(text=str(number)))
                began_s, texts = time.monotonic(), []
                async for message in await connection.consumer("q"):
                    texts.append(message.text)
                    if len(texts) == 11:
                        break
                assert texts == [str(number) for number in range(11)]
                assert 0.5 <= time.monotonic() - began_s < 3

    asyncio.run(main())


def test_a_call_waits_so_long_for_a_lost_connection() -> None:
    async def main() -> None:
        async with FakeServer("q") as server, asyncio.timeout(DEADLINE_S):
            url = server.url(f"{LOGIN}&reconnectAttempts=-1&retryInterval=50&callFailoverTimeout=400")
            async with connect(url) as connection:
                producer = await connection.producer("q")
                await server.stop()
                await asyncio.sleep(0.6)  # the time counts from the call
                began_s = time.monotonic()
                send = producer.send(Message(text="1"))
                for call in (send, connection.create_queue("late"), connection.consumer("q")):
                    with pytest.raises(CallTimedOut, match=r"no connection within 400 ms: tcp://127.0.0.1"):
                        await call
                assert 1.2 <= time.monotonic() - began_s < 5
                await server.start()
                await producer.send(Message(text="2"))
                assert "late" not in server.broker.queues, "the queue is not created when nobody waits for it"
                await asyncio.sleep(0.2)
                assert not any(each.consumers for each in server.broker.connections if not each.gone)

    asyncio.run(main())


def test_a_call_of_a_blocking_client_too() -> None:
    with ServerThread("q") as server:
        url = server.url(f"{LOGIN}&reconnectAttempts=-1&retryInterval=50&callFailoverTimeout=400")
        with connect_blocking(url) as connection:
            producer = connection.producer("q")
            asyncio.run_coroutine_threadsafe(server.stop(), server._server.get_loop()).result(5)  # type: ignore[union-attr]
            began_s = time.monotonic()
            with pytest.raises(CallTimedOut, match="no connection within 400 ms"):
                producer.send(Message(text="1"))
            assert 0.4 <= time.monotonic() - began_s < 3


@pytest.mark.parametrize("attempts", ["reconnectAttempts=1&failoverAttempts=-1", "failoverAttempts=-1"])
def test_a_client_goes_to_another_member_when_its_own_does_not_come_back(attempts: str) -> None:
    async def main() -> None:
        async with FakeServer("q") as own, FakeServer("q") as other, asyncio.timeout(DEADLINE_S):
            meet([own, other])
            async with connect(own.url(f"{LOGIN}&{attempts}&retryInterval=50")) as connection:
                producer = await connection.producer("q")
                await producer.send(Message(text="1"))
                await own.stop()
                await producer.send(Message(text="2"))
                assert connection.server is not None and connection.server.port == other.port
            assert (own.broker.messages, other.broker.messages) == (1, 1)
            await own.start()

    asyncio.run(main())


def test_the_own_end_is_bound_to_an_address() -> None:
    """127.0.0.0/8 is of this host."""

    async def main() -> None:
        async with FakeServer("q") as server, asyncio.timeout(DEADLINE_S):
            port = free_port()
            async with connect(server.url(f"{LOGIN}&localAddress=127.0.0.5&localPort={port}")):
                (link,) = server.links
                assert link.transport is not None
                assert link.transport.get_extra_info("peername") == ("127.0.0.5", port)

    asyncio.run(main())
    with ServerThread("q") as server, connect_blocking(server.url(f"{LOGIN}&localAddress=127.0.0.5")):
        (link,) = server.links
        assert link.transport is not None
        assert link.transport.get_extra_info("peername")[0] == "127.0.0.5"
