"""Bodies that are read while they are sent: through a real process, never in memory as a whole, no half ones left."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from atalanta.client import ClientError, ConnectionLost, Message, blocking, connect
from atalanta.client.asyncio_client import run
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.client.large.large_rig import MIB, large_files
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.process

BODY = bytes(range(251)) * 5_000  # 1.2 MiB: thirteen pieces


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streamed")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    port = free_port()
    with BrokerProcess(write_broker_xml(folder, port)) as broker:
        yield f"tcp://127.0.0.1:{port}"
        assert broker.end(signal.SIGTERM) == 0


class Trickle(io.RawIOBase):
    """A file that gives less than was asked for, as pipes do, and cannot be read again."""

    def __init__(self, body: bytes) -> None:
        self._body = io.BytesIO(body)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._body.read(min(size, 7_001))


def in_items(body: bytes) -> Iterator[bytes | bytearray | memoryview]:
    yield body[:3]
    yield b""
    yield bytearray(body[3:300_000])
    yield memoryview(body)[300_000:]


async def slowly(body: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(body), 50_000):
        await asyncio.sleep(0)
        yield body[at : at + 50_000]


def received_body(connection: blocking.Connection, queue: str) -> bytes:
    with connection.consumer(queue) as consumer:
        received = consumer.receive(20)
        assert received is not None
        received.acknowledge()
        return received.body


@pytest.mark.parametrize("length", [0, 10, 102_399, 102_400, 102_401, 204_800, len(BODY)])
def test_every_kind_of_stream_and_every_length(url: str, folder: Path, length: int) -> None:
    body = BODY[:length]
    with blocking.connect(url) as connection:
        producer = connection.producer("kinds", routing="anycast")
        streams = [body, memoryview(body), io.BytesIO(body), Trickle(body), in_items(body)]
        for number, stream in enumerate(streams):
            producer.send(Message(stream=stream, properties={"number": number}))
        assert producer.confirmed == len(streams)
        consumer = connection.consumer("kinds")
        for number in range(len(streams)):
            received = consumer.receive(20)
            assert received is not None and received.properties["number"] == number
            assert received.body == body and received.type == 4
            received.acknowledge()
    until(lambda: not large_files(folder))


def test_with_asyncio_and_a_stream_of_asyncio(url: str) -> None:
    async def main() -> list[bytes]:
        async with connect(url) as connection:
            producer = await connection.producer("async", routing="anycast")
            reader = asyncio.StreamReader()
            reader.feed_data(BODY)
            reader.feed_eof()
            streams = [slowly(BODY), reader, io.BytesIO(BODY)]
            # All at a time: each over a session of its own.
            await asyncio.gather(*(producer.send(Message(stream=stream)) for stream in streams))
            bodies: list[bytes] = []
            async with await connection.consumer("async", ack="auto") as consumer:
                for _ in streams:
                    received = await consumer.receive(20)
                    assert received is not None
                    bodies.append(received.body)
            return bodies

    assert run(main()) == [BODY] * 3


def test_sizes(url: str, folder: Path) -> None:
    with blocking.connect(url) as connection:
        producer = connection.producer("sizes", routing="anycast")
        source = io.BytesIO(BODY)
        producer.send(Message(stream=source, size=500_000))
        producer.send(Message(stream=source, size=len(BODY) - 500_000))
        assert received_body(connection, "sizes") == BODY[:500_000]
        assert received_body(connection, "sizes") == BODY[500_000:]
        with pytest.raises(ClientError, match=f"ended after {len(BODY)} of {len(BODY) + 1} bytes"):
            producer.send(Message(stream=io.BytesIO(BODY), size=len(BODY) + 1))
        for stream in (BODY, in_items(BODY)):
            with pytest.raises(ClientError, match="more than the announced 400000 bytes"):
                producer.send(Message(stream=stream, size=400_000))
        until(lambda: not large_files(folder))


def failing() -> Iterator[bytes]:
    yield BODY
    raise OSError("the tape is torn")


def test_a_stream_that_raises_leaves_nothing_and_the_producer_goes_on(url: str, folder: Path) -> None:
    with blocking.connect(url) as connection:
        producer = connection.producer("torn", routing="anycast")
        with pytest.raises(OSError, match="the tape is torn"):
            producer.send(Message(stream=failing()))
        until(lambda: not large_files(folder))
        with pytest.raises(TypeError, match="open the file with mode 'rb'"):
            producer.send(Message(stream=io.StringIO("text")))
        with pytest.raises(TypeError, match="a int is neither bytes nor a binary file"):
            producer.send(Message(stream=5))
        with pytest.raises(TypeError, match="needs the asyncio client"):
            producer.send(Message(stream=slowly(BODY)))
        with pytest.raises(ValueError, match="use `send`"):
            producer.send_soon(Message(stream=BODY))
        producer.send(Message(b"after"))
        assert received_body(connection, "torn") == b"after"
        rows = connection.management().rows("listSessions")
        assert len(rows) <= 2  # the broken stream's is gone


def test_a_cancelled_send_leaves_nothing(url: str, folder: Path) -> None:
    async def main() -> None:
        more = asyncio.Event()

        async def stuck() -> AsyncIterator[bytes]:
            yield BODY
            more.set()
            await asyncio.Event().wait()

        async with connect(url) as connection:
            producer = await connection.producer("cancelled", routing="anycast")
            task = asyncio.create_task(producer.send(Message(stream=stuck())))
            await more.wait()
            while not large_files(folder):
                await asyncio.sleep(0.01)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            while large_files(folder):
                await asyncio.sleep(0.01)
            await producer.send(Message(b"after"))

    run(main())


def test_in_a_transaction(url: str, folder: Path) -> None:
    with blocking.connect(url) as connection:
        with connection.transaction() as tx:
            tx.send("tx", Message(b"first"), "anycast")
            tx.send("tx", Message(stream=io.BytesIO(BODY)))
            tx.send("tx", Message(stream=b"short"))
        for body in (b"first", BODY, b"short"):
            assert received_body(connection, "tx") == body
        with pytest.raises(OSError, match="torn"), connection.transaction() as tx:
            tx.send("tx", Message(b"never"))
            tx.send("tx", Message(stream=failing()))
        # Also for a program that goes on as if nothing had happened: it cannot commit.
        with pytest.raises(ClientError, match="not open"), connection.transaction() as tx:
            tx.send("tx", Message(b"never"))
            with contextlib.suppress(OSError):
                tx.send("tx", Message(stream=failing()))
        until(lambda: not large_files(folder))
        assert connection.consumer("tx").receive(0) is None


class Relay:
    """A line to the node that can be cut after so many bytes."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cut_after = 0  # 0: never
        self.cuts = 0

    async def listen(self) -> tuple[asyncio.Server, str]:
        """The server, and the URL that leads through it."""
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return server, f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.port)

        async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter, cut: bool) -> None:
            while data := await source.read(65_536):
                if cut and self.cut_after > 0:
                    self.cut_after -= len(data)
                    if self.cut_after <= 0:
                        self.cuts += 1
                        break
                target.write(data)
            target.close()
            writer.close()

        await asyncio.gather(pass_on(reader, back, True), pass_on(there, writer, False))


