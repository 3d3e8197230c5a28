"""Networks whose connectors are our node's: to a real broker of ActiveMQ Classic, and to another node of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.harness.classic import Classic, ClassicBroker, numbers
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.openwire import CLIENTS
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", params=[*(f"classic-{version}" for version in CLIENTS), "atalanta"])
def kind(request: pytest.FixtureRequest) -> str:
    """What the neighbour is."""
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def classic(kind: str) -> Iterator[Classic]:
    """The JVM with the clients, and with Classic's brokers of the version of `kind`."""
    with Classic(kind.partition("-")[2] or CLIENTS[0]) as jvm:
        yield jvm


class Pair:
    """Our node `node` with connectors, and the `neighbour` to which they lead. `here` and `there` are their URLs."""

    def __init__(self, classic: Classic, node: BrokerProcess, neighbour: BrokerProcess | ClassicBroker) -> None:
        self.classic = classic
        self.node = node
        self.neighbour = neighbour
        self.here = f"tcp://127.0.0.1:{node.port}"
        self.there = f"tcp://127.0.0.1:{neighbour.port}"

    def connect(self, *options: str, uri: str = "") -> None:
        """Starts the node with a connector, and waits for its bridge."""
        user = ('userName = "neighbour"', 'password = "neighbour"')
        lines = [f'uri = "{uri or f"static:({self.there})"}"', *user, *options]
        (self.node.folder / "etc" / "atalanta.toml").write_text("\n".join(["[networks.NC]", *lines]))
        self.start()

    def start(self) -> None:
        self.node.start()
        until("the bridge is up", lambda: "network_bridge_connected" in self.node.log.read_text())


@pytest.fixture
def pair(kind: str, classic: Classic, brokers: Lineup) -> Iterator[Pair]:
    """A pair; our node starts with `connect`."""
    neighbour: BrokerProcess | ClassicBroker
    if kind == "atalanta":
        neighbour = brokers.openwire()
        neighbour.start()
    else:
        neighbour = classic.broker("classic")
    made = Pair(classic, brokers.openwire(), neighbour)
    yield made
    classic.close_all()
    made.node.close()
    if isinstance(neighbour, ClassicBroker):
        neighbour.stop()
    else:
        neighbour.close()


def test_messages_of_queues_follow_the_demand(pair: Pair) -> None:
    classic = pair.classic
    pair.connect()
    classic.send(pair.here, "queue:orders", range(3))
    consumer = classic.consumer(pair.there, "queue:orders")
    assert classic.receive(consumer, 3) == numbers(0, 3)
    classic.send(pair.here, "queue:orders", range(3, 6))
    classic.send(pair.here, "queue:orders", range(6, 9), "persistent=false")
    assert classic.receive(consumer, 6) == numbers(3, 6)
    classic.close(consumer)
    assert classic.rest(classic.consumer(pair.here, "queue:orders")) == []


def test_topics_reach_subscribers_of_both_brokers_once(pair: Pair) -> None:
    classic = pair.classic
    far = [classic.consumer(pair.there, "topic:news") for _ in range(2)]
    pair.connect()
    near = classic.consumer(pair.here, "topic:news")
    until("the first arrives", lambda: arrives(pair, far[0]))
    classic.rest(near), classic.rest(far[1])
    classic.send(pair.here, "topic:news", range(5))
    for consumer in (near, *far):
        assert classic.receive(consumer, 5) == numbers(0, 5) and classic.rest(consumer) == []


def arrives(pair: Pair, consumer: str) -> bool:
    """Whether a message to the topic comes to the consumer; the demand may need a moment."""
    pair.classic.send(pair.here, "topic:news", range(100, 101))
    return pair.classic.receive(consumer, 1, 500) != []


def test_a_durable_subscriber_gets_what_was_sent_while_it_was_away(pair: Pair) -> None:
    classic = pair.classic
    subscriber = classic.consumer(pair.there, "durable:news:one", client_id="client.one")
    pair.connect()
    until("the first arrives", lambda: arrives(pair, subscriber))
    classic.rest(subscriber)
    classic.close(subscriber)
    classic.send(pair.here, "topic:news", range(4))
    subscriber = classic.consumer(pair.there, "durable:news:one", client_id="client.one")
    assert classic.receive(subscriber, 4) == numbers(0, 4) and classic.rest(subscriber) == []


