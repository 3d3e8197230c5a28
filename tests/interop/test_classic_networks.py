"""Networks of a real broker of ActiveMQ Classic, 5.18 and 6.1, whose networkConnector leads to one of our nodes.

With `--target classic` it leads to another broker of Classic, which keeps the scenarios honest.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.harness.classic import Classic, ClassicBroker, numbers
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


class Pair:
    """Classic's broker `broker` with a connector to the neighbour, which is our node, and the URLs of both."""

    def __init__(self, classic: Classic, broker: ClassicBroker, neighbour: BrokerProcess | ClassicBroker) -> None:
        self.classic = classic
        self.broker = broker
        self.neighbour = neighbour
        self.there: str = broker.url
        self.here = f"tcp://127.0.0.1:{neighbour.port}"

    def connect(self, *options: str) -> None:
        """Starts the connector, and waits for its bridge."""
        user = ("userName=neighbour", "password=neighbour")
        self.broker.connect(f"static:({self.here})", *user, *options)
        self.await_bridge()

    def await_bridge(self) -> None:
        until("the bridge is up", lambda: len(self.broker.bridges()) == 1)

    def await_consumers(self, destination: str, count: int) -> None:
        """Waits for the consumers at Classic's broker, those of the bridge among them."""
        until(f"{count} consumers", lambda: max(self.broker.depth(destination)[1], 0) == count)


@pytest.fixture
def pair(classic: Classic, brokers: Lineup, request: pytest.FixtureRequest) -> Iterator[Pair]:
    """A pair whose brokers do not know each other yet."""
    neighbour: BrokerProcess | ClassicBroker
    if request.config.getoption("--target", default=None) == "classic":
        neighbour = classic.broker("neighbour")
    else:
        neighbour = brokers.openwire()
        neighbour.start()
    broker = classic.broker("classic")
    yield Pair(classic, broker, neighbour)
    classic.close_all()
    broker.stop()
    if isinstance(neighbour, ClassicBroker):
        neighbour.stop()
    else:
        neighbour.close()


def test_messages_of_queues_follow_the_demand(pair: Pair) -> None:
    classic = pair.classic
    pair.connect()
    classic.send(pair.there, "queue:orders", range(3))
    consumer = classic.consumer(pair.here, "queue:orders")
    assert classic.receive(consumer, 3) == numbers(0, 3)
    classic.send(pair.there, "queue:orders", range(3, 6))
    classic.send(pair.there, "queue:orders", range(6, 9), "persistent=false")
    assert classic.receive(consumer, 6) == numbers(3, 6)
    until("all are acknowledged", lambda: pair.broker.depth("queue:orders")[0] == 0)
    classic.close(consumer)
    pair.await_consumers("queue:orders", 0)
    classic.send(pair.there, "queue:orders", range(9, 11))
    assert pair.broker.depth("queue:orders") == (2, 0)
    again = classic.consumer(pair.here, "queue:orders")
    assert classic.receive(again, 2) == numbers(9, 2) and classic.rest(again) == []


def test_consumers_that_are_there_first_are_demand(pair: Pair) -> None:
    classic = pair.classic
    consumer = classic.consumer(pair.here, "queue:orders")
    pair.connect()
    pair.await_consumers("queue:orders", 1)
    classic.send(pair.there, "queue:orders", range(3))
    assert classic.receive(consumer, 3) == numbers(0, 3)


def test_topics_reach_subscribers_of_both_brokers_once(pair: Pair) -> None:
    classic = pair.classic
    pair.connect()
    far = [classic.consumer(pair.here, "topic:news") for _ in range(2)]
    near = classic.consumer(pair.there, "topic:news")
    pair.await_consumers("topic:news", 2)
    classic.send(pair.there, "topic:news", range(5))
    for consumer in (near, *far):
        assert classic.receive(consumer, 5) == numbers(0, 5)
        assert classic.rest(consumer) == []


def test_durable_subscriptions_of_both_kinds_of_clients(pair: Pair) -> None:
    """A durable subscription at our node gets what is sent at Classic's broker while its client is away."""
    classic = pair.classic
    pair.connect()
    first = classic.consumer(pair.here, "durable:news:one", client_id="client.one")
    second = classic.consumer(pair.here, "durable:news:two", client_id="client.two")
    pair.await_consumers("topic:news", 1)
    classic.close(first)
    classic.send(pair.there, "topic:news", range(4))
    assert classic.receive(second, 4) == numbers(0, 4) and classic.rest(second) == []
    first = classic.consumer(pair.here, "durable:news:one", client_id="client.one")
    assert classic.receive(first, 4) == numbers(0, 4) and classic.rest(first) == []
    for consumer, name in ((first, "one"), (second, "two")):
        classic.close(consumer)
        classic.unsubscribe(pair.here, name, f"client.{name}")
    pair.await_consumers("topic:news", 0)


def test_selectors_choose_at_our_node(pair: Pair) -> None:
    """A conduit bridge brings all messages: those that no consumer takes wait at our node, as in Classic."""
    classic = pair.classic
    pair.connect()
    red = classic.consumer(pair.here, "topic:news", "color = 'red'")
    blue = classic.consumer(pair.here, "topic:news", "color = 'blue'")
    pair.await_consumers("topic:news", 1)
    for first, color in ((0, "red"), (2, "blue"), (4, "green")):
        classic.send(pair.there, "topic:news", range(first, first + 2), f"color={color}")
    assert classic.receive(red, 2) == numbers(0, 2) and classic.receive(blue, 2) == numbers(2, 2)
    assert classic.rest(red) == classic.rest(blue) == []


