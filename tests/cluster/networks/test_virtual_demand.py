"""useVirtualDestSubs: consumers behind virtual destinations of a node are demand for these at its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from atalanta.kernel.routing.divert_config import ANYCAST, DivertConfig
from atalanta.kernel.settings.broker_config import AddressConfig
from atalanta.node.config import NodeConfig
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue, ActiveMQTopic
from tests.cluster.cluster_rig import node_of
from tests.cluster.networks.network_rig import NetworkRig, connector, depth, network_consumers, only

TOPIC = ActiveMQTopic("VirtualTopic.T")
QUEUE = ActiveMQQueue("Consumer.A.VirtualTopic.T")
TOPICS_ONLY: dict[str, Any] = {"use_virtual_dest_subs": True, "excluded": only("queue://Consumer.>")}


def virtual(of_queues: bool = False, composite: str = "") -> Callable[[NodeConfig], None]:
    """Nodes with the options of `<broker>`; `composite`: all messages of that queue go to the queue `behind`."""

    def change(config: NodeConfig) -> None:
        config.broker.virtual_demand = True
        config.broker.virtual_demand_of_queues = of_queues
        if composite:
            divert = DivertConfig("c", composite, "behind", ANYCAST, True)
            config.broker.diverts.append(divert)
            config.broker.addresses.append(AddressConfig(composite, anycast=True))

    return change


@pytest.mark.parametrize("duplex", [False, True])
def test_a_consumer_of_a_virtual_topic_is_demand_for_the_topic(rig: NetworkRig, duplex: bool) -> None:
    connectors = ([], [connector(0, duplex=True, **TOPICS_ONLY)]) if duplex else ([connector(1, **TOPICS_ONLY)], [])
    a, b = rig.start(*connectors, change=virtual())
    consumer = rig.user(b)
    consumer_id = consumer.consume(QUEUE)
    rig.demand(a, TOPIC)
    producer = rig.user(a)
    producer.send("1", TOPIC)
    rig.until(lambda: consumer.texts == ["1"])
    rig.run(1)
    assert consumer.texts == ["1"]
    consumer.close(consumer_id)
    rig.demand(a, TOPIC, 0)


def test_without_the_option_of_the_connector_it_is_not(rig: NetworkRig) -> None:
    a, b = rig.start([connector(1, excluded=only("queue://Consumer.>"))], [], change=virtual())
    rig.consumer(b, QUEUE)
    rig.run(2)
    assert network_consumers(a, TOPIC) == 0


def test_a_queue_is_demand_without_a_consumer_with_on_creation(rig: NetworkRig) -> None:
    """Also the one that was there before the bridge, and after a restart."""
    a, b = rig.start([connector(1, **TOPICS_ONLY)], [], change=virtual(True))
    consumer = rig.user(b)
    consumer.close(consumer.consume(QUEUE))
    rig.demand(a, TOPIC)
    producer = rig.user(a)
    producer.send("1", TOPIC)
    rig.until(lambda: depth(b, "Consumer.A.VirtualTopic.T") == 1)
    b.crash()
    rig.demand(a, TOPIC, 0)
    b.start()
    rig.demand(a, TOPIC)
    producer.send("2", TOPIC)
    rig.until(lambda: depth(b, "Consumer.A.VirtualTopic.T") == 2)


def test_the_end_of_such_a_queue_ends_the_demand(rig: NetworkRig) -> None:
    a, b = rig.start([connector(1, **TOPICS_ONLY)], [], change=virtual(True))
    consumer = rig.user(b)
    consumer.close(consumer.consume(QUEUE))
    rig.demand(a, TOPIC)
    broker = node_of(b).broker
    rig.until(lambda: not broker.queues["Consumer.A.VirtualTopic.T"].consumers)
    broker.queue_registry.delete(rig.world.now, "Consumer.A.VirtualTopic.T", "test")
    rig.demand(a, TOPIC, 0)


def test_a_consumer_behind_a_composite_destination_is_demand_for_it(rig: NetworkRig) -> None:
    options: dict[str, Any] = {"use_virtual_dest_subs": True, "excluded": only("queue://behind")}
    a, b = rig.single([connector(1, **options)]), rig.single([], virtual(composite="front"))
    for host in (a, b):
        host.start()
    consumer = rig.consumer(b, ActiveMQQueue("behind"))
    rig.demand(a, ActiveMQQueue("front"))
    rig.user(a).send("1", ActiveMQQueue("front"))
    rig.until(lambda: consumer.texts == ["1"])
