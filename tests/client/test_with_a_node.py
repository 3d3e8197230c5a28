"""The client against a real `atalanta run` process: a node killed mid-stream, and the log view."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from atalanta.client import (
    BranchRefused,
    Closed,
    Fenced,
    IncarnationChanged,
    Message,
    QueueKind,
    RangeLost,
    UnknownBranch,
    Xid,
    connect,
)
from atalanta.client.blocking import Consumer
from atalanta.client.blocking import connect as connect_blocking
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.ports import free_port

pytestmark = pytest.mark.process

MESSAGES = 3_000
KILLS = (1_000, 2_000)


def test_with_window_zero_nothing_comes_for_a_call_that_is_over(tmp_path: Path) -> None:
    port = free_port()
    with BrokerProcess(write_broker_xml(tmp_path, port)):
        url = f"tcp://127.0.0.1:{port}?consumerWindowSize=0"
        with connect_blocking(url) as first, connect_blocking(url) as second:
            second.create_queue("q", routing="anycast")
            early, late = first.consumer("q"), second.consumer("q")
            assert early.receive(0.05) is None and early.receive(0) is None
            for number in range(3):
                second.producer("q").send(Message(text=str(number)))
            got = [late.receive(10), late.receive(0), early.receive(0)]
            assert [each.text for each in got if each is not None] == ["0", "1", "2"]
            assert early.receive(0) is None and late.receive(0.05) is None
            second.producer("q").send(Message(text="later"))
            after = late.receive(10)
            assert after is not None and after.text == "later"


def test_with_window_zero_nothing_comes_for_a_call_that_was_cancelled(tmp_path: Path) -> None:
    port = free_port()

    async def main() -> None:
        url = f"tcp://127.0.0.1:{port}?consumerWindowSize=0"
        async with asyncio.timeout(60), connect(url) as first, connect(url) as second:
            await first.create_queue("q", routing="anycast")
            early, late = await first.consumer("q"), await second.consumer("q")
            for _ in range(2):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(early.receive(), 0.05)
            await first.query_queue("q")  # by now the broker has heard of it
            producer = await first.producer("q")
            await producer.send(Message(text="one"))
            message = await late.receive(10)
            assert message is not None and message.text == "one"
            waiting = asyncio.create_task(early.receive())
            await asyncio.sleep(0)
            await producer.send(Message(text="two"))
            message = await waiting
            assert message is not None and message.text == "two"

    with BrokerProcess(write_broker_xml(tmp_path, port)):
        asyncio.run(main())


def test_thousands_of_waits_in_vain_are_forgotten(tmp_path: Path) -> None:
    port = free_port()

    async def main() -> None:
        async with asyncio.timeout(60), connect(f"tcp://127.0.0.1:{port}") as client:
            await client.create_queue("q", routing="anycast")
            consumer = await client.consumer("q")
            for _ in range(1_500):
                assert await consumer.receive(0.0001) is None
            waiting = asyncio.create_task(consumer.receive(30))
            producer = await client.producer("q")
            await producer.send(Message(text="late"))
            message = await waiting
            assert message is not None and message.text == "late"
            await asyncio.sleep(0.05)
            assert (await client.query_queue("q")).exists and client.lost_count == 0

    with BrokerProcess(write_broker_xml(tmp_path, port)):
        asyncio.run(main())


def test_a_killed_node_loses_and_doubles_nothing(tmp_path: Path) -> None:
    port = free_port()
    # A compacted journal of many segments is part of the question.
    more = "<journal-file-size>256K</journal-file-size>"
    broker_xml = write_broker_xml(tmp_path, port, more=more)
    numbers = list(range(MESSAGES))

    def kill_and_restart(broker: BrokerProcess) -> None:
        assert broker.end(signal.SIGKILL) == -signal.SIGKILL
        broker.start()
        broker.wait_ready()

    async def main(broker: BrokerProcess) -> None:
        url = f"tcp://127.0.0.1:{port}?reconnectAttempts=-1&retryInterval=50&stay=true&sendWindow=300"
        # A small window: the consumers must not have all messages at hand when the broker dies.
        small = f"{url}&consumerWindowSize=20000"
        async with asyncio.timeout(90), connect(url) as sending, connect(small) as receiving:
            for queue in ("cumulative", "individual", "kept"):
                await sending.create_queue(queue, address="all", routing="multicast")
            producer = await sending.producer("all", routing="multicast")
            seen: dict[str, dict[object, bool]] = {"cumulative": {}, "individual": {}}

            async def receive(mode: str) -> None:
                # Acknowledgements that are not on disk yet are lost: their messages come again.
                consumer = await receiving.consumer(mode, ack=mode)
                async for message in consumer:
                    seen[mode].setdefault(message.properties["number"], True)
                    often = mode == "individual" or len(seen[mode]) % 20 == 0
                    if often or not consumer.buffered:
                        await message.acknowledge()

            services = [asyncio.create_task(receive(mode)) for mode in seen]
            kills: list[asyncio.Future[None]] = []
            for number in numbers:
                await producer.send_soon(Message(bytes(200), properties={"number": number}))
                if number in KILLS:
                    await asyncio.gather(*kills)
                    kills.append(asyncio.ensure_future(asyncio.to_thread(kill_and_restart, broker)))
            await producer.drain()
            await asyncio.gather(*kills)
            assert producer.confirmed == MESSAGES and producer.resent > 0
            assert sending.lost_count == len(KILLS)
            for queue, found in seen.items():
                while len(found) < MESSAGES or (await sending.query_queue(queue)).message_count:
                    assert not any(service.done() for service in services), services
                    await asyncio.sleep(0.02)
                assert list(found) == numbers, "in order"
            for service in services:
                service.cancel()
            assert (await sending.query_queue("kept")).message_count == MESSAGES
            consumer = await sending.consumer("kept", ack="auto")
            kept = [(await anext(consumer)).properties["number"] for _ in numbers]
            await consumer.close()  # sends the acknowledgements that it still holds
            assert kept == numbers and not (await sending.query_queue("kept")).message_count

    with BrokerProcess(broker_xml) as broker:
        asyncio.run(main(broker))


def test_a_consumer_outlives_the_restart_that_takes_its_automatic_queue(tmp_path: Path) -> None:
    port = free_port()
    url = f"tcp://127.0.0.1:{port}?reconnectAttempts=-1&retryInterval=50"

    async def main(broker: BrokerProcess) -> None:
        async with asyncio.timeout(60), connect(url) as connection:
            consumer = await connection.consumer("automatic", ack="auto")
            back = asyncio.Event()
            connection.on_reconnected(back.set)
            broker.end(signal.SIGKILL)
            broker.start()
            await asyncio.get_running_loop().run_in_executor(None, broker.wait_ready)
            await back.wait()
            producer = await connection.producer("automatic", routing="anycast")
            await producer.send(Message(text="x"))
            message = await consumer.receive(30)
            assert message is not None and message.text == "x"

    with BrokerProcess(write_broker_xml(tmp_path, port)) as broker:
        asyncio.run(main(broker))


def test_log_view(tmp_path: Path) -> None:
    port = free_port()
    with (
        BrokerProcess(write_broker_xml(tmp_path, port)),
        connect_blocking(f"tcp://127.0.0.1:{port}") as connection,
    ):
        producer = connection.producer("log", routing="anycast")
        for number in range(500):
            message = Message(b"x" * 1_000, properties={"n": number}, timestamp_ms=1_000 + number)
            producer.send_soon(message)
        producer.drain()
        view = connection.logview("log")
        position = view.position()
        assert (position.messages, position.last - position.first) == (500, 499)
        start = position.first - 1
        plan = view.plan(start, max_messages=100)
        assert (plan.messages, plan.end) == (100, start + 100)
        for _ in range(2):
            got = list(view.read(start, position.last, chunk_bytes=50_000))
            assert [message.properties["n"] for _, message in got] == list(range(500))
            assert [sequence for sequence, _ in got] == list(range(start + 1, start + 501))
        assert len(list(view.read_raw(start, position.last, chunk_bytes=50_000))) > 5
        for chunk_bytes in (50_000, 1 << 20):  # the longer one is read in one piece
            chunks = list(view.read_raw(start, position.last, chunk_bytes=chunk_bytes, by_columns=True))
            assert all(chunk.columns is not None for chunk in chunks)
            read = [(at, message.body, message.properties["n"]) for chunk in chunks for at, message in chunk.messages()]
            assert read == [(start + 1 + number, b"x" * 1_000, number) for number in range(500)]
        assert len(list(view.read(start, position.last, "n >= 490"))) == 10
        assert view.seek(1_100) == start + 100
        lease = view.lease("group", "first", 60_000)
        assert view.ack_through("group", lease.epoch, plan.end) == 100
        assert view.ack_through("group", lease.epoch, plan.end) == 0
        taken = view.lease("group", "second", 60_000)
        assert taken.epoch > lease.epoch and taken.acked_through == plan.end
        with pytest.raises(Fenced):
            view.ack_through("group", lease.epoch, plan.end)
        with pytest.raises(RangeLost):
            list(view.read(start, position.last))
        with pytest.raises(IncarnationChanged):
            connection.logview("log", "another").plan(start)
        assert view.lost_ranges(start, position.last) == []


def test_kinds_of_queues(tmp_path: Path) -> None:
    """Requests are answered, work, and survive a kill."""
    port = free_port()
    table = QueueKind(last_value_key="symbol", non_destructive=True)
    with (
        BrokerProcess(write_broker_xml(tmp_path, port)) as broker,
        connect_blocking(f"tcp://127.0.0.1:{port}?reconnectAttempts=-1&retryInterval=50") as connection,
    ):
        connection.create_queue("prices", routing="anycast", kind=table)
        connection.create_queue("ring", routing="anycast", kind=QueueKind(ring_size=2))
        producer = connection.producer("prices", routing="anycast")
        for symbol, price in (("IBM", "1"), ("SAP", "2"), ("IBM", "3")):
            producer.send(Message(text=price, properties={"symbol": symbol}))
        for number in range(5):
            connection.producer("ring", routing="anycast").send(Message(text=str(number)))
        broker.end(signal.SIGKILL)
        broker.start()
        broker.wait_ready()
        found = connection.query_queue("prices")
        assert (found.last_value_key, found.non_destructive, found.message_count) == ("symbol", True, 2)
        for _ in range(2):
            with connection.consumer("prices") as consumer:
                assert sorted(_texts(consumer, 2)) == ["2", "3"]
        assert connection.query_queue("ring").ring_size == 2
        with connection.consumer("ring") as consumer:
            assert _texts(consumer, 2) == ["3", "4"]


def _texts(consumer: Consumer, count: int) -> list[str]:
    texts: list[str] = []
    for _ in range(count):
        message = consumer.receive(5)
        assert message is not None
        texts.append(str(message.text))
        message.acknowledge()
    assert consumer.receive(0.1) is None
    return texts


def test_branches_are_prepared_and_then_committed_or_rolled_back(tmp_path: Path) -> None:
    port = free_port()
    config = write_broker_xml(tmp_path, port)
    kept, dropped = Xid(7, b"kept", b"global"), Xid(7, b"dropped", b"global")
    with BrokerProcess(config), connect_blocking(f"tcp://127.0.0.1:{port}") as connection:
        connection.create_queue("out", routing="anycast")
        connection.create_queue("whole", routing="anycast")
        for xid in (kept, dropped):
            with connection.xa_resource.branch(xid) as branch:
                for number in range(3):
                    branch.send("out", Message(text=f"{number}{xid.branch_qualifier.decode()}"))
                branch.prepare()
        with pytest.raises(BranchRefused):
            connection.xa_resource.branch(kept).open()
        with pytest.raises(ZeroDivisionError), connection.xa_resource.branch(Xid(7, b"x", b"global")) as branch:
            branch.send("out", Message(text="never"))
            raise ZeroDivisionError
        with connection.xa_resource.branch(Xid(7, b"y", b"global")) as branch:
            branch.send("out", Message(text="never"))
            branch.rollback()
        assert connection.query_queue("out").message_count == 0
        with connection.xa_resource.branch(Xid(7, b"z", b"global")) as branch:
            branch.send("whole", Message(text="one phase"))
            branch.commit()
        assert _texts(connection.consumer("whole"), 1) == ["one phase"]
    with BrokerProcess(config), connect_blocking(f"tcp://127.0.0.1:{port}") as connection:
        resource = connection.xa_resource
        assert sorted(xid.branch_qualifier for xid in resource.recover()) == [b"dropped", b"kept"]
        resource.commit(kept)
        resource.rollback(dropped)
        assert resource.recover() == []
        for end in (resource.commit, resource.rollback):
            with pytest.raises(UnknownBranch):
                end(kept)
        assert _texts(connection.consumer("out"), 3) == ["0kept", "1kept", "2kept"]


def test_a_closed_transaction_cannot_be_committed(tmp_path: Path) -> None:
    port = free_port()
    with (
        BrokerProcess(write_broker_xml(tmp_path, port)),
        connect_blocking(f"tcp://127.0.0.1:{port}") as connection,
    ):
        transaction = connection.transaction()
        with pytest.raises(Closed):
            transaction.commit()
