"""The JMS client of one test, and the start of two nodes that know each other."""

from __future__ import annotations

from tests.interop.harness.jms import Jms, until
from tests.interop.harness.node import BrokerProcess

Pair = tuple[BrokerProcess, BrokerProcess]
PROBE = range(-1, 0)


def start(jms: Jms, nodes: Pair) -> None:
    """Starts both and waits until each knows the other."""
    for node in nodes:
        node.start()
    first, second = nodes
    until(f"{first.name} knows both", lambda: len(jms.topology(first)) == 2)
    until(f"{second.name} knows both", lambda: len(jms.topology(second)) == 2)


class Client:
    """The driver with names of this test's own, and what it opened closed at the end."""

    def __init__(self, jms: Jms, test: str) -> None:
        self.jms = jms
        self._test = test
        self._count = 0
        self._opened: list[str] = []

    def name(self, word: str) -> str:
        """A name nobody else uses."""
        return f"{word}.{self._test}"

    def consumer(
        self, node: BrokerProcess, source: str, selector: str = "-", options: str = ""
    ) -> str:
        """A consumer on a connection of its own, acknowledging each message before the next."""
        connection = self._open(node, "blockOnAcknowledge=true&" + options)
        return self.jms.consumer(f"{connection}.c", connection, source, selector, "each")

    def producer(self, node: BrokerProcess, target: str, options: str = "") -> str:
        """A producer on a connection of its own."""
        connection = self._open(node, options)
        return self.jms.producer(f"{connection}.p", connection, target)

    def transacted(self, node: BrokerProcess, target: str) -> str:
        """A transacted producer on a connection of its own."""
        connection = self._open(node, "")
        return self.jms.producer(f"{connection}.p", connection, target, "transacted")

    def temporary(self, node: BrokerProcess) -> tuple[str, str]:
        """A consumer of a new temporary queue, and the queue's name."""
        connection = self._open(node, "")
        return f"{connection}.t", self.jms("temporary", f"{connection}.t", connection)[0]

    def durable(self, node: BrokerProcess, topic: str, subscription: str) -> str:
        """A durable subscriber; its client id is the topic's name."""
        connection = self._open(node, "", topic)
        source = f"durable:{topic}:{subscription}"
        return self.jms.consumer(f"{connection}.c", connection, source)

    def leave(self, line: str) -> None:
        """Closes the connection of a consumer or producer."""
        connection = line.rsplit(".", 1)[0]
        self._opened.remove(connection)
        self.jms.close_all(connection)

    def warm(self, producer: str, consumer: str, **properties: object) -> None:
        """Sends probes until one arrives: from then on the consumer is known where one sends."""

        def arrived() -> bool:
            self.jms.send(producer, PROBE, **properties)
            return "-1" in self.jms.receive(consumer, 1, 300)

        until("a probe arrives", arrived)
        self.jms.receive(consumer, 1000, 300)

    def numbers(
        self, consumers: list[str], count: int, redeliveries: bool = False
    ) -> list[list[int]]:
        """What each consumer gets until `count` have come, and a little longer; no probes.

        With `redeliveries` a repeat that is marked as one is left out: the acknowledgement of the
        first may have died with a node. Without, anything marked as redelivered is an error.
        """
        found = []
        for texts in self.jms.collect(consumers, count):
            numbers: list[int] = []
            for text in texts:
                number = int(text.rstrip("!"))
                if number >= 0 and not (redeliveries and text.endswith("!") and number in numbers):
                    assert redeliveries or not text.endswith("!"), f"{number} is a redelivery"
                    numbers.append(number)
            found.append(numbers)
        return found

    def close(self) -> None:
        """Closes every connection."""
        while self._opened:
            self.jms.close_all(self._opened.pop())

    def _open(self, node: BrokerProcess, options: str, client_id: str = "") -> str:
        self._count += 1
        name = f"{self._test}.{self._count}"
        name = self.jms.open(name, node, options, client_id)
        self._opened.append(name)
        return name
