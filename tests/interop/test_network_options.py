"""Options of networks that are seen with several consumers or brokers: one or two of Classic, and our node.

The connectors are ours, or those of Classic's brokers, which tell our node their options. All are duplex.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.harness.classic import Classic, ClassicBroker, numbers
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
both_ends = pytest.mark.parametrize("dialling", ["ours", "theirs"])
ORDERS = "queue:orders"
ANY_PRIORITY = "decreaseNetworkConsumerPriority=false"


class Network:
    """Our node, and the brokers of Classic by name. `here` is the URL of the node."""

    def __init__(self, classic: Classic, node: BrokerProcess) -> None:
        self.classic = classic
        self.node = node
        self.here = f"tcp://127.0.0.1:{node.port}"
        self.brokers: list[ClassicBroker] = []

    def broker(self, name: str, *options: str) -> ClassicBroker:
        """Starts a broker of Classic."""
        self.brokers.append(self.classic.broker(name, None, *options))
        return self.brokers[-1]

    def start(self, dialling: str, *options: str) -> None:
        """Starts the node, and between it and each broker a connector of this end, with options as Classic writes them.

        Returns when the bridges are up.
        """
        if dialling == "ours":
            text = "".join(_table(broker, options) for broker in self.brokers)
            (self.node.folder / "etc" / "atalanta.toml").write_text(text)
            self.node.start()
            until("the bridges are up", lambda: self._connected() == len(self.brokers))
        else:
            self.node.start()
            for broker in self.brokers:
                lead(broker, self.here, *options)

    def _connected(self) -> int:
        return self.node.log.read_text().count("network_bridge_connected")

    def passed(self, consumer: str, *, sender: str = "", target: str = ORDERS) -> bool:
        """Sends one message at our node, or at `sender`. Returns whether one comes to the consumer in half a second."""
        self.classic.send(sender or self.here, target, range(1000, 1001))
        return self.classic.receive(consumer, 1, 500) != []

    def await_demand(self, consumer: str, *, sender: str = "", target: str = ORDERS) -> None:
        """Waits until messages that are sent at our node, or at `sender`, come to the consumer."""
        until("the demand is known", lambda: self.passed(consumer, sender=sender, target=target))
        self.classic.rest(consumer)

    def await_advisories(self, broker: ClassicBroker) -> None:
        """Waits until our node has all that the broker has told before: advisories come in order."""
        consumer = self.classic.consumer(broker.url, "queue:control")
        self.await_demand(consumer, target="queue:control")
        self.classic.close(consumer)


def lead(broker: ClassicBroker, url: str, *options: str) -> None:
    """Starts a duplex connector of a broker of Classic, and waits for its bridge."""
    broker.connect(f"static:({url})", "userName=neighbour", "password=neighbour", "duplex=true", *options)
    until("the bridge is up", lambda: len(broker.bridges()) == 1)


def _table(broker: ClassicBroker, options: tuple[str, ...]) -> str:
    lines = [f"[networks.{broker.name}]", f'uri = "static:({broker.url})"', "duplex = true"]
    return "\n".join([*lines, 'userName = "neighbour"', 'password = "neighbour"', *options, ""])


@pytest.fixture
def network(classic: Classic, brokers: Lineup) -> Iterator[Network]:
    """A network; nothing runs yet."""
    made = Network(classic, brokers.openwire())
    yield made
    classic.close_all()
    made.node.close()
    for broker in made.brokers:
        broker.stop()


@both_ends
@pytest.mark.parametrize(
    ("options", "place"),
    [
        (["networkTTL=1"], "west"),
        (["networkTTL=2"], "east"),
        (["messageTTL=1", "consumerTTL=2"], "node"),
        (["messageTTL=2", "consumerTTL=1"], "west"),
    ],
    ids=["one", "two", "messages", "consumers"],
)
def test_messages_and_demand_pass_so_many_brokers(
    network: Network, dialling: str, options: list[str], place: str
) -> None:
    """In the chain west, our node, east the consumer is in the east, and the messages are sent in the west."""
    classic = network.classic
    west, east = network.broker("west"), network.broker("east")
    network.start(dialling, *options)
    consumer = classic.consumer(east.url, ORDERS)
    network.await_demand(consumer)
    control = classic.consumer(network.here, "queue:control")  # told to the west behind that of the east
    network.await_demand(control, sender=west.url, target="queue:control")
    classic.send(west.url, ORDERS, range(3))
    if place == "east":
        assert classic.receive(consumer, 3) == numbers(0, 3) and classic.rest(consumer) == []
    elif place == "node":
        until("all have left the west", lambda: west.depth(ORDERS)[0] == 0)
        assert classic.rest(consumer) == []
        assert classic.receive(classic.consumer(network.here, ORDERS), 3) == numbers(0, 3)
    else:
        assert classic.rest(consumer) == [] and west.depth(ORDERS)[0] == 3


@both_ends
@pytest.mark.parametrize("lower", [True, False], ids=["lower", "equal"])
def test_consumers_here_come_before_those_of_other_brokers(network: Network, dialling: str, lower: bool) -> None:
    classic = network.classic
    west = network.broker("west")
    network.start(dialling, f"decreaseNetworkConsumerPriority={str(lower).lower()}")
    far = classic.consumer(west.url, ORDERS)
    network.await_demand(far)
    near = classic.consumer(network.here, ORDERS)
    classic.send(network.here, ORDERS, range(20))
    if lower:
        assert classic.receive(near, 20) == numbers(0, 20) and classic.rest(far) == []
    else:
        parts = [classic.rest(near), classic.rest(far)]
        assert [len(part) for part in parts] == [10, 10]
        assert sorted(int(text) for part in parts for text in part) == list(range(20))


@both_ends
@pytest.mark.parametrize(
    ("options", "share"),
    [([], 0), ([ANY_PRIORITY], 10), ([ANY_PRIORITY, "suppressDuplicateQueueSubscriptions=true"], 0)],
    ids=["nearer", "both", "suppressed"],
)
def test_of_two_ways_to_one_consumer_the_shorter_is_taken(
    network: Network, dialling: str, options: list[str], share: int
) -> None:
    """In the triangle the consumer is in the east; `share` of the messages take the way over the west."""
    classic = network.classic
    west, east = network.broker("west"), network.broker("east")
    network.start(dialling, "networkTTL=2", *options)
    west.connect(f"static:({east.url})", "networkTTL=2", name="across")
    consumer = classic.consumer(east.url, ORDERS)
    until("the west knows the consumer", lambda: west.depth(ORDERS)[1] >= 1)
    network.await_demand(consumer)
    network.await_advisories(west)
    before = max(west.arrived(ORDERS), 0)
    classic.send(network.here, ORDERS, range(20))
    got = [int(text) for text in classic.receive(consumer, 20)]
    assert sorted(got) == list(range(20)) and classic.rest(consumer) == []
    assert max(west.arrived(ORDERS), 0) - before == share


def test_the_longer_way_is_taken_when_the_shorter_one_ends(network: Network) -> None:
    classic = network.classic
    west, east = network.broker("west"), network.broker("east")
    network.start("theirs", "networkTTL=2", "suppressDuplicateQueueSubscriptions=true")
    west.connect(f"static:({east.url})", "networkTTL=2", name="across")
    consumer = classic.consumer(east.url, ORDERS)
    until("the west knows the consumer", lambda: west.depth(ORDERS)[1] >= 1)
    network.await_demand(consumer)
    direct = max(west.arrived(ORDERS), 0)
    east.unlink()
    until("messages pass the west", lambda: network.passed(consumer) and west.arrived(ORDERS) > direct)
    classic.rest(consumer)
    classic.send(network.here, ORDERS, range(20))
    assert sorted(int(text) for text in classic.receive(consumer, 20)) == list(range(20))
    assert classic.rest(consumer) == []


@both_ends
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_messages_of_durable_subscriptions_wait_for_their_client_here_or_there(
    network: Network, dialling: str, dynamic: bool
) -> None:
    """With dynamicOnly they wait here, else in the west."""
    classic = network.classic
    west = network.broker("west")
    network.start(dialling, f"dynamicOnly={str(dynamic).lower()}")
    subscriber = classic.consumer(west.url, "durable:news:one", client_id="client.one")
    network.await_demand(subscriber, target="topic:news")
    classic.close(subscriber)
    network.await_advisories(west)
    before = west.arrived("topic:news")
    classic.send(network.here, "topic:news", range(4))
    if dynamic:
        network.await_advisories(west)  # what was sent later has come
        assert west.arrived("topic:news") == before
    else:
        until("all are in the west", lambda: west.arrived("topic:news") == before + 4)
    subscriber = classic.consumer(west.url, "durable:news:one", client_id="client.one")
    assert classic.receive(subscriber, 4) == numbers(0, 4) and classic.rest(subscriber) == []


@pytest.mark.parametrize("replay", [True, False], ids=["on", "off"])
def test_messages_follow_consumers_to_brokers_that_they_have_passed(network: Network, replay: bool) -> None:
    """They go from the west to our node, back, and to our node again."""
    classic = network.classic
    west = network.broker("west", "replayWhenNoConsumers=true")
    network.start("ours", f"replayWhenNoConsumers={str(replay).lower()}", "replayDelay=500")
    idle = classic.consumer(network.here, ORDERS)
    until("the west knows the consumer", lambda: west.depth(ORDERS)[1] == 1)
    classic.send(west.url, ORDERS, range(5))
    until("all have left the west", lambda: west.depth(ORDERS)[0] == 0)
    classic.close(idle)
    idle = classic.consumer(west.url, ORDERS)
    if replay:
        until("all are in the west", lambda: west.depth(ORDERS)[0] == 5)
    else:
        assert classic.receive(idle, 1, 2000) == []
    classic.close(idle)
    consumer = classic.consumer(network.here, ORDERS)
    assert sorted(text.rstrip("!") for text in classic.receive(consumer, 5)) == numbers(0, 5)
    assert classic.rest(consumer) == [] and west.depth(ORDERS)[0] == 0


@both_ends
def test_replies_find_temporary_queues_two_brokers_away(network: Network, dialling: str) -> None:
    classic = network.classic
    west, east = network.broker("west"), network.broker("east")
    network.start(dialling, "networkTTL=2")
    classic.replier(east.url, "queue:requests")
    until("the west knows the consumer", lambda: west.depth("queue:requests")[1] == 1)
    assert classic.request(west.url, "queue:requests", "a") == ["re a"]


@both_ends
def test_without_bridged_temporary_queues_there_is_no_reply(network: Network, dialling: str) -> None:
    classic = network.classic
    west = network.broker("west")
    network.start(dialling, "bridgeTempDestinations=false")
    classic.replier(west.url, "queue:requests")
    request = classic.consumer(west.url, "queue:control")
    network.await_demand(request, target="queue:control")
    assert classic.request(network.here, "queue:requests", "a", 2000) == []
    until("the request was taken", lambda: west.depth("queue:requests")[0] == 0)
    assert west.arrived("queue:requests") == 1


@both_ends
@pytest.mark.parametrize(("conduit", "share"), [(True, 20), (False, 10)], ids=["conduit", "each"])
def test_each_consumer_counts_without_conduit(network: Network, dialling: str, conduit: bool, share: int) -> None:
    """Three consumers in the west get as much as one here, or as much each."""
    classic = network.classic
    west = network.broker("west")
    network.start(dialling, ANY_PRIORITY, f"conduitSubscriptions={str(conduit).lower()}")
    far = [classic.consumer(west.url, ORDERS) for _ in range(3)]
    network.await_advisories(west)
    near = classic.consumer(network.here, ORDERS)
    classic.send(network.here, ORDERS, range(40))
    parts = [classic.rest(consumer) for consumer in (near, *far)]
    assert sorted(int(text) for part in parts for text in part) == list(range(40))
    assert len(parts[0]) == share and all(abs(len(part) - (40 - share) / 3) <= 1 for part in parts[1:])
