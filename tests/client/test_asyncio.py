"""The asyncio client against a fake broker behind a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from atalanta.client import (
    ClientError,
    Closed,
    ConnectFailed,
    ConnectionLost,
    FirstElement,
    LogViewUnsupported,
    Message,
    NotAuthorized,
    QueueDoesNotExist,
    QueueExists,
    SendFailed,
    TransactionRolledBack,
    connect,
    run,
)
from atalanta.client.blocking import connect as connect_blocking
from atalanta.client.shells.asyncio_shell import AsyncioShell
from tests.client.fake_server import FakeServer
from tests.waiting import reached
from tests.wire.core.client.fake_broker import PASSWORD

AGAIN = "reconnectAttempts=-1&retryInterval=20&stay=true"


def test_on(*queues: str) -> Callable[[Callable[[FakeServer], Awaitable[None]]], None]:
    """Decorator-free: runs a body with a server."""

    def start(body: Callable[[FakeServer], Awaitable[None]]) -> None:
        async def main() -> None:
            async with FakeServer(*queues) as server, asyncio.timeout(20):
                await body(server)

        asyncio.run(main())

    return start


test_on.__test__ = False  # type: ignore[attr-defined]


def test_send_receive_acknowledge() -> None:
    async def body(server: FakeServer) -> None:
        async with connect(server.url(), user="u", password=PASSWORD) as connection:
            assert str(connection.server) == server.url()
            producer = await connection.producer("q")
            await producer.send(Message(text="one", properties={"n": 1}))
            async with await connection.consumer("q") as consumer:
                message = await anext(consumer)
                assert (message.text, message.properties, message.queue) == ("one", {"n": 1}, "q")
                await message.acknowledge()
            assert (await connection.query_queue("q")).message_count == 0
            await reached(lambda: len(connection.topology) == 1)
            assert connection.topology[0].port == server.port

    test_on("q")(body)


def test_the_window_bounds_what_is_unconfirmed() -> None:
    async def body(server: FakeServer) -> None:
        url = server.url("sendWindow=10")
        async with connect(url, user="u", password=PASSWORD) as connection:
            producer = await connection.producer("q")
            server.broker.confirm = False
            for number in range(9):
                await producer.send_soon(Message(text=str(number)))
            tenth = asyncio.ensure_future(_awaited(producer.send_soon(Message(text="9"))))
            await reached(lambda: len(server.broker.queues["q"]) == 10)
            assert not tenth.done() and producer.unconfirmed == 10
            server.broker.confirm = True
            server.broker.connections[0].release()
            server.links[0].flush()
            await tenth
            await producer.drain()
            assert (producer.confirmed, producer.unconfirmed) == (10, 0)

    test_on("q")(body)


async def _awaited(something: Awaitable[None]) -> None:
    await something


def test_refusals_of_pipelined_sends_are_raised_by_drain() -> None:
    async def body(server: FakeServer) -> None:
        async with connect(server.url(), user="u", password=PASSWORD) as connection:
            producer = await connection.producer("q")
            server.broker.refuse_sends = 105
            for _ in range(3):
                await producer.send_soon(Message(text="x"))
            with pytest.raises(SendFailed) as failed:
                await producer.drain()
            assert failed.value.count == 3 and isinstance(failed.value.errors[0], NotAuthorized)
            with pytest.raises(NotAuthorized):
                await producer.send(Message(text="x"))
            server.broker.refuse_sends = 0
            await producer.send(Message(text="x"))

    test_on("q")(body)


def test_a_lost_connection_comes_back_and_nothing_is_lost_or_doubled() -> None:
    async def body(server: FakeServer) -> None:
        url = server.url(AGAIN)
        told: list[str] = []
        async with connect(url, user="u", password=PASSWORD) as connection:
            connection.on_lost(lambda: told.append("lost"))
            connection.on_reconnected(lambda: told.append("back"))
            producer = await connection.producer("q")
            for number in range(300):
                if number in (100, 200):
                    server.broker.confirm = number == 200
                    await reached(lambda: producer.unconfirmed == 0 or not server.broker.confirm)
                if number in (150, 250):
                    server.cut()
                    server.broker.confirm = True
                await producer.send_soon(Message(text=str(number)))
                if number % 10 == 0:
                    await asyncio.sleep(0)
            await producer.drain()
            assert [m.text() for m in server.broker.queues["q"]] == [str(n) for n in range(300)]
            assert producer.resent > 0
            assert told == ["lost", "back", "lost", "back"] and connection.lost_count == 2

    test_on("q")(body)


class ClosedTransport(asyncio.Transport):
    """As uvloop's when the connection is lost and the protocol has not been told yet."""

    def is_closing(self) -> bool:
        return True

    def write(self, data: object) -> None:
        raise RuntimeError("the handler is closed")

    def close(self) -> None:
        return None

    def abort(self) -> None:
        return None


