"""stomp.py, versions 1.0, 1.1 and 1.2, and the JMS client, at one port of one node."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stomp

from tests.interop.harness.jms import PASSWORD, USER, Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.jms_client import Client

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
VERSIONS = {"1.0": stomp.StompConnection10, "1.1": stomp.StompConnection11, "1.2": stomp.StompConnection12}
WAIT_SECONDS = 20.0


class Listener(stomp.ConnectionListener):  # type: ignore[misc]
    """Everything that came, from the thread of stomp.py."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.receipts: list[str] = []
        self.errors: list[Any] = []
        self.beats = 0
        self.timeouts = 0

    def on_message(self, frame: Any) -> None:
        self.messages.append(frame)

    def on_receipt(self, frame: Any) -> None:
        self.receipts.append(frame.headers["receipt-id"])

    def on_error(self, frame: Any) -> None:
        self.errors.append(frame)

    def on_heartbeat(self) -> None:
        self.beats += 1

    def on_heartbeat_timeout(self) -> None:
        self.timeouts += 1


class StompClient:
    """One connection of stomp.py."""

    def __init__(self, node: BrokerProcess, version: str = "1.2", client_id: str = "", **options: Any) -> None:
        self.version = version
        self.connection = VERSIONS[version]([("127.0.0.1", node.port)], reconnect_attempts_max=1, **options)
        self.heard = Listener()
        self.connection.set_listener("test", self.heard)
        headers = {"client-id": client_id} if client_id else {}
        self.connection.connect(USER, PASSWORD, wait=True, headers=headers)
        self._receipts = 0

    def call(self, method: str, *values: Any, **named: Any) -> None:
        """Sends a frame, and waits for its receipt."""
        self._receipts += 1
        receipt = f"r{self._receipts}"
        if method == "send":
            named.setdefault("headers", {})["receipt"] = receipt
            getattr(self.connection, method)(*values, **named)
        elif method == "subscribe":
            getattr(self.connection, method)(*values, headers={"receipt": receipt, **named.pop("headers", {})}, **named)
        else:
            getattr(self.connection, method)(*values, receipt=receipt, **named)
        self.until(lambda: receipt in self.heard.receipts)

    def until(self, holds: Callable[[], bool]) -> None:
        until("stomp.py has it", lambda: holds() or bool(self.heard.errors), WAIT_SECONDS)
        assert not self.heard.errors, self.heard.errors

    def take(self, count: int) -> list[Any]:
        """The next messages, and no more for a moment."""
        self.until(lambda: len(self.heard.messages) >= count)
        time.sleep(0.2)
        found, self.heard.messages = self.heard.messages, []
        assert len(found) == count, found
        return found

    def texts(self, count: int) -> list[str]:
        return [frame.body for frame in self.take(count)]

    def acknowledge(self, frame: Any, **more: Any) -> None:
        """ACK as the version has it."""
        if self.version == "1.2":
            self.call("ack", frame.headers["ack"], **more)
        elif self.version == "1.1":
            self.call("ack", frame.headers["message-id"], frame.headers["subscription"], **more)
        else:
            self.call("ack", frame.headers["message-id"], **more)

    def refuse(self, frame: Any, **more: Any) -> None:
        if self.version == "1.2":
            self.call("nack", frame.headers["ack"], **more)
        else:
            self.call("nack", frame.headers["message-id"], frame.headers["subscription"], **more)

    def leave(self) -> None:
        self.connection.disconnect()


@pytest.fixture(scope="module")
def server(brokers: Lineup) -> Iterator[BrokerProcess]:
    """A node that serves CORE and STOMP at its one port."""
    node = brokers.single("atalanta")
    path = node.folder / "etc" / "broker.xml"
    path.write_text(path.read_text().replace("protocols=CORE", "protocols=CORE,STOMP"))
    node.start()
    yield node
    node.stop()


@pytest.fixture
def connect(server: BrokerProcess) -> Iterator[Callable[..., StompClient]]:
    """Opens clients, and closes them at the end."""
    opened: list[StompClient] = []

    def make(*values: Any, **named: Any) -> StompClient:
        opened.append(StompClient(server, *values, **named))
        return opened[-1]

    yield make
    for client in opened:
        if client.connection.is_connected():
            client.leave()


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    """A queue of this test's own."""
    name = str(request.node.name)
    return "/queue/" + name.replace("[", ".").replace("]", "")


