"""An operator ends connections, sessions and consumers: a real node, its clients in processes of their own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from atalanta.client import Message
from atalanta.client.blocking import Connection, connect
from tests.broker_process import BrokerProcess
from tests.broker_xml import USE, permissions, write_broker_xml
from tests.cli.calls import Cli
from tests.ports import free_port
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

# Prints a line when it holds what the test wants to be held, and one for what becomes of it.
HOLDER: Final = """
import sys
from atalanta.client import ClientError, Message
from atalanta.client.blocking import connect
try:
    with connect(sys.argv[1], user="vera", password="pw") as connection:
        with connection.transaction() as tx:
            consumer = tx.consumer(sys.argv[2])
            for _ in range(2):
                consumer.receive(20).acknowledge()
            tx.send(sys.argv[2] + ".out", Message(b"never"), "anycast")
            print("holds", flush=True)
            sys.stdin.readline()
            consumer.receive(20)
            tx.send(sys.argv[2] + ".out", Message(b"never"), "anycast")
except ClientError as error:
    print(type(error).__name__, flush=True)
else:
    print("committed", flush=True)
"""
# Takes messages for as long as they come, over every loss, and writes down which.
WORKER: Final = """
import sys
from atalanta.client.blocking import connect
url = sys.argv[1] + "?reconnectAttempts=-1&retryInterval=50&consumerWindowSize=5000"
with connect(url, user="vera", password="pw") as connection:
    consumer = connection.consumer(sys.argv[2])
    while (message := consumer.receive(30)) is not None:
        print(message.properties["n"], flush=True)
        message.acknowledge()
        if message.properties.get("last"):
            break
    print("lost", connection.lost_count, flush=True)
"""
# Sends without end what should never be a whole message.
STREAMER: Final = """
import sys
from atalanta.client import ClientError, Message
from atalanta.client.blocking import connect
def endless():
    yield bytes(1_000_000)
    print("holds", flush=True)
    while True:
        yield bytes(100_000)
try:
    with connect(sys.argv[1], user="vera", password="pw") as connection:
        connection.producer(sys.argv[2], routing="anycast").send(Message(stream=endless()))
except ClientError as error:
    print(type(error).__name__, flush=True)
"""


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def etc(tmp_path_factory: pytest.TempPathFactory, port: int) -> Path:
    rights = permissions("amq", [*USE, "manage"])
    etc = write_broker_xml(tmp_path_factory.mktemp("node"), port, more=rights, security=True).parent
    for name in ("vera", "olga"):
        Cli()("user", "add", name, "--role", "amq", "--password", "pw", "--etc", str(etc))
    return etc


@pytest.fixture(scope="module")
def node(etc: Path, port: int) -> Iterator[str]:
    with BrokerProcess(etc / "broker.xml") as broker:
        yield f"tcp://127.0.0.1:{port}"
        assert broker.end(signal.SIGTERM) == 0
        assert "node_bug" not in broker.log()


@pytest.fixture
def operator(node: str) -> Iterator[Connection]:
    with connect(node, user="olga", password="pw") as connection:
        yield connection


class Victim:
    """A client in a process of its own."""

    def __init__(self, script: str, url: str, queue: str) -> None:
        command = [sys.executable, "-c", script, url, queue]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def __enter__(self) -> Victim:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self._process.kill()
        _, errors = self._process.communicate(timeout=60)
        assert kind is not None or not errors, errors


def fill(operator: Connection, queue: str, count: int) -> None:
    producer = operator.producer(queue, routing="anycast")
    for number in range(count):
        producer.send_soon(Message(b"x", properties={"n": number}))
    producer.drain()


def of_vera(operator: Connection, view: str) -> list[dict[str, object]]:
    """Rows about what the user vera has."""
    rows = operator.management().rows(view)
    return [row for row in rows if row.get("user", row.get("users")) == "vera"]


def left(operator: Connection, queue: str) -> list[object]:
    """Returns what can be had of the queue: all that was given back."""
    found: list[object] = []
    with operator.consumer(queue, ack="auto") as consumer:
        while (message := consumer.receive(1)) is not None:
            found.append(message.properties["n"])
    return found


def kill_connection(operator: Connection) -> bool:
    (row,) = of_vera(operator, "listConnections")
    return bool(operator.management().call("broker", "closeConnectionWithID", row["connectionID"]))


def kill_user(operator: Connection) -> bool:
    return bool(operator.management().call("broker", "closeConnectionsForUser", "vera"))


def kill_remote(operator: Connection) -> bool:
    """By the remote address, which is the victim's alone with its port."""
    (row,) = of_vera(operator, "listConnections")
    remote = str(row["remoteAddress"])
    return bool(operator.management().call("broker", "closeConnectionsForAddress", remote))