def test_bytes_written_before_a_loss_is_noticed_are_no_error() -> None:
    """The message is sent again, as everything that nobody has confirmed."""

    async def body(server: FakeServer) -> None:
        async with connect(server.url(AGAIN), user="u", password=PASSWORD) as connection:
            producer = await connection.producer("q")
            shell = connection.shell
            assert isinstance(shell, AsyncioShell) and shell.link is not None
            link = shell.link
            link.transport = ClosedTransport()
            sending = asyncio.create_task(producer.send(Message(text="x")))
            await reached(lambda: producer.unconfirmed == 1)
            shell.flush()
            server.cut()
            await sending
            assert [m.text() for m in server.broker.queues["q"]] == ["x"]

    test_on("q")(body)


def test_a_server_away_for_a_while_is_waited_for() -> None:
    async def body(server: FakeServer) -> None:
        async with connect(server.url(AGAIN), user="u", password=PASSWORD) as connection:
            producer = await connection.producer("q")
            await server.stop()
            await reached(lambda: not connection.connected)
            sending = asyncio.ensure_future(producer.send(Message(text="patient")))
            question = asyncio.ensure_future(connection.query_queue("q"))
            await asyncio.sleep(0.1)
            assert not sending.done() and not question.done()
            await server.start()
            await sending
            assert (await question).exists

    test_on("q")(body)


def test_messages_of_a_lost_connection_come_again() -> None:
    async def body(server: FakeServer) -> None:
        async with connect(server.url(AGAIN), user="u", password=PASSWORD) as connection:
            producer = await connection.producer("q")
            for number in range(3):
                await producer.send(Message(text=str(number)))
            consumer = await connection.consumer("q", ack="individual")
            first = await anext(consumer)
            second = await anext(consumer)
            first.acknowledge()
            await reached(lambda: len(server.links[0].peer.consumers) == 1)
            await connection.query_queue("q")  # the acknowledgement has arrived before this
            server.cut()
            await reached(lambda: second.lost)
            await second.acknowledge()  # quietly nothing
            again = [await anext(consumer) for _ in range(2)]
            assert [m.text for m in again] == ["1", "2"] and not again[0].lost

    test_on("q")(body)


def test_transactions() -> None:
    async def body(server: FakeServer) -> None:
        queue = server.broker.queues["q"]
        async with connect(server.url(AGAIN), user="u", password=PASSWORD) as connection:
            async with connection.transaction() as transaction:
                await transaction.send("q", Message(text="1"))
                assert not queue
            assert [m.text() for m in queue] == ["1"]
            with pytest.raises(ZeroDivisionError):
                async with connection.transaction() as transaction:
                    await transaction.send("q", Message(text="never"))
                    raise ZeroDivisionError
            with pytest.raises(TransactionRolledBack):
                async with connection.transaction() as transaction:
                    await transaction.send("q", Message(text="lost"))
                    await connection.query_queue("q")
                    server.cut()
                    await reached(lambda: connection.lost_count == 1)
            assert [m.text() for m in queue] == ["1"]
            transaction = await connection.transaction().open()
            consumer = await transaction.consumer("q")
            message = await anext(consumer)
            message.acknowledge()
            await transaction.rollback()
            assert message.lost
            message = await anext(consumer)
            message.acknowledge()
            await transaction.commit()
            await transaction.close()
            assert not queue

    test_on("q")(body)


