"""Networks of two of our nodes: what is sent at one reaches the consumers of the other, once."""

from __future__ import annotations

from typing import Any

import pytest

from atalanta.config.native.network_uri import read_uri
from atalanta.kernel.security.security import PERMISSIONS
from atalanta.node.config import NodeConfig
from atalanta.sim.nodes import PORT
from atalanta.sim.world.world import SECOND
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue, ActiveMQTopic
from tests.cluster.networks.network_rig import (
    NEWS,
    ORDERS,
    NetworkRig,
    bridges_of,
    connector,
    depth,
    network_consumers,
    only,
)


def numbered(count: int, first: int = 0) -> list[str | None]:
    return [f"m{number}" for number in range(first, first + count)]


def test_messages_reach_the_consumer_at_the_other_node(rig: NetworkRig) -> None:
    a, b = rig.start([connector(1)], [])
    consumer = rig.consumer(b, ORDERS)
    rig.demand(a, ORDERS)
    producer = rig.user(a)
    for text in numbered(5):
        producer.send(text or "", ORDERS)
    rig.until(lambda: len(consumer.texts) == 5)
    assert consumer.texts == numbered(5)
    rig.until(lambda: depth(a, "orders") == 0)
    assert [each.value for each in consumer.messages[0].broker_path or []] == ["node-0"]


def test_without_demand_messages_stay(rig: NetworkRig) -> None:
    """The demand ends with the last consumer; what was not sent by then stays here."""
    a, b = rig.start([connector(1)], [])
    producer = rig.user(a)
    producer.send("before", ORDERS)
    rig.run(1)
    assert depth(a, "orders") == 1
    consumer = rig.user(b)
    consumer_id = consumer.consume(ORDERS)
    rig.until(lambda: consumer.texts == ["before"])
    consumer.close(consumer_id)
    rig.demand(a, ORDERS, 0)
    producer.send("after", ORDERS)
    rig.run(1)
    assert depth(a, "orders") == 1 and depth(b, "orders") == 0 and consumer.texts == ["before"]


def test_topics_reach_the_subscribers_of_both(rig: NetworkRig) -> None:
    a, b = rig.start([connector(1)], [])
    near, far = rig.consumer(a, NEWS), rig.consumer(b, NEWS)
    rig.demand(a, NEWS)
    rig.user(a).send("today", NEWS)
    rig.until(lambda: near.texts == ["today"] and far.texts == ["today"])


def test_consumers_here_are_preferred(rig: NetworkRig) -> None:
    """The consumer of the bridge has priority -5: it gets what the others have no room for."""
    a, b = rig.start([connector(1)], [])
    far = rig.consumer(b, ORDERS)
    rig.demand(a, ORDERS)
    near = rig.user(a)
    near.acknowledges = False
    near.consume(ORDERS, prefetch=3)
    rig.run(1)
    producer = rig.user(a)
    for text in numbered(5):
        producer.send(text or "", ORDERS)
    rig.until(lambda: len(near.texts) + len(far.texts) == 5)
    assert near.texts == numbered(3) and far.texts == numbered(2, 3)


def test_a_restart_of_the_other_node_loses_and_doubles_nothing(rig: NetworkRig) -> None:
    a, b = rig.start([connector(1)], [])
    taken: list[str | None] = []
    consumer = rig.consumer(b, ORDERS)
    rig.demand(a, ORDERS)
    producer = rig.user(a)
    for number in range(60):
        producer.send(f"m{number}", ORDERS)
        if number in (20, 40):
            rig.run(0.003)
            b.crash()
            taken += consumer.texts
            consumer.kill()
            rig.run(0.5)
            b.start()
            consumer = rig.consumer(b, ORDERS)
    rig.until(lambda: depth(a, "orders") == 0 and depth(b, "orders") == 0)
    taken += consumer.texts
    rig.run(1)
    # What a consumer has got but not acknowledged before the crash comes again: it is not the bridge that doubles.
    assert set(taken) == set(numbered(60))


