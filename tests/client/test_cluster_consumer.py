"""A consumer at all members of a cluster of `atalanta run` processes that balance nothing: OFF."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.client import (
    ClientError,
    Closed,
    Connection,
    Consumer,
    IllegalState,
    Message,
    NotAuthorized,
    QueueDoesNotExist,
    ReceivedMessage,
    connect,
)
from atalanta.client.blocking import connect as connect_blocking
from atalanta.client.cluster_consumer import ClusterConsumer
from tests.broker_process import BrokerProcess
from tests.broker_xml import ORDERS, RETRIES, cluster, permissions, write_broker_xml, write_users
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.process

OFF = f"<message-load-balancing>OFF</message-load-balancing>{RETRIES}"
DEADLINE_S = 60
REFRESHED = "<configuration-file-refresh-period>200</configuration-file-refresh-period>"


class Nodes:
    """Three nodes, of which the last one has no queue `orders`."""

    def __init__(self, folder: Path, stack: ExitStack, queues: tuple[bool, ...]) -> None:
        self.ports = [free_port() for _ in queues]
        self.brokers: list[BrokerProcess] = []
        for number, port in enumerate(self.ports):
            others = [each for each in self.ports if each != port]
            more = cluster(port, others, OFF) + (ORDERS if queues[number] else "")
            path = write_broker_xml(folder / str(number), port, f"node-{number}", more)
            self.brokers.append(BrokerProcess(path))
        for each in self.brokers:
            stack.enter_context(each)

    def url(self, options: str = "") -> str:
        servers = ",".join(f"tcp://127.0.0.1:{port}" for port in self.ports)
        return f"({servers})?reconnectAttempts=-1&retryInterval=100{options}"

    def only(self, number: int) -> str:
        return f"tcp://127.0.0.1:{self.ports[number]}?reconnectAttempts=-1&initialConnectAttempts=-1&stay=true&retryInterval=100"

    async def send(self, number: int, *texts: str, queue: str = "orders") -> None:
        async with connect(self.only(number)) as connection, await connection.producer(queue) as producer:
            for text in texts:
                await producer.send(Message(text=text))

    async def see_each_other(self, connection: Connection) -> None:
        while len(connection.topology) < len(self.ports):
            await asyncio.sleep(0.05)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(tmp_path, stack, (True, True, False))


async def texts(consumer: Consumer, count: int) -> list[str | None]:
    found: list[ReceivedMessage] = []
    while len(found) < count:
        message = await consumer.receive(20)
        assert message is not None, [each.text for each in found]
        found.append(message)
        await message.acknowledge()
    return [each.text for each in found]


@pytest.mark.parametrize("window", [None, 0, 300])
def test_messages_of_each_member_come_in_their_order(nodes: Nodes, window: int | None) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), connect(nodes.url("&blockOnAcknowledge=true")) as connection:
            await nodes.see_each_other(connection)
            for number in range(2):
                await nodes.send(number, *(f"{number}.{index}" for index in range(10)))
            async with await connection.consumer("orders", members="all", window=window) as consumer:
                assert isinstance(consumer, ClusterConsumer)
                found = await texts(consumer, 20)
                for number in range(2):
                    own = [each for each in found if each and each.startswith(f"{number}.")]
                    assert own == [f"{number}.{index}" for index in range(10)]
                assert await consumer.receive(0) is None
                await nodes.send(1, "later")
                while (late := await consumer.receive(0)) is None:
                    await asyncio.sleep(0.01)
                assert late.text == "later"
                await late.acknowledge()
                # A queue that is made later is found, and none was made.
                async with connect(nodes.only(2)) as third:
                    assert not (await third.query_queue("orders")).exists
                    await third.create_queue("orders", routing="anycast")
                await nodes.send(2, "third")
                assert await texts(consumer, 1) == ["third"]
                assert len(consumer.members) == 3

    asyncio.run(main())


def test_members_go_and_come(nodes: Nodes) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), connect(nodes.url()) as connection:
            await nodes.see_each_other(connection)
            async with await connection.consumer("orders", members="all") as consumer:
                for round_number in range(2):
                    for number in range(2):
                        nodes.brokers[number].end(signal.SIGKILL)
                        nodes.brokers[number].start()
                        await nodes.send(number, f"{round_number}.{number}")
                        assert await texts(consumer, 1) == [f"{round_number}.{number}"]

    asyncio.run(main())


def test_cumulative_counts_at_each_member(nodes: Nodes) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), connect(nodes.url("&blockOnAcknowledge=true")) as connection:
            await nodes.see_each_other(connection)
            for number in range(2):
                await nodes.send(number, *(f"{number}.{index}" for index in range(3)))
            async with await connection.consumer("orders", members="all", ack="cumulative") as consumer:
                received = [await consumer.receive(20) for _ in range(6)]
                fourth = received[3]
                assert fourth is not None
                await fourth.acknowledge()
                acknowledged = {each.text for each in received[:4] if each is not None}
            async with await connection.consumer("orders", members="all") as again:
                rest = set(await texts(again, 2))
            assert len(acknowledged | rest) == 6 and not acknowledged & rest

    asyncio.run(main())


def test_given_back_and_browsed(nodes: Nodes) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), connect(nodes.url("&blockOnAcknowledge=true")) as connection:
            await nodes.see_each_other(connection)
            for number in range(2):
                await nodes.send(number, f"of {number}")
            for _ in range(2):
                async with await connection.consumer("orders", browse=True, members="all") as browser:
                    assert sorted([str(each.text) async for each in browser]) == ["of 0", "of 1"]
            async with await connection.consumer("orders", members="all") as consumer:
                first = await consumer.receive(20)
                assert first is not None
                await first.release()
                found = await texts(consumer, 2)
                assert sorted(map(str, found)) == ["of 0", "of 1"]
                assert await consumer.receive(0.1) is None

    asyncio.run(main())


def test_what_has_no_such_consumer_is_refused_by_name(nodes: Nodes) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), connect(nodes.url()) as connection:
            await nodes.see_each_other(connection)
            with pytest.raises(QueueDoesNotExist, match="queue nothing exists at no member of the cluster"):
                await connection.consumer("nothing", members="all")
            with pytest.raises(ValueError, match="members='some' is not 'all'"):
                await connection.consumer("orders", members="some")
            await connection.create_queue("mine", routing="anycast", temporary=True)
            with pytest.raises(IllegalState, match="queue mine is temporary: it exists at one member only"):
                await connection.consumer("mine", members="all")
            queue = await connection.create_subscription("news", "sub")
            with pytest.raises(IllegalState, match="is a subscription: each member has its own"):
                await connection.consumer(f"news::{queue}", members="all")
            with pytest.raises(IllegalState, match="topic news: each member has its own subscriptions"):
                await connection.consumer("topic://news", members="all")
            async with await connection.consumer("queue://orders", members="all") as consumer:
                assert consumer.queue == "orders"
            async with connection.transaction() as transaction:
                with pytest.raises(IllegalState, match="members: a transaction is committed at one node"):
                    await transaction.consumer("orders", members="all")

    asyncio.run(main())


def test_rights_are_those_of_each_member(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ports = [free_port(), free_port()]

    def write(number: int, roles: str) -> Path:
        port, other = ports[number], ports[1 - number]
        more = cluster(port, [other], OFF) + permissions(roles) + ORDERS + REFRESHED
        path = write_broker_xml(tmp_path / str(number), port, f"node-{number}", more, security=True)
        write_users(path, {"ann": "secret", "bob": "secret"}, {"team": "ann,bob", "others": "bob"})
        return path

    def url(user: str, number: int = 0) -> str:
        return f"tcp://127.0.0.1:{ports[number]}?user={user}&password=secret&stay=true"

    async def send(number: int, text: str) -> None:
        async with connect(url("bob", number)) as connection, await connection.producer("orders") as producer:
            await producer.send(Message(text=text))

    async def main(second: BrokerProcess) -> None:
        async with asyncio.timeout(DEADLINE_S), connect(url("ann")) as connection:
            while len(connection.topology) < len(ports):
                await asyncio.sleep(0.05)
            refused = f"member .* at 127.0.0.1:{ports[1]}: .*ann does not have permission"
            with pytest.raises(NotAuthorized, match=refused):
                await connection.consumer("orders", members="all")
            second.end(signal.SIGTERM)
            while len(connection.topology) == len(ports):
                await asyncio.sleep(0.05)
            async with await connection.consumer("orders", members="all") as consumer:
                second.start()
                while "ann does not have permission" not in caplog.text:
                    await asyncio.sleep(0.05)
                await send(1, "there")
                await send(0, "here")
                assert await texts(consumer, 1) == ["here"]
                write(1, "team,others")
                assert await texts(consumer, 1) == ["there"]
        assert caplog.text.count("ann does not have permission") == 1

    with ExitStack() as stack:
        first, second = BrokerProcess(write(0, "team")), BrokerProcess(write(1, "others"))
        stack.enter_context(first)
        stack.enter_context(second)
        asyncio.run(main(second))


def test_the_end_of_the_connection_is_told(nodes: Nodes) -> None:
    async def main() -> None:
        url = f"tcp://127.0.0.1:{nodes.ports[0]}"
        async with asyncio.timeout(DEADLINE_S), connect(url) as connection:
            consumer = await connection.consumer("orders", members="all")
            nodes.brokers[0].end(signal.SIGKILL)
            with pytest.raises(ClientError):
                await consumer.receive()
            # Also later calls: a program that was busy would take None for an empty queue.
            for timeout_s in (None, 1, 0):
                with pytest.raises(ClientError):
                    await consumer.receive(timeout_s)
            # Nothing can be opened either, and nobody waits for that.
            with pytest.raises(ClientError):
                await connection.consumer("orders", members="all")

    asyncio.run(main())


def test_a_blocking_program_has_it_too(nodes: Nodes) -> None:
    with connect_blocking(nodes.url("&blockOnAcknowledge=true")) as connection:
        asyncio.run(nodes.send(0, "a", "b"))
        asyncio.run(nodes.send(1, "c"))
        with connection.consumer("orders", members="all") as consumer:
            found = []
            for _ in range(3):
                message = consumer.receive(20)
                assert message is not None
                message.acknowledge()
                found.append(str(message.text))
            assert sorted(found) == ["a", "b", "c"]
            assert consumer.receive(0) is None
        with pytest.raises(QueueDoesNotExist), connection.consumer("nothing", members="all"):
            pass


def test_a_blocking_consumer_that_is_closed_answers_like_any_other(nodes: Nodes) -> None:
    asyncio.run(nodes.send(0, "a", "b"))
    connection = connect_blocking(nodes.only(0))
    consumer = connection.consumer("orders", members="all")
    message = consumer.receive(20)
    assert message is not None
    other: list[object] = []
    waiting = threading.Thread(target=lambda: other.extend(consumer.receive() for _ in range(2)), daemon=True)
    waiting.start()
    until(lambda: consumer.received == 2, lambda: "b is missing")
    connection.close()
    waiting.join(20)
    assert len(other) == 2 and other[1] is None
    message.acknowledge()
    assert consumer.receive() is None and list(consumer) == [] and consumer.buffered == 0
    consumer.close()
    with pytest.raises(Closed):
        connection.consumer("orders", members="all")


def test_a_blocking_consumer_does_not_survive_a_fork(nodes: Nodes) -> None:
    with connect_blocking(nodes.only(0)) as connection, connection.consumer("orders", members="all") as consumer:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)  # instead of a wait for ever
            try:
                consumer.receive(0)
            except IllegalState:
                consumer.close()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        asyncio.run(nodes.send(0, "a"))
        message = consumer.receive(20)
        assert message is not None and message.text == "a"


def test_the_command_consumes_at_all_members(nodes: Nodes) -> None:
    asyncio.run(nodes.send(0, "a"))
    asyncio.run(nodes.send(1, "b"))
    # The third node has no such queue.
    command = ["consume", "orders", "--members", "all", "--url", f"tcp://127.0.0.1:{nodes.ports[2]}"]
    done = CliRunner().invoke(application, [*command, "--count", "2", "--timeout", "20"])
    assert sorted(done.stdout.split()) == ["a", "b"], done.output
    done = CliRunner().invoke(application, [*command, "--timeout", "0"])
    assert done.exit_code == 0 and "received 0 messages" in done.output
    refused = CliRunner().invoke(application, ["consume", "topic://news", "--members", "all"])
    assert refused.exit_code == 2 and "--members is for a queue" in refused.output


def test_a_member_that_answers_nothing_keeps_no_connection_open(nodes: Nodes) -> None:
    async def main() -> None:
        url = f"tcp://127.0.0.1:{nodes.ports[0]}?callTimeout=500"
        async with asyncio.timeout(DEADLINE_S):
            connection = await connect(url)
            await nodes.see_each_other(connection)
            consumer = await connection.consumer("orders", members="all")
            assert isinstance(consumer, ClusterConsumer)
            os.kill(nodes.brokers[1].broker, signal.SIGSTOP)
            try:
                await connection.close()
            finally:
                os.kill(nodes.brokers[1].broker, signal.SIGCONT)
            assert not connection.connected and consumer.closed
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