def test_receive_with_a_time_limit_and_browsing() -> None:
    async def body(server: FakeServer) -> None:
        async with connect(server.url(), user="u", password=PASSWORD) as connection:
            producer = await connection.producer("q")
            consumer = await connection.consumer("q", ack="auto")
            assert await consumer.receive(0) is None
            assert await consumer.receive(0.01) is None
            for number in range(3):
                await producer.send(Message(text=str(number)))
            message = await consumer.receive(5)
            assert message is not None and message.text == "0"
            await consumer.close()
            assert [m async for m in consumer] == []
            browser = await connection.consumer("q", browse=True)
            assert [m.text async for m in browser] == ["1", "2"]
            assert len(server.broker.queues["q"]) == 2

    test_on("q")(body)


def test_queues_are_made_where_wanted() -> None:
    async def body(server: FakeServer) -> None:
        queues = server.broker.queues
        async with connect(server.url(), user="u", password=PASSWORD) as connection:
            await connection.consumer("made")
            await connection.producer("queue://produced")
            assert {"made", "produced"} <= set(queues)
            with pytest.raises(QueueExists):
                await connection.create_queue("made")
            await connection.create_queue("made", ignore_existing=True)
            with pytest.raises(QueueDoesNotExist):
                await connection.delete_queue("nobody's")
            with pytest.raises(LogViewUnsupported, match=str(server.port)):
                await connection.logview("made").position()
        url = server.url("autoCreateQueues=false")
        async with connect(url, user="u", password=PASSWORD) as connection:
            with pytest.raises(QueueDoesNotExist):
                await connection.consumer("unmade")

    test_on()(body)


def test_wrong_passwords_and_absent_servers() -> None:
    async def body(server: FakeServer) -> None:
        with pytest.raises(NotAuthorized):
            await connect(server.url(AGAIN), user="u", password="guess")
        await server.stop()
        absent = server.url("initialConnectAttempts=2&retryInterval=5")
        with pytest.raises(ConnectFailed, match=str(server.port)):
            await connect(absent, user="u", password=PASSWORD)
        await server.start()

    test_on()(body)


def test_the_second_server_serves_when_the_first_is_away() -> None:
    async def body(server: FakeServer) -> None:
        url = f"(tcp://127.0.0.1:1,tcp://127.0.0.1:{server.port})"
        async with connect(url, user="u", password=PASSWORD) as connection:
            assert connection.server is not None and connection.server.port == server.port

    test_on()(body)


@pytest.mark.parametrize("blocking", [False, True])
def test_the_second_server_serves_when_the_first_one_starts_or_stops(blocking: bool) -> None:
    async def main() -> None:
        async with FakeServer("q") as stopping, FakeServer("q") as there:
            stopping.broker.refuse_sessions = 112
            url = f"({stopping.url()},{there.url()})?user=u&password={PASSWORD}"
            if blocking:
                other = await asyncio.to_thread(connect_blocking, url, balancing=FirstElement())
                assert other.server is not None and other.server.port == there.port
                await asyncio.to_thread(other.close)
            else:
                async with connect(url, balancing=FirstElement()) as connection:
                    assert connection.server is not None and connection.server.port == there.port
            there.broker.refuse_sessions = 112
            with pytest.raises(ConnectFailed, match="the broker refused a session: not now"):
                await connect(url)
            stopping.broker.refuse_sessions = 105
            with pytest.raises(NotAuthorized):
                await connect(url, balancing=FirstElement())

    asyncio.run(main())