def test_a_lost_connection_begins_again_with_a_file_and_is_told_of_with_a_pipe(url: str, folder: Path) -> None:
    async def main() -> None:
        relay = Relay(int(url.rpartition(":")[2]))
        server, through = await relay.listen()
        async with server, connect(f"{through}?reconnectAttempts=-1&retryInterval=10") as connection:
            producer = await connection.producer("cut", routing="anycast")
            relay.cut_after = 700_000
            await producer.send(Message(stream=io.BytesIO(BODY), size=len(BODY)))
            assert relay.cuts == 1 and producer.resent == 1
            relay.cut_after = 700_000
            with pytest.raises(ConnectionLost, match="cannot be read again"):
                await producer.send(Message(stream=Trickle(BODY)))
            async with await connection.consumer("cut", ack="auto") as consumer:
                received = await consumer.receive(20)
                assert received is not None and received.body == BODY
                assert await consumer.receive(0) is None

    run(main())
    until(lambda: not large_files(folder))


def test_a_stream_ends_with_its_connection_when_no_attempt_is_left(url: str) -> None:
    async def main() -> None:
        relay = Relay(int(url.rpartition(":")[2]))
        server, through = await relay.listen()
        async with server, connect(f"{through}?reconnectAttempts=2&retryInterval=10") as connection:
            producer = await connection.producer("cut for good", routing="anycast")
            relay.cut_after = 700_000
            server.close()
            with pytest.raises(ConnectionLost, match="no connection to"):
                await producer.send(Message(stream=BODY))
            assert relay.cuts == 1

    run(main())


def test_others_go_on_while_a_stream_is_slow(url: str) -> None:
    """One connection, two threads: the stream stands still, and the other thread sends and receives."""
    inner, outer = os.pipe()
    with blocking.connect(url) as connection, open(inner, "rb", buffering=0) as source:
        producer = connection.producer("slow", routing="anycast")
        sender = threading.Thread(target=lambda: producer.send(Message(stream=source)))
        sender.start()
        with open(outer, "wb", buffering=0) as sink:
            sink.write(BODY[:60_000])
            connection.producer("quick", routing="anycast").send(Message(b"meanwhile"))
            assert received_body(connection, "quick") == b"meanwhile"
            left = memoryview(BODY)[60_000:]
            while left:
                left = left[sink.write(left) :]
        sender.join(20)
        assert not sender.is_alive()
        assert received_body(connection, "slow") == BODY


SENDER = """
import sys
from atalanta.client import Message
from atalanta.client.blocking import connect
with connect(sys.argv[1]) as connection:
    pieces = (bytes([n % 251]) * 1_000_003 for n in range(150))
    connection.producer("huge", routing="anycast").send(Message(stream=pieces, size=150_000_450))
    status = open("/proc/self/status").read().splitlines()
    print(*(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.parametrize("window", [1 << 20, -1])
def test_a_client_sends_more_than_its_memory(url: str, folder: Path, window: int) -> None:
    """Also without credits: then it is the network that holds the stream back."""
    command = [sys.executable, "-c", SENDER, f"{url}?producerWindowSize={window}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) << 10 < 70 * MIB
    (file,) = large_files(folder)
    assert file.stat().st_size == 150_000_450
    with blocking.connect(url) as connection:
        connection.delete_queue("huge")
    until(lambda: not large_files(folder))