def kill_consumers_of_address(operator: Connection) -> bool:
    call = operator.management().call
    return bool(call("broker", "closeConsumerConnectionsForAddress", "work.#"))


def kill_session(operator: Connection) -> bool:
    done = False
    for row in of_vera(operator, "listSessions"):
        call = operator.management().call
        done = bool(call("broker", "closeSessionWithID", row["connectionID"], row["id"], True))
    return done


KILLS: Final = [
    kill_connection, kill_user, kill_remote, kill_consumers_of_address, kill_session,
]  # fmt: skip


@pytest.mark.parametrize("kill", KILLS)
def test_a_transaction_of_who_is_killed_never_happened(
    node: str, operator: Connection, kill: Callable[[Connection], bool]
) -> None:
    queue = f"work.{kill.__name__}"
    fill(operator, queue, 5)
    with Victim(HOLDER, node, queue) as victim:
        assert victim.line() == "holds"
        assert kill(operator)
        until(lambda: not of_vera(operator, "listConsumers"))
        victim.go_on()
        assert victim.line() in ("ConnectionLost", "IllegalState", "QueueDoesNotExist")
    assert left(operator, queue) == [0, 1, 2, 3, 4]
    management = operator.management()
    if operator.query_queue(f"{queue}.out").exists:
        assert management.get(f"queue.{queue}.out", "MessageCount") == 0
    assert management.get(f"queue.{queue}", "DeliveringCount") == 0
    until(lambda: not of_vera(operator, "listConnections"))
    assert not kill_user(operator)


def test_a_killed_consumer_gives_back_what_it_held(node: str, operator: Connection) -> None:
    fill(operator, "single", 5)
    with Victim(HOLDER, node, "single") as victim:
        assert victim.line() == "holds"
        (row,) = of_vera(operator, "listConsumers")
        call = operator.management().call
        assert call("broker", "closeConsumerWithID", row["session"], row["id"]) is True
        assert call("broker", "closeConsumerWithID", row["session"], row["id"]) is False
        until(lambda: not of_vera(operator, "listConsumers"))
        victim.go_on()
        # The session lives, and with it what its transaction has acknowledged and sent.
        assert victim.line() == "committed"
    assert left(operator, "single") == [2, 3, 4]
    assert operator.query_queue("single.out").message_count == 2


def test_a_worker_that_reconnects_loses_nothing_and_sees_nothing_twice_that_it_acknowledged(
    node: str, operator: Connection
) -> None:
    count = 3_000
    fill(operator, "line", 10)
    kills = 0
    with Victim(WORKER, node, "line") as worker:
        seen = [worker.line()]
        producer = operator.producer("line")
        for number in range(10, count):
            properties = {"n": number, "last": number == count - 1}
            producer.send_soon(Message(b"x", properties=properties))
            if number % 600 == 0:
                until(lambda: len(of_vera(operator, "listConsumers")) == 1)
                assert [kill_connection, kill_user][kills % 2](operator)
                kills += 1
        producer.drain()
        while not seen[-1].startswith("lost"):
            seen.append(worker.line())
    assert kills >= 4 and int(seen[-1].split()[1]) == kills
    numbers = [int(text) for text in seen[:-1]]
    assert sorted(set(numbers)) == list(range(count))
    # Only acknowledgements that were on their way when the connection ended are asked for twice.
    assert len(numbers) - count <= 100 * kills
    assert left(operator, "line") == []


def test_half_a_large_message_goes_with_its_sender(
    node: str, operator: Connection, etc: Path
) -> None:
    folder = etc.parent / "data" / "largemessages"
    with Victim(STREAMER, node, "streams") as victim:
        assert victim.line() == "holds"
        until(lambda: len(list(folder.rglob("*.msg"))) == 1)
        assert kill_user(operator)
        assert victim.line() == "ConnectionLost"
    until(lambda: not list(folder.rglob("*.msg")))
    assert operator.query_queue("streams").message_count == 0


def test_a_user_without_the_right_to_manage_kills_nobody(node: str, operator: Connection) -> None:
    from atalanta.client.management import ManagementFailed

    call = operator.management().call
    assert call("broker", "closeConnectionWithID", "no such") is False
    assert call("broker", "closeConnectionsForUser", "nobody") is False
    with pytest.raises(ManagementFailed):
        call("broker", "closeConsumerWithID", "no such", "no number")