def test_a_cut_connection_doubles_nothing(rig: NetworkRig) -> None:
    """Answers are lost with the connection: the messages are sent again, and the other node knows them."""
    a, b = rig.start([connector(1)], [])
    consumer = rig.consumer(b, ORDERS)
    rig.demand(a, ORDERS)
    producer = rig.user(a)
    for number in range(200):
        producer.send(f"m{number}", ORDERS)
        if number % 20 == 10:
            rig.run(0.001)
            link = bridges_of(a)[0].link
            if link is not None:
                rig.network.close(link.conn, "cut")
                link.host.close(link.conn, "cut")
            rig.run(0.4)
    rig.until(lambda: len(consumer.texts) >= 200)
    rig.run(2)
    assert sorted(consumer.texts, key=str) == sorted(numbered(200), key=str)
    assert bridges_of(a)[0].sent() > 200


def test_conduit_or_a_consumer_for_each(rig: NetworkRig) -> None:
    """Without conduit subscriptions, selectors of the consumers are those of the bridge."""
    a, b, c = rig.start([connector(1)], [], [connector(1, conduit_subscriptions=False)])
    first, second = rig.consumer(b, ORDERS, selector="n = 1"), rig.consumer(b, ORDERS, selector="n = 2")
    rig.demand(a, ORDERS, 1)
    rig.demand(c, ORDERS, 2)
    from_a, from_c = rig.user(a), rig.user(c)
    from_a.send("a", ORDERS)
    from_c.send("c", ORDERS)
    rig.until(lambda: depth(b, "orders") == 1)
    rig.run(1)
    assert depth(c, "orders") == 1 and first.texts == second.texts == []


def test_included_and_excluded_destinations(rig: NetworkRig) -> None:
    lists: dict[str, Any] = {
        "dynamically_included": only("queue://orders.>", "topic://news"),
        "excluded": only("queue://orders.local"),
    }
    a, b = rig.start([connector(1, **lists)], [])
    names = ["orders.eu", "orders.local", "bills"]
    consumer = rig.user(b)
    for name in names:
        consumer.consume(ActiveMQQueue(name))
    consumer.consume(NEWS)
    consumer.consume(ActiveMQTopic("weather"))
    rig.demand(a, NEWS)
    rig.run(1)
    found = [network_consumers(a, ActiveMQQueue(name)) for name in [*names, "weather"]]
    assert found == [1, 0, 0, 0]


def test_static_destinations_need_no_consumer(rig: NetworkRig) -> None:
    """With staticBridge nothing else is forwarded."""
    static = only("queue://orders", "topic://news")
    a, b = rig.start([connector(1, static_bridge=True, statically_included=static)], [])
    producer = rig.user(a)
    producer.send("m", ORDERS)
    rig.until(lambda: depth(b, "orders") == 1)
    consumer = rig.consumer(b, ActiveMQQueue("bills"))
    rig.run(1)
    assert network_consumers(a, ActiveMQQueue("bills")) == 0 and network_consumers(a, NEWS) == 1
    consumer.consume(ORDERS)
    rig.until(lambda: consumer.texts == ["m"])


def test_one_duplex_connector_serves_both_directions(rig: NetworkRig) -> None:
    a, b = rig.start([connector(1, duplex=True)], [])
    at_a, at_b = rig.consumer(a, ORDERS), rig.consumer(b, NEWS)
    rig.demand(b, ORDERS)
    rig.demand(a, NEWS)
    rig.user(a).send("to b", NEWS)
    rig.user(b).send("to a", ORDERS)
    rig.until(lambda: at_a.texts == ["to a"] and at_b.texts == ["to b"])
    rig.until(lambda: depth(b, "orders") == 0)
    assert bridges_of(a)[0].sent() == 1 and bridges_of(a)[0].received() == 1


def test_masterslave_takes_the_first_that_serves(rig: NetworkRig) -> None:
    config = connector(1)
    config.way.bridges = [[*config.way.bridges[0], *connector(2).way.bridges[0]]]
    hosts = [rig.single([config]), rig.single([]), rig.single([])]
    a, b, c = hosts
    a.start()
    c.start()
    rig.until(lambda: bridges_of(a)[0].remote_name() == "n2")
    b.start()
    c.crash()
    rig.until(lambda: bridges_of(a)[0].connected() and bridges_of(a)[0].remote_name() == "n1")


