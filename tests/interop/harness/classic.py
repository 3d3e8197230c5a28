"""Real brokers of ActiveMQ Classic, and activemq-client, in one JVM (tests/interop/java-classic)."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

from tests.ports import free_port

from .java_program import JavaProgram
from .openwire import CLIENTS, COMPANIONS, compiled

PROJECT = Path(__file__).resolve().parents[1] / "java-classic"
QUIET_MS = 500


@cache
def classic_class_path(version: str) -> str:
    """Returns the class path of Classic's broker of that version, with the Spring that reads its activemq.xml."""
    return compiled(PROJECT, version, f"-Dspring={COMPANIONS[version][1]}")


class ClassicBroker:
    """One broker. `folder` has its KahaDB store; None: it is in memory."""

    def __init__(self, jvm: Classic, name: str, folder: Path | None, options: tuple[str, ...]) -> None:
        self.jvm = jvm
        self.name = name
        self.port: int = free_port()
        self.folder = folder
        self.options = options

    @property
    def url(self) -> str:
        """The URL of clients that stay at this broker."""
        return f"tcp://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it; again: with the same store and port, and without network connectors."""
        self.jvm.tell("broker", self.name, self.port, self.folder or "-", *self.options)

    def stop(self) -> None:
        self.jvm.tell("stop", self.name)

    def connect(self, uri: str, *options: str, name: str = "NC") -> None:
        """Starts a network connector; options as "duplex=true" or "excluded=queue://a,topic://b"."""
        self.jvm.tell("network", self.name, name, uri, *options)

    def unlink(self, name: str = "NC") -> None:
        """Stops a network connector."""
        self.jvm.tell("unlink", self.name, name)

    def link(self, name: str = "NC") -> None:
        """Starts a network connector again."""
        self.jvm.tell("link", self.name, name)

    def bridges(self) -> list[str]:
        """The names of the brokers to which it has bridges that are up."""
        return self.jvm.tell("bridges", self.name)

    def depth(self, destination: str) -> tuple[int, int]:
        """Messages and consumers of "queue:name" or "topic:name"; -1 and -1 if it does not exist."""
        messages, consumers, _ = self.jvm.tell("depth", self.name, destination)
        return int(messages), int(consumers)

    def arrived(self, destination: str) -> int:
        """The messages that have ever come to "queue:name" or "topic:name"; -1 if it does not exist."""
        return int(self.jvm.tell("depth", self.name, destination)[2])


class Classic(JavaProgram):
    """The JVM. Each client has a connection of its own to the broker at a URL, of any kind."""

    def __init__(self, client: str = CLIENTS[0]) -> None:
        super().__init__("atalanta.classic.Driver", classes=classic_class_path(client))
        self._numbers = itertools.count(1)
        self._connections: list[str] = []

    def broker(self, name: str, folder: Path | None = None, *options: str) -> ClassicBroker:
        """A broker that runs; options of its BrokerService as "name=value"."""
        made = ClassicBroker(self, name, folder, options)
        made.start()
        return made

    def open(self, url: str, client_id: str = "") -> str:
        """A connection, until `close_all`."""
        name = f"connection-{next(self._numbers)}"
        self.tell("open", name, url, *([client_id] if client_id else []))
        self._connections.append(name)
        return name

    def consumer(self, url: str, source: str, selector: str = "", client_id: str = "") -> str:
        """A consumer of "queue:name", "topic:name" or "durable:topic:subscription"."""
        connection = self.open(url, client_id)
        self.tell("consumer", f"{connection}.consumer", connection, source, *([selector] if selector else []))
        return f"{connection}.consumer"

    def replier(self, url: str, source: str) -> str:
        """A client that answers each request to the queue with "re " and its text."""
        connection = self.open(url)
        self.tell("replier", f"{connection}.consumer", connection, source)
        return f"{connection}.consumer"

    def request(self, url: str, target: str, text: str, timeout_ms: int = 10_000) -> list[str]:
        """The reply to a request through a temporary queue; empty without one in time."""
        return self.tell("request", self.open(url), target, text, timeout_ms)

    def send(self, url: str, target: str, numbers: range, *options: str) -> None:
        """Sends the numbers as texts; options are string properties, or "persistent=false"."""
        connection = self.open(url)
        self.tell("send", connection, target, numbers.start, len(numbers), *options)
        self.close(connection)

    def receive(self, consumer: str, most: int, timeout_ms: int = 10_000) -> list[str]:
        """The next texts, at most `most`; a redelivered one has a "!" behind it."""
        return self.tell("receive", consumer, most, timeout_ms)

    def rest(self, consumer: str) -> list[str]:
        """What still comes until nothing has come for a moment."""
        return self.receive(consumer, 1_000_000, QUIET_MS)

    def unsubscribe(self, url: str, subscription: str, client_id: str) -> None:
        """Ends a durable subscription that has no consumer."""
        connection = self.open(url, client_id)
        self.tell("unsubscribe", connection, subscription)
        self.close(connection)

    def close(self, name: str) -> None:
        """Closes a connection, or a consumer with its connection."""
        connection = name.partition(".")[0]
        self._connections.remove(connection)
        self.tell("close", connection)

    def close_all(self) -> None:
        """Closes every connection."""
        for connection in list(self._connections):
            self.close(connection)


def numbers(first: int, count: int) -> list[str]:
    """The texts of the messages that `send` makes of a range."""
    return [str(number) for number in range(first, first + count)]
