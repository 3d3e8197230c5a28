"""The blocking client against a fake broker in another thread."""

from __future__ import annotations

import os
import resource
import socket
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from atalanta.client import (
    CallTimedOut,
    ConnectFailed,
    ConnectionLost,
    Message,
    NotAuthorized,
    TransactionRolledBack,
)
from atalanta.client.blocking import connect
from atalanta.client.options import parse_url
from atalanta.client.shells import blocking_shell
from atalanta.client.shells.blocking_shell import (
    LONG_FRAME_BYTES_MAX,
    LONG_FRAME_WAIT_S,
    READ_BYTES,
)
from atalanta.wire.core.packets.connection import Ping
from atalanta.wire.core.packets.logview import LogRead
from tests.client.fake_server import ServerThread
from tests.waiting import until
from tests.wire.core.client.fake_broker import PASSWORD

AGAIN = "reconnectAttempts=-1&retryInterval=20"


def test_everything_without_await() -> None:
    with ServerThread("q") as server, connect(
        server.url("sendWindow=20"), user="u", password=PASSWORD
    ) as connection:
        producer = connection.producer("q")
        producer.send(Message(text="0"))
        for number in range(1, 200):
            producer.send_soon(Message(text=str(number)))
            assert producer.unconfirmed <= 20
        producer.drain()
        assert producer.confirmed == 200
        consumer = connection.consumer("q")
        for number, message in enumerate(consumer):
            assert message.text == str(number)
            message.acknowledge()
            if number == 149:
                break
        consumer.close()
        with connection.consumer("q", browse=True) as browser:
            assert [m.text for m in browser] == [str(n) for n in range(150, 200)]
        with connection.consumer("q", ack="auto") as automatic:
            assert automatic.receive(5) is not None
        with connection.transaction() as transaction:
            transaction.send("q", Message(text="last"))
        assert connection.query_queue("q").message_count == 50


def test_a_lost_connection_comes_back_inside_a_call() -> None:
    thread = ServerThread("q")
    with thread as server, connect(server.url(AGAIN), user="u", password=PASSWORD) as connection:
        producer = connection.producer("q")
        consumer = connection.consumer("q")
        producer.send(Message(text="0"))
        message = consumer.receive(5)
        assert message is not None
        thread.cut()
        producer.send(Message(text="1"))
        assert connection.lost_count == 1 and message.lost
        again = [consumer.receive(5), consumer.receive(5)]
        assert [m.text for m in again if m is not None] == ["0", "1"]
        assert connection.query_queue("q").exists
        transaction = connection.transaction().open()
        transaction.send("q", Message(text="2"))
        connection.query_queue("q")
        thread.cut()
        with pytest.raises(TransactionRolledBack):
            transaction.commit()


@pytest.mark.parametrize("browse", [False, True])
@pytest.mark.parametrize("timeout_s", [5, 0])
def test_what_lies_here_is_not_handed_out_when_the_connection_is_gone_for_good(
    browse: bool, timeout_s: float
) -> None:
    """The broker gives it to others; acknowledging it would have had no effect, and nobody would have known."""
    thread = ServerThread("q")
    with thread as server, connect(server.url(), user="u", password=PASSWORD) as connection:
        producer = connection.producer("q")
        for number in range(20):
            producer.send(Message(text=str(number)))
        consumer = connection.consumer("q", browse=browse)
        message = consumer.receive(5)
        assert message is not None and consumer.buffered
        thread.cut()
        with pytest.raises(ConnectionLost):
            connection.query_queue("q")
        assert message.lost and not consumer.buffered
        message.acknowledge()
        with pytest.raises(ConnectionLost):
            consumer.receive(timeout_s)