def test_one_duplex_connector_serves_both_directions(pair: Pair) -> None:
    classic = pair.classic
    pair.connect("duplex = true")
    there, here = classic.consumer(pair.there, "queue:to.there"), classic.consumer(pair.here, "queue:to.here")
    classic.send(pair.here, "queue:to.there", range(5))
    classic.send(pair.there, "queue:to.here", range(5, 10))
    assert classic.receive(there, 5) == numbers(0, 5) and classic.receive(here, 5) == numbers(5, 5)


def test_requests_and_replies_over_a_duplex_connection(pair: Pair) -> None:
    classic = pair.classic
    pair.connect("duplex = true")
    classic.replier(pair.here, "queue:requests.here")
    classic.replier(pair.there, "queue:requests.there")
    assert classic.request(pair.there, "queue:requests.here", "a") == ["re a"]
    assert classic.request(pair.here, "queue:requests.there", "b") == ["re b"]


def test_included_and_excluded_destinations(pair: Pair) -> None:
    classic = pair.classic
    pair.connect('dynamicallyIncludedDestinations = "queue://orders.>"', 'excludedDestinations = "queue://orders.local"')
    names = ("orders.eu", "orders.local", "bills")
    consumers = [classic.consumer(pair.there, f"queue:{name}") for name in names]
    for name in names:
        classic.send(pair.here, f"queue:{name}", range(2))
    assert classic.receive(consumers[0], 2) == numbers(0, 2)
    assert [classic.rest(consumer) for consumer in consumers[1:]] == [[], []]


def test_a_static_bridge_needs_no_consumer(pair: Pair) -> None:
    classic = pair.classic
    pair.connect('staticallyIncludedDestinations = "queue://orders"', "staticBridge = true")
    classic.send(pair.here, "queue:orders", range(3))
    until("nothing is left here", lambda: classic.rest(classic.consumer(pair.here, "queue:empty")) == [])
    assert classic.receive(classic.consumer(pair.there, "queue:orders"), 3) == numbers(0, 3)


def test_nothing_is_lost_or_doubled_when_our_node_is_killed(pair: Pair) -> None:
    classic = pair.classic
    pair.connect()
    consumer = classic.consumer(pair.there, "queue:orders")
    classic.send(pair.here, "queue:orders", range(300))
    pair.node.kill()
    pair.start()
    classic.send(pair.here, "queue:orders", range(300, 350))
    got = [int(text.rstrip("!")) for text in classic.receive(consumer, 350, 20_000)]
    if isinstance(pair.neighbour, ClassicBroker):  # without auditNetworkProducers it may take a message twice
        assert sorted(set(got)) == list(range(350))
    else:
        assert sorted(got) == list(range(350)) and classic.rest(consumer) == []


def test_loops_are_cut(pair: Pair) -> None:
    classic = pair.classic
    pair.connect("duplex = true", "networkTTL = 5")
    here, there = classic.consumer(pair.here, "topic:news"), classic.consumer(pair.there, "topic:news")
    until("the first arrives", lambda: arrives(pair, there))
    classic.rest(here), classic.rest(there)
    classic.send(pair.there, "topic:news", range(3))
    classic.send(pair.here, "topic:news", range(3, 6))
    for consumer in (here, there):
        assert sorted(classic.receive(consumer, 6)) == numbers(0, 6) and classic.rest(consumer) == []


def test_masterslave_takes_the_first_that_answers(pair: Pair) -> None:
    classic = pair.classic
    pair.connect(uri=f"masterslave:(tcp://127.0.0.1:{free_port()},{pair.there})")
    consumer = classic.consumer(pair.there, "queue:orders")
    classic.send(pair.here, "queue:orders", range(3))
    assert classic.receive(consumer, 3) == numbers(0, 3)