def test_without_reconnection_a_loss_ends_everything() -> None:
    async def body(server: FakeServer) -> None:
        async with connect(server.url(), user="u", password=PASSWORD) as connection:
            consumer = await connection.consumer("q")
            waiting = asyncio.ensure_future(consumer.receive())
            await asyncio.sleep(0)
            server.cut()
            with pytest.raises(ClientError):
                await waiting
            await reached(lambda: connection.shell.engine.failed is not None)
            with pytest.raises(ConnectionLost):
                await connection.producer("q")

    test_on("q")(body)


def test_a_closed_connection_says_so() -> None:
    async def body(server: FakeServer) -> None:
        connection = await connect(server.url(), user="u", password=PASSWORD)
        consumer = await connection.consumer("q")
        producer = await connection.producer("q")
        await connection.close()
        await connection.close()
        assert [m async for m in consumer] == []
        with pytest.raises(Closed):
            await producer.send(Message())

    test_on("q")(body)


def test_run_gives_the_result() -> None:
    async def main() -> int:
        await asyncio.sleep(0)
        return 7

    assert run(main()) == 7


@pytest.mark.parametrize("ack", ["individual", "cumulative"])
def test_an_awaited_acknowledgement_is_confirmed_or_raises(ack: str) -> None:
    async def body(server: FakeServer) -> None:
        url = server.url(f"{AGAIN}&blockOnAcknowledge=true")
        async with connect(url, user="u", password=PASSWORD) as connection:
            producer = await connection.producer("q")
            await producer.send(Message(text="one"))
            consumer = await connection.consumer("q", ack=ack)
            message = await anext(consumer)
            server.cut()
            for _ in range(2):  # with the loss, and after it
                with pytest.raises(ConnectionLost):
                    await message.acknowledge()
            again = await anext(consumer)
            await again.acknowledge()
            assert message.lost and not again.lost
            assert (await connection.query_queue("q")).message_count == 0

    test_on("q")(body)


@pytest.mark.parametrize("window", [1, 700, 3_000, 0, -1])
def test_a_browser_reads_the_whole_queue_whatever_its_window(window: int) -> None:
    async def body(server: FakeServer) -> None:
        async with connect(server.url(), user="u", password=PASSWORD) as connection:
            producer = await connection.producer("q")
            for number in range(100):
                await producer.send_soon(Message(text=str(number)))
            await producer.drain()
            async with await connection.consumer("q", browse=True, window=window) as browser:
                assert [m.text async for m in browser] == [str(n) for n in range(100)]
                assert await browser.receive(0.05) is None

    test_on("q")(body)


def test_the_close_of_a_connection_follows_messages_that_wait_for_credits() -> None:
    async def body(server: FakeServer) -> None:
        url = server.url("producerWindowSize=200&sendWindow=1000")
        async with connect(url, user="u", password=PASSWORD) as connection:
            producer = await connection.producer("q")
            for number in range(20):
                producer.send_soon(Message(text=str(number)))
            assert producer.blocked
        assert [m.text() for m in server.broker.queues["q"]] == [str(n) for n in range(20)]

    test_on("q")(body)


def test_losses_and_reconnects_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def body(server: FakeServer) -> None:
        async with connect(server.url(AGAIN), user="u", password=PASSWORD) as connection:
            server.cut()
            await reached(lambda: connection.lost_count == 1 and connection.connected)
            await connection.query_queue("q")
            await reached(lambda: "again" in caplog.text)
        once = server.url("reconnectAttempts=1&retryInterval=10")
        async with connect(once, user="u", password=PASSWORD) as connection:
            await server.stop()
            with pytest.raises(ConnectionLost):
                while True:
                    await connection.query_queue("q")
        await server.start()

    caplog.set_level("INFO", "atalanta.client")
    test_on("q")(body)
    told = [(each.levelname, each.getMessage()) for each in caplog.records]
    assert [level for level, _ in told] == ["WARNING", "INFO", "WARNING", "ERROR"]
    assert "was lost" in told[0][1] and "connected to tcp://127.0.0.1:" in told[1][1]
    assert "no connection to" in told[3][1]