def test_threads_take_turns() -> None:
    with ServerThread("q") as server, connect(
        server.url(), user="u", password=PASSWORD
    ) as connection:
        producer = connection.producer("q")

        def send() -> None:
            for _ in range(50):
                producer.send(Message(text="x"))

        threads = [threading.Thread(target=send) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert connection.query_queue("q").message_count == 150


def test_an_idle_connection_pings_as_often_as_the_url_says() -> None:
    """The client pinged every 5 s at most, and a node with a short time to live ended it."""
    with ServerThread() as server, connect(server.url(), user="u", password=PASSWORD), connect(
        server.url("clientFailureCheckPeriod=300"), user="u", password=PASSWORD
    ):
        peer = server.broker.connections[-1]
        until(lambda: sum(isinstance(packet, Ping) for _, packet in list(peer.seen)) >= 4, seconds=10)


def test_a_node_that_does_not_read_by_columns_is_asked_for_rows() -> None:
    """A node of an older version, whose answer about its log view names no ability, would close the connection."""
    with ServerThread("$.atalanta.logview") as server, connect(
        server.url("callTimeout=300"), user="u", password=PASSWORD
    ) as connection:
        with pytest.raises(CallTimedOut):  # the fake has no log view: the request counts
            list(connection.logview("q").read_raw(0, 5, by_columns=True))
        seen = [packet for _, packet in server.broker.connections[0].seen]
        assert [type(packet) for packet in seen if isinstance(packet, LogRead)] == [LogRead]


def test_a_long_frame_is_read_whole_also_if_it_comes_slowly() -> None:
    """In one piece if it comes at once, else as it comes; small frames stay between."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        theirs = socket.create_connection(listener.getsockname())
        mine, _ = listener.accept()
    with ServerThread("q") as server, connect(server.url(), user="u", password=PASSWORD) as connection, mine, theirs:
        shell = connection._shell
        shell._long_frames = True
        size = READ_BYTES + 1_000
        theirs.sendall((size - 4).to_bytes(4, "big") + bytes(10_000))
        begin = time.monotonic()
        assert shell._long_frame(mine) == size  # not all of it is here
        assert time.monotonic() - begin >= LONG_FRAME_WAIT_S
        assert len(mine.recv(size)) == 10_004
        for length in (0, 100, READ_BYTES - 4, LONG_FRAME_BYTES_MAX, 1 << 31):
            theirs.sendall(length.to_bytes(4, "big"))
            assert shell._long_frame(mine) == READ_BYTES  # short, or longer than what is kept free for it
            mine.recv(4)
        assert mine.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1


def test_errors_are_the_same() -> None:
    with ServerThread() as server:
        with pytest.raises(NotAuthorized):
            connect(server.url(), user="u", password="guess")
        port = server.port
    with pytest.raises(ConnectFailed, match=str(port)):
        connect(f"tcp://127.0.0.1:{port}", user="u", password=PASSWORD)


def test_connections_that_are_made_while_others_are_looked_at_do_not_end_the_pings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread that pings walks over all connections of the process."""
    with ServerThread("q") as server:
        options = [parse_url(server.url(), "u", PASSWORD) for _ in range(3)]
        first, second, third = [blocking_shell.BlockingShell(each) for each in options]
        joining = threading.Thread(target=blocking_shell.keep_alive, args=(third,), daemon=True)

        class Slowly(weakref.WeakSet[blocking_shell.BlockingShell]):
            def __iter__(self) -> Iterator[blocking_shell.BlockingShell]:
                for number, each in enumerate(super().__iter__()):
                    if number == 0 and threading.current_thread() is threading.main_thread():
                        joining.start()
                        joining.join(0.2)
                    yield each

        monkeypatch.setattr(blocking_shell, "_kept", Slowly([first, second]))
        monkeypatch.setattr(blocking_shell, "_keeper_process", os.getpid())
        assert set(blocking_shell.kept()) == {first, second}
        joining.join(10)
        monkeypatch.undo()


def test_an_acknowledgement_of_the_blocking_client_waits_for_its_answer() -> None:
    thread = ServerThread("q")
    with thread as server, connect(
        server.url(f"{AGAIN}&blockOnAcknowledge=true"), user="u", password=PASSWORD
    ) as connection:
        connection.producer("q").send(Message(text="0"))
        consumer = connection.consumer("q")
        message = consumer.receive(5)
        assert message is not None
        thread.cut()
        with pytest.raises(ConnectionLost):
            message.acknowledge()
        again = consumer.receive(5)
        assert again is not None
        again.acknowledge()
        assert connection.query_queue("q").message_count == 0


def test_a_program_with_more_than_1_024_open_files_can_use_the_blocking_client() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1_400
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip("this user may not open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    held: list[int] = []
    try:
        with ServerThread("q") as server:
            held += [os.dup(0) for _ in range(1_100)]
            with connect(server.url(), user="u", password=PASSWORD) as connection:
                connection.producer("q").send(Message(text="0"))
                message = connection.consumer("q").receive(5)
                assert message is not None and message.text == "0"
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