def test_a_bridge_to_its_own_node_gives_up(rig: NetworkRig) -> None:
    host = rig.single([connector(0)])
    host.start()
    rig.until(lambda: rig.events("network_bridge_gave_up"))
    rig.run(10)
    assert len(rig.events("network_bridge_gave_up")) == 1
    assert "take its address out of the uri" in rig.events("network_bridge_gave_up")[0]


@pytest.mark.parametrize("duplex", [False, True])
def test_a_wrong_password_is_told_once(rig: NetworkRig, duplex: bool) -> None:
    a, b = rig.single([connector(1, password="wrong", duplex=duplex)]), rig.single([])
    a.start()
    b.start()
    rig.run(20)
    told = rig.events("network_bridge_refused")
    assert len(told) == 1, told
    assert ("duplex needs a user of this broker" if duplex else "AMQ229031") in told[0]
    assert not bridges_of(a)[0].connected() and bridges_of(a)[0].told


def test_an_absent_node_is_told_once_and_found_later(rig: NetworkRig) -> None:
    a, b = rig.single([connector(1)]), rig.single([])
    a.start()
    rig.run(30)
    assert len(rig.events("network_bridge_connect_failed")) == 1
    b.start()
    rig.until(lambda: bridges_of(a)[0].connected(), 2)
    names = rig.get(a, "broker", "NetworkConnectorNames")
    assert names == ["NC"] and rig.get(a, "network.NC", "Connected") == [True]
    assert rig.world.now > 30 * SECOND


def test_brokers_that_publish_themselves_are_found(rig: NetworkRig) -> None:
    """With `multicast:`; a node that hears of itself forms no bridge."""
    config = connector(uri="multicast://default")
    config.way = read_uri(config.uri)

    def publish(node: NodeConfig) -> None:
        acceptor = AcceptorConfig("openwire", node.broker.name, PORT)
        acceptor.options(OpenWireAcceptor).discovery_uri = "multicast://default"
        node.acceptors.append(acceptor)

    a, b = rig.single([config], publish), rig.single([], publish)
    a.start()
    b.start()
    rig.until(lambda: [each.remote_name() for each in bridges_of(a)] == ["n1"])
    consumer = rig.consumer(b, ORDERS)
    rig.user(a).send("m", ORDERS)
    rig.until(lambda: consumer.texts == ["m"])


def test_a_message_without_permission_stays(rig: NetworkRig) -> None:
    """An operator of the other node can give the right; the others go on, on the next connection."""

    def secret(node: NodeConfig) -> None:
        node.security.add_rule("orders.secret", {name: ("nobody",) for name in PERMISSIONS})

    static = only("queue://orders.secret", "queue://orders")
    config = connector(1, statically_included=static)
    a, b = rig.single([config]), rig.single([], secret)
    a.start()
    b.start()
    rig.until(lambda: bridges_of(a)[0].connected())
    producer = rig.user(a)
    producer.send("refused", ActiveMQQueue("orders.secret"))
    producer.send("taken", ORDERS)
    rig.until(lambda: depth(b, "orders") == 1)
    rig.run(5)
    assert depth(a, "orders.secret") == 1
    assert rig.events("network_bridge_lost")


def test_a_slow_consumer_holds_up_its_prefetch_only(rig: NetworkRig) -> None:
    """What the bridge may have under way is prefetchSize: the rest waits here."""
    a, b = rig.start([connector(1, prefetch_size=5)], [])
    consumer = rig.consumer(b, ORDERS)
    rig.demand(a, ORDERS)
    producer = rig.user(a)
    for number in range(50):
        producer.send(f"m{number}", ORDERS, persistent=number % 2 == 0)
    rig.until(lambda: len(consumer.texts) == 50)
    assert consumer.texts == numbered(50)
    rig.until(lambda: depth(a, "orders") == 0)


def test_messages_that_nobody_confirms(rig: NetworkRig) -> None:
    """Without alwaysSyncSend, non-persistent messages are sent and forgotten."""
    a, b = rig.start([connector(1, always_sync_send=False)], [])
    consumer = rig.consumer(b, ORDERS)
    rig.demand(a, ORDERS)
    producer = rig.user(a)
    for number in range(10):
        producer.send(f"m{number}", ORDERS, persistent=False)
    rig.until(lambda: len(consumer.texts) == 10 and depth(a, "orders") == 0)