def test_selectors_travel_without_conduit(pair: Pair) -> None:
    classic = pair.classic
    pair.connect("conduitSubscriptions=false")
    red = classic.consumer(pair.here, "queue:orders", "color = 'red'")
    pair.await_consumers("queue:orders", 1)
    classic.send(pair.there, "queue:orders", range(2), "color=green")
    classic.send(pair.there, "queue:orders", range(2, 4), "color=red")
    assert classic.receive(red, 2) == numbers(2, 2)
    until("the others stay", lambda: pair.broker.depth("queue:orders")[0] == 2)


def test_included_and_excluded_destinations(pair: Pair) -> None:
    classic = pair.classic
    pair.connect("dynamic=queue://orders.>,topic://news", "excluded=queue://orders.local")
    names = ("queue:orders.eu", "queue:orders.local", "queue:bills", "topic:news")
    consumers = {name: classic.consumer(pair.here, name) for name in names}
    pair.await_consumers("topic:news", 1)
    for name in names:
        classic.send(pair.there, name, range(2))
    for name in ("queue:orders.eu", "topic:news"):
        assert classic.receive(consumers[name], 2) == numbers(0, 2)
    for name in ("queue:orders.local", "queue:bills"):
        assert classic.rest(consumers[name]) == [] and pair.broker.depth(name) == (2, 0)


def test_static_destinations_need_no_consumer(pair: Pair) -> None:
    classic = pair.classic
    pair.connect("static=queue://orders", "staticBridge=true")
    classic.send(pair.there, "queue:orders", range(3))
    until("all are forwarded", lambda: pair.broker.depth("queue:orders")[0] == 0)
    assert classic.receive(classic.consumer(pair.here, "queue:orders"), 3) == numbers(0, 3)


def test_nothing_is_lost_or_doubled_when_the_link_comes_and_goes(pair: Pair) -> None:
    classic = pair.classic
    pair.connect()
    consumer = classic.consumer(pair.here, "queue:orders")
    pair.await_consumers("queue:orders", 1)
    for turn in range(4):
        classic.send(pair.there, "queue:orders", range(turn * 50, turn * 50 + 50))
        pair.broker.unlink()
        classic.send(pair.there, "queue:orders", range(200 + turn * 5, 205 + turn * 5))
        pair.broker.link()
        pair.await_bridge()
    got = [int(text.rstrip("!")) for text in classic.receive(consumer, 220)]
    assert sorted(got) == list(range(220))
    assert classic.rest(consumer) == []


def test_our_node_is_killed_and_comes_back(pair: Pair) -> None:
    """What is confirmed is there again; what is not is sent again, and arrives once."""
    classic, neighbour = pair.classic, pair.neighbour
    if isinstance(neighbour, ClassicBroker):
        pytest.skip("a broker in the JVM of the clients cannot be killed")
    pair.connect()
    url = f"failover:({pair.here})"
    consumer = classic.consumer(url, "queue:orders")
    pair.await_consumers("queue:orders", 1)
    classic.close(consumer)
    waiting = classic.consumer(url, "queue:more")
    pair.await_consumers("queue:more", 1)
    classic.send(pair.there, "queue:more", range(300), "persistent=true")
    neighbour.kill()
    classic.send(pair.there, "queue:more", range(300, 400))
    neighbour.start()
    got = [int(text.rstrip("!")) for text in classic.receive(waiting, 400, 30_000)]
    assert sorted(got) == list(range(400))
    assert classic.rest(waiting) == []


def test_requests_and_replies_over_a_duplex_connection(pair: Pair) -> None:
    classic = pair.classic
    pair.connect("duplex=true")
    classic.replier(pair.here, "queue:requests.here")
    classic.replier(pair.there, "queue:requests.there")
    pair.await_consumers("queue:requests.here", 1)
    assert classic.request(pair.there, "queue:requests.here", "a") == ["re a"]
    assert classic.request(pair.here, "queue:requests.there", "b") == ["re b"]


def test_a_duplex_connection_serves_both_directions(pair: Pair) -> None:
    classic = pair.classic
    pair.connect("duplex=true")
    here = [classic.consumer(pair.here, name) for name in ("queue:to.here", "topic:news")]
    there = [classic.consumer(pair.there, name) for name in ("queue:to.there", "topic:news")]
    pair.await_consumers("queue:to.here", 1)
    pair.await_consumers("topic:news", 2)
    classic.send(pair.there, "queue:to.here", range(5))
    assert classic.receive(here[0], 5) == numbers(0, 5)
    classic.send(pair.here, "queue:to.there", range(5))
    assert classic.receive(there[0], 5) == numbers(0, 5)
    classic.send(pair.there, "topic:news", range(3))
    classic.send(pair.here, "topic:news", range(3, 6))
    for consumer in (here[1], there[1]):
        assert sorted(classic.receive(consumer, 6)) == numbers(0, 6)
        assert classic.rest(consumer) == []


def test_loops_are_cut(pair: Pair) -> None:
    """With demand on both sides, and messages and demand that may pass many brokers, nothing goes round."""
    classic = pair.classic
    pair.connect("duplex=true", "networkTTL=5")
    here, there = classic.consumer(pair.here, "topic:news"), classic.consumer(pair.there, "topic:news")
    queue = classic.consumer(pair.here, "queue:orders")
    pair.await_consumers("topic:news", 2)
    pair.await_consumers("queue:orders", 1)
    classic.send(pair.there, "topic:news", range(3))
    classic.send(pair.here, "topic:news", range(3, 6))
    classic.send(pair.there, "queue:orders", range(10))
    for consumer in (here, there):
        assert sorted(classic.receive(consumer, 6)) == numbers(0, 6) and classic.rest(consumer) == []
    assert classic.receive(queue, 10) == numbers(0, 10) and classic.rest(queue) == []
