"""Network connectors that a reload adds, changes and removes: what is sent at one node reaches the other, once."""

from __future__ import annotations

import copy

from atalanta.cluster.networks.config import NetworkConnectorConfig
from atalanta.cluster.networks.settings import NetworkSettings
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import node_of
from tests.cluster.networks.network_rig import ORDERS, NetworkRig, connector, depth, only


def reload(rig: NetworkRig, host: Host, *connectors: NetworkConnectorConfig) -> None:
    node = node_of(host)
    config = copy.copy(node.config)
    config.networks = NetworkSettings(list(connectors))
    node.on_reload(rig.world.now, config)
    host.flush_later()
    rig.run(0.5)


def sent(rig: NetworkRig, host: Host, *texts: str) -> None:
    producer = rig.user(host)
    for text in texts:
        producer.send(text, ORDERS)


def test_the_first_one_of_a_node_is_added_and_removed(rig: NetworkRig) -> None:
    a, b = rig.start([], [])
    consumer = rig.consumer(b, ORDERS)
    sent(rig, a, "one")
    rig.run(1)
    assert consumer.texts == []
    reload(rig, a, connector(1, name="far"))
    rig.until(lambda: consumer.texts == ["one"])
    assert rig.get(a, "broker", "NetworkConnectorNames") == ["far"]
    assert rig.get(a, "network.far", "Connected") == [True]
    reload(rig, a)
    assert rig.get(a, "broker", "NetworkConnectorNames") == []
    sent(rig, a, "two")
    rig.run(5)
    assert consumer.texts == ["one"] and depth(a, "orders") == 1
    assert rig.events("network_connector_removed") and not rig.events("network_bridge_lost")
    reload(rig, a, connector(1, name="far"))
    rig.until(lambda: consumer.texts == ["one", "two"])
    rig.until(lambda: depth(a, "orders") == 0)


def test_a_changed_one_begins_again_and_others_are_left_alone(rig: NetworkRig) -> None:
    kept, changed = connector(1, name="kept", dynamically_included=only("queue://other")), connector(2, name="far")
    a, b, c = rig.start([kept, changed], [], [])
    consumer = rig.consumer(c, ORDERS)
    rig.demand(a, ORDERS)
    sent(rig, a, "one")
    rig.until(lambda: consumer.texts == ["one"])
    connected = len(rig.events("network_bridge_connected"))
    reload(rig, a, kept, connector(2, name="far", excluded=only("queue://orders")))
    rig.run(2)
    assert len(rig.events("network_bridge_connected")) == connected + 1
    sent(rig, a, "two")
    rig.run(2)
    assert consumer.texts == ["one"] and depth(a, "orders") == 1
    reload(rig, a, kept, changed)
    rig.until(lambda: consumer.texts == ["one", "two"])


def test_nothing_is_lost_or_doubled_when_it_changes_under_load(rig: NetworkRig) -> None:
    a, b = rig.start([connector(1)], [])
    consumer = rig.consumer(b, ORDERS)
    rig.demand(a, ORDERS)
    producer = rig.user(a)
    texts = [f"m{number}" for number in range(120)]
    for number, text in enumerate(texts):
        producer.send(text, ORDERS)
        rig.run(0.002)
        if number % 30 == 15:
            reload(rig, a, connector(1, prefetch_size=100 + number))
    rig.until(lambda: len(consumer.texts) >= len(texts))
    rig.run(5)
    assert consumer.texts == texts and depth(a, "orders") == 0