@pytest.mark.parametrize("version", VERSIONS)
def test_send_and_subscribe(connect: Callable[..., StompClient], queue: str, version: str) -> None:
    client = connect(version)
    client.call("subscribe", queue, id="1")
    client.call("send", queue, "žluť", headers={"color": "red", "persistent": "true"})
    (frame,) = client.take(1)
    assert frame.body == "žluť" and frame.headers["color"] == "red" and frame.headers["destination"] == queue


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", ["client", "client-individual"])
def test_acknowledgements(connect: Callable[..., StompClient], queue: str, version: str, mode: str) -> None:
    client = connect(version)
    client.call("subscribe", queue, id="1", ack=mode)
    for text in ("1", "2", "3"):
        client.call("send", queue, text)
    client.acknowledge(client.take(3)[1])
    client.leave()
    left = connect(version)
    left.call("subscribe", queue, id="1")
    assert left.texts(1 if mode == "client" else 2) == (["3"] if mode == "client" else ["1", "3"])


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_nack_delivers_again(connect: Callable[..., StompClient], queue: str, version: str) -> None:
    client = connect(version)
    client.call("subscribe", queue, id="1", ack="client-individual")
    client.call("send", queue, "x")
    (first,) = client.take(1)
    client.refuse(first)
    (second,) = client.take(1)
    assert (first.headers["redelivered"], second.headers["redelivered"]) == ("false", "true")
    client.acknowledge(second)


@pytest.mark.parametrize("version", VERSIONS)
def test_transactions(connect: Callable[..., StompClient], queue: str, version: str) -> None:
    client, other = connect(version), connect(version)
    client.call("subscribe", queue, id="1", ack="client")
    other.call("subscribe", queue + ".out", id="1")
    client.call("send", queue, "in")
    (frame,) = client.take(1)
    for end, count in (("abort", 0), ("commit", 1)):
        name = client.connection.begin()
        client.call("send", queue + ".out", "out", headers={"transaction": name})
        client.acknowledge(frame, transaction=name)
        client.call(end, name)
        assert len(other.take(count)) == count
        if end == "abort":
            (frame,) = client.take(1)
            assert frame.headers["redelivered"] == "true"


def test_a_durable_subscription_outlives_a_restart(
    connect: Callable[..., StompClient], server: BrokerProcess, queue: str
) -> None:
    topic = queue.replace("/queue/", "/topic/")
    headers = {"durable-subscription-name": "s"}
    first = connect(client_id="c")
    first.call("subscribe", topic, id="1", ack="client", headers=headers)
    first.leave()
    sender = connect()
    sender.call("send", topic, "kept", headers={"persistent": "true"})
    sender.leave()
    server.kill()
    server.start()
    again = connect(client_id="c")
    again.call("subscribe", topic, id="1", headers=headers)
    assert again.texts(1) == ["kept"]
    again.connection.unsubscribe("1", headers={"durable-subscription-name": "s"})


def test_heart_beats(connect: Callable[..., StompClient], queue: str) -> None:
    client = connect(heartbeats=(500, 500))
    client.call("subscribe", queue, id="1")
    client.until(lambda: client.heard.beats >= 4)
    client.call("send", queue, "still here")
    assert client.texts(1) == ["still here"] and client.heard.timeouts == 0


def test_an_error_has_a_sentence(connect: Callable[..., StompClient]) -> None:
    client = connect()
    client.connection.subscribe("/queue/a", id="1", headers={"selector": "color ="})
    until("an error came", lambda: bool(client.heard.errors), WAIT_SECONDS)
    assert "filter" in client.heard.errors[0].headers["message"]
    until("it is closed", lambda: not client.connection.is_connected(), WAIT_SECONDS)


def test_stomp_to_jms_and_back(
    connect: Callable[..., StompClient], server: BrokerProcess, client: Client, queue: str
) -> None:
    name = queue.removeprefix("/queue/")
    consumer = client.consumer(server, f"queue:{name}", "kind = 'a'")
    text_client = connect(auto_content_length=False)
    for number in ("1", "2"):
        text_client.call("send", queue, number, headers={"kind": "a" if number == "1" else "b"})
    assert client.numbers([consumer], 1) == [[1]]
    text_client.call("subscribe", queue, id="1")
    assert text_client.texts(1) == ["2"]
    client.leave(consumer)
    producer = client.producer(server, f"queue:{name}")
    client.jms.send(producer, range(3, 5), colour="green")
    frames = text_client.take(2)
    assert [frame.body for frame in frames] == ["3", "4"]
    assert [frame.headers["colour"] for frame in frames] == ["green", "green"]
    assert all(frame.headers["JMSMessageID"].startswith("ID:") for frame in frames)


def test_a_body_of_megabytes(connect: Callable[..., StompClient], jms: Jms, queue: str) -> None:
    body = "0123456789" * 300_000
    client = connect()
    client.call("subscribe", queue, id="1")
    client.call("send", queue, body, headers={"persistent": "true"})
    assert client.texts(1) == [body]
