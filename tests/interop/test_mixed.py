"""Two nodes in one cluster, JMS clients that stay where they connect: messages cross both ways."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.harness.jms import Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

Pair = tuple[BrokerProcess, BrokerProcess]
PROBE = range(-1, 0)


@pytest.fixture(scope="module")
def pair(lineup: str, brokers: Lineup, jms: Jms) -> Iterator[Pair]:
    """A running pair with static connectors, redistribution at once."""
    nodes = brokers.pair(lineup)
    start(jms, nodes)
    yield nodes
    for node in nodes:
        node.close()


def start(jms: Jms, nodes: Pair) -> None:
    """Starts both and waits until each knows the other."""
    for node in nodes:
        node.start()
    first, second = nodes
    until(f"{first.name} knows both", lambda: len(jms.topology(first)) == 2)
    until(f"{second.name} knows both", lambda: len(jms.topology(second)) == 2)


@pytest.fixture(params=["first-to-second", "second-to-first"])
def way(request: pytest.FixtureRequest, pair: Pair) -> Pair:
    """The pair as (where messages are sent, where they are consumed)."""
    return pair if request.param == "first-to-second" else (pair[1], pair[0])


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


@pytest.fixture
def client(jms: Jms, request: pytest.FixtureRequest) -> Iterator[Client]:
    """The JMS client of one test."""
    made = Client(jms, request.node.name.replace("[", ".").replace("]", ""))
    yield made
    made.close()


def test_both_tell_clients_the_same_topology(jms: Jms, pair: Pair) -> None:
    wanted = sorted(f"127.0.0.1:{node.port}" for node in pair)
    until("the first tells both", lambda: sorted(jms.topology(pair[0]).values()) == wanted)
    until("both tell the same", lambda: jms.topology(pair[0]) == jms.topology(pair[1]))


def test_queue_messages_go_to_the_consumer(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumer = client.consumer(way[1], queue)
    producer = client.producer(way[0], queue)
    client.warm(producer, consumer)
    client.jms.send(producer, range(200))
    assert client.numbers([consumer], 200) == [list(range(200))]


def test_consumers_on_both_sides_share(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumers = [client.consumer(node, queue) for node in way]
    producer = client.producer(way[0], queue)
    client.warm(producer, consumers[1])
    client.jms.receive(consumers[0], 1000, 300)
    client.jms.send(producer, range(100))
    shares = client.numbers(consumers, 100)
    assert [len(share) for share in shares] == [50, 50]
    assert sorted(shares[0] + shares[1]) == list(range(100))


def test_without_any_consumer_messages_stay_where_they_were_sent(client: Client, way: Pair) -> None:
    name = client.name("q")
    client.leave(client.producer(way[1], "queue:" + name))  # the queue exists on both sides
    producer = client.producer(way[0], "queue:" + name)
    client.jms.send(producer, range(30))
    assert client.jms.queue(way[0], name)[1] == 30
    assert client.numbers([client.consumer(way[0], "queue:" + name)], 30) == [list(range(30))]


def test_every_topic_subscriber_gets_every_message(client: Client, pair: Pair) -> None:
    topic = "topic:" + client.name("t")
    consumers = [client.consumer(node, topic) for node in pair]
    producers = [client.producer(node, topic) for node in pair]
    client.warm(producers[0], consumers[1])
    client.warm(producers[1], consumers[0])
    for consumer in consumers:
        client.jms.receive(consumer, 1000, 300)
    client.jms.send(producers[0], range(50))
    client.jms.send(producers[1], range(50, 100), persistent="false")
    for got in client.numbers(consumers, 200):
        assert sorted(got) == list(range(100))
        assert [n for n in got if n < 50] == list(range(50))
        assert [n for n in got if n >= 50] == list(range(50, 100))


def test_durable_subscription_elsewhere_keeps_messages(client: Client, way: Pair) -> None:
    topic = client.name("t")
    consumer = client.durable(way[1], topic, "sub")
    producer = client.producer(way[0], "topic:" + topic)
    client.warm(producer, consumer)
    client.leave(consumer)
    client.jms.send(producer, range(40))
    again = client.durable(way[1], topic, "sub")
    assert client.numbers([again], 40) == [list(range(40))]


def test_queue_filter_elsewhere(client: Client, way: Pair) -> None:
    address, queue = client.name("flights"), client.name("alerts")
    client.jms.create(way[1], address, queue, "MULTICAST", "kind = 'late'")
    consumer = client.consumer(way[1], f"queue:{address}::{queue}")
    producer = client.producer(way[0], "topic:" + address)
    client.warm(producer, consumer, kind="late")
    for n in range(40):
        client.jms.send(producer, range(n, n + 1), kind="late" if n % 4 == 0 else "early")
    assert client.numbers([consumer], 10) == [list(range(0, 40, 4))]


def test_selector_of_a_consumer_elsewhere(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    red = client.consumer(way[1], queue, "colour = 'red'")
    producer = client.producer(way[0], queue)
    client.warm(producer, red, colour="red")
    for n in range(40):
        client.jms.send(producer, range(n, n + 1), colour="red" if n % 2 == 0 else "blue")
    assert client.numbers([red], 20) == [list(range(0, 40, 2))]
    assert client.numbers([client.consumer(way[0], queue)], 20) == [list(range(1, 40, 2))]


def test_backlog_follows_a_consumer_that_appears_elsewhere(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    client.jms.send(client.producer(way[0], queue), range(150))
    got = client.numbers([client.consumer(way[1], queue)], 150)
    assert sorted(got[0]) == list(range(150))


def test_backlog_follows_a_consumer_that_moves(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    first = client.consumer(way[0], queue)
    client.jms.send(client.producer(way[0], queue), range(100))
    taken = [int(text) for text in client.jms.receive(first, 30, 2000)]
    assert taken == list(range(30))
    client.leave(first)
    moved = client.consumer(way[1], queue)
    (rest,) = client.numbers([moved], 70)
    assert sorted(rest) == list(range(30, 100))
    client.leave(moved)
    client.jms.send(client.producer(way[0], queue), range(100, 120))
    back = client.consumer(way[0], queue)
    assert sorted(client.numbers([back], 20)[0]) == list(range(100, 120))


def test_backlog_of_unwanted_messages_is_left(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    producer = client.producer(way[0], queue)
    client.jms.send(producer, range(10), colour="red")  # a real Artemis looks no further than
    client.jms.send(producer, range(10, 20), colour="blue")  # the first that nobody wants
    red = client.consumer(way[1], queue, "colour = 'red'")
    assert sorted(client.numbers([red], 10)[0]) == list(range(10))
    blue = client.consumer(way[1], queue, "colour = 'blue'")
    assert sorted(client.numbers([blue], 10)[0]) == list(range(10, 20))


def test_large_messages_cross(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumer = client.consumer(way[1], queue)
    producer = client.producer(way[0], queue)
    client.warm(producer, consumer)
    client.jms.send(producer, range(5), length=250_000)
    assert client.numbers([consumer], 5) == [list(range(5))]


def test_large_backlog_is_redistributed(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    client.jms.send(client.producer(way[0], queue), range(5), length=250_000)
    got = client.numbers([client.consumer(way[1], queue)], 5)
    assert sorted(got[0]) == list(range(5))


def test_transactions_cross_whole(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumer = client.consumer(way[1], queue)
    producer = client.producer(way[0], queue)
    client.warm(producer, consumer)
    transacted = client.transacted(way[0], queue)
    client.jms.send(transacted, range(20))
    client.jms("rollback", transacted)
    client.jms.send(transacted, range(20, 40))
    assert client.jms.receive(consumer, 1, 300) == []
    client.jms("commit", transacted)
    assert client.numbers([consumer], 20) == [list(range(20, 40))]


def test_duplicates_are_dropped_where_they_are_sent(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumer = client.consumer(way[1], queue)
    producer = client.producer(way[0], queue)
    client.warm(producer, consumer)
    for _ in range(2):
        client.jms.send(producer, range(20), dup="d")
    assert client.numbers([consumer], 20) == [list(range(20))]


def test_reply_to_a_temporary_queue_elsewhere(client: Client, way: Pair) -> None:
    replies, name = client.temporary(way[1])
    until(
        "the temporary queue is known at the other node",
        lambda: any(bound.startswith(name) for bound in client.jms.bindings(way[0], name)),
    )
    producer = client.producer(way[0], "queue:" + name)
    client.warm(producer, replies)
    client.jms.send(producer, range(10))
    assert client.numbers([replies], 10) == [list(range(10))]


def test_fully_qualified_queue_elsewhere(client: Client, way: Pair) -> None:
    address, queue = client.name("a"), client.name("q")
    for node in way:
        client.jms.create(node, address, queue, "ANYCAST")
    consumer = client.consumer(way[1], f"queue:{address}::{queue}")
    producer = client.producer(way[0], f"queue:{address}::{queue}")
    client.warm(producer, consumer)
    client.jms.send(producer, range(50))
    assert client.numbers([consumer], 50) == [list(range(50))]


def test_subscription_shared_by_consumers_on_both_sides(client: Client, way: Pair) -> None:
    topic, subscription = client.name("t"), client.name("team")
    consumers = [client.consumer(node, f"shared:{topic}:{subscription}") for node in way]
    producer = client.producer(way[0], "topic:" + topic)
    client.warm(producer, consumers[1])
    client.jms.receive(consumers[0], 1000, 300)
    client.jms.send(producer, range(60))
    shares = client.numbers(consumers, 60)
    assert [len(share) for share in shares] == [30, 30]
    assert sorted(shares[0] + shares[1]) == list(range(60))


def test_priority_is_kept_on_the_way(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumer = client.consumer(way[1], queue, "JMSPriority = 7")
    producer = client.producer(way[0], queue)
    client.warm(producer, consumer, priority=7)
    client.jms.send(producer, range(10), priority=6)
    client.jms.send(producer, range(10, 20), priority=7)
    assert client.numbers([consumer], 10) == [list(range(10, 20))]


def test_a_wildcard_subscriber_hears_of_topics_at_the_other_node(client: Client, way: Pair) -> None:
    topic = "topic:" + client.name("t")
    consumer = client.consumer(way[1], topic + ".#")
    producer = client.producer(way[0], topic + ".eu")
    client.warm(producer, consumer)
    other = client.producer(way[0], topic + ".us.today")
    client.jms.send(producer, range(10))
    client.jms.send(other, range(10, 20))
    assert client.numbers([consumer], 20) == [list(range(20))]


def test_a_delayed_message_is_not_early_at_the_other_node(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumer = client.consumer(way[1], queue)
    producer = client.producer(way[0], queue)
    client.warm(producer, consumer)
    client.jms.send(producer, range(5), delay=2000)
    assert client.jms.receive(consumer, 1, 1000) == []
    # Artemis' own order of messages with different times is not theirs.
    assert sorted(client.numbers([consumer], 5)[0]) == list(range(5))
