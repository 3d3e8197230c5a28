"""A cluster connection that an operator stops: its messages wait, and go on after the start."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable

import pytest

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT, queue
from atalanta.wire.endpoint import ConnectorConfig
from tests.cluster.cluster_rig import (
    Rig,
    cluster_of,
    count,
    linked,
    node_of,
    remote_consumers,
    waiting,
)

CONNECTION = "clusterconnection.test"


def subscribed(rig: Rig, discovery: bool = False) -> list[Host]:
    """n0, and n1 with a durable subscription on the address of which n0 has messages."""
    hosts = [
        rig.node(peers=[1], discovery=discovery, queues=[queue("orders", "orders", ANYCAST)]),
        rig.node(
            peers=[0],
            discovery=discovery,
            queues=[queue("orders", "orders", ANYCAST), queue("news", "prices", MULTICAST)],
        ),
    ]
    rig.form(*hosts)
    return hosts


def bodies(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


@pytest.mark.parametrize("discovery", [False, True])
def test_messages_wait_while_it_is_stopped_and_go_on_after_the_start(rig: Rig, discovery: bool) -> None:
    here, there = hosts = subscribed(rig, discovery)
    assert rig.get(here, CONNECTION, "Started") is True
    for _ in range(2):
        rig.ask(here, CONNECTION, "stop")
    rig.run(1)
    assert rig.get(here, CONNECTION, "Started") is False
    assert (linked(here), linked(there)) == (0, 1), "the other one keeps its link"
    rig.stored(here, "prices", bodies(0, 3))
    rig.run(30)
    assert waiting(here, "node-1") == 3 and count(there, "news") == 0
    [row] = json.loads(rig.ask(here, CONNECTION, "listLinks"))
    assert (row["state"], row["waiting"]) == ("away", 3)
    reader = rig.consuming(here, known_at=there)
    rig.stored(there, "orders", [b"back"])
    rig.until(lambda: reader.bodies == [b"back"])
    for _ in range(2):
        rig.ask(here, CONNECTION, "start")
    rig.until(lambda: count(there, "news") == 3)
    assert waiting(here, "node-1") == 0 and rig.get(here, CONNECTION, "Started") is True
    assert [len(rig.events(f"cluster_connection_{what}")) for what in ("stopped", "started")] == [1, 1]
    rig.run(20)
    assert [linked(host) for host in hosts] == [1, 1] and not rig.events("cluster_connector_failed")


def test_nothing_is_lost_doubled_or_out_of_order_over_many_stops(rig: Rig) -> None:
    here, there = subscribed(rig)
    reader = rig.client(there)
    reader.consume("news")
    sender = rig.client(here)
    sent: list[bytes] = []
    for number in range(300):
        sender.publish("prices", b"%d" % number)
        sent.append(b"%d" % number)
        rig.run(0.002)
        if number % 40 == 20:
            rig.ask(here, CONNECTION, "stop")
        if number % 40 in (21, 35):
            rig.ask(here, CONNECTION, "start")
    rig.until(lambda: len(sender.answers) == 300)
    rig.until(lambda: len(reader.bodies) >= 300)
    rig.run(5)
    assert reader.bodies == sent


def test_a_node_that_starts_again_has_it_started_with_its_messages(rig: Rig) -> None:
    here, there = subscribed(rig)
    rig.ask(here, CONNECTION, "stop")
    rig.stored(here, "prices", bodies(0, 3))
    here.crash()
    rig.run(1)
    here.start()
    rig.until(lambda: count(there, "news") == 3)
    assert rig.get(here, CONNECTION, "Started") is True


@pytest.mark.parametrize("discovery", [False, True])
def test_a_member_that_comes_meanwhile_gets_its_link_at_the_start(rig: Rig, discovery: bool) -> None:
    hosts = rig.cluster(2, discovery=discovery)
    rig.ask(hosts[0], CONNECTION, "stop")
    late = rig.node(discovery=discovery)
    late.start()
    rig.until(lambda: linked(late) == 2)
    rig.run(5)
    assert linked(hosts[0]) == 0
    rig.ask(hosts[0], CONNECTION, "start")
    rig.formed()


def test_a_member_that_goes_meanwhile_is_dialled_until_it_is_back(rig: Rig) -> None:
    here, there = subscribed(rig)
    rig.ask(here, CONNECTION, "stop")
    rig.stored(here, "prices", bodies(0, 3))
    there.crash()
    rig.run(5)
    rig.ask(here, CONNECTION, "start")
    rig.run(5)
    there.start()
    rig.until(lambda: count(there, "news") == 3)


def test_local_consumers_are_served_and_a_node_that_leaves_opens_no_links(rig: Rig) -> None:
    here, there = subscribed(rig)
    rig.ask(here, CONNECTION, "stop")
    reader = rig.consuming(here)
    rig.stored(here, "orders", [b"coffee"])
    rig.until(lambda: reader.bodies == [b"coffee"])
    node = node_of(here)
    assert node.scale_down is not None and cluster_of(here).halted
    rig.stored(here, "prices", bodies(0, 3))
    node.leave(rig.world.now)
    here.flush_later()
    rig.until(lambda: node.scale_down is not None and node.scale_down.frozen)
    with pytest.raises(BrokerError, match="leaves or stops"):
        rig.ask(here, CONNECTION, "start")
    rig.until(lambda: count(there, "news") == 3)


def reload(rig: Rig, host: Host, change: Callable[[ClusterConnectionConfig], None]) -> None:
    """The node reads a file in which its cluster connection is changed."""
    node = node_of(host)
    config = copy.copy(node.config)
    config.cluster = copy.deepcopy(config.cluster)
    assert config.cluster is not None
    for other in rig.hosts:
        config.cluster.connectors.setdefault(other.name, ConnectorConfig(other.name, other.name, PORT))
    change(config.cluster.cluster_connections[0])
    node.on_reload(rig.world.now, config)
    host.flush_later()
    rig.run(0.5)


def test_a_reload_changes_the_load_balancing_and_no_message_is_lost(rig: Rig) -> None:
    here, there = rig.cluster(2, mode="OFF")
    reader = rig.consuming(there, known_at=here)
    rig.filled(here, [b"stays"])
    rig.run(1)
    assert reader.bodies == []

    def on_demand(config: ClusterConnectionConfig) -> None:
        config.message_load_balancing = "ON_DEMAND"
        config.retry_interval_ms = 77

    reload(rig, here, on_demand)
    rig.formed()
    assert rig.get(here, CONNECTION, "MessageLoadBalancingType") == "ON_DEMAND"
    assert rig.get(here, CONNECTION, "RetryInterval") == 77
    rig.until(lambda: remote_consumers(here, there, "orders") == 1)
    rig.stored(here, "orders", [b"goes"], ANYCAST)
    rig.until(lambda: reader.bodies == [b"goes"])
    assert count(here, "orders") == 1 and len(rig.events("cluster_connection_changed")) == 1
    reload(rig, here, on_demand)
    assert len(rig.events("cluster_connection_changed")) == 1, "nothing has changed"


def test_a_reload_names_another_member_to_find(rig: Rig) -> None:
    here, there = rig.node(peers=[]), rig.node(peers=[])
    for host in (here, there):
        host.start()
    rig.run(2)
    assert linked(here) == 0

    def names(config: ClusterConnectionConfig) -> None:
        config.static_connectors = [there.name]

    reload(rig, here, names)
    rig.until(lambda: linked(here) == 1)
    rig.until(lambda: remote_consumers(here, there, "orders") == 0)


def test_a_stopped_one_that_a_reload_changes_stays_stopped(rig: Rig) -> None:
    here, there = subscribed(rig)

    def changed(config: ClusterConnectionConfig) -> None:
        config.notification_attempts = 3

    rig.ask(here, CONNECTION, "stop")
    reload(rig, here, changed)
    rig.stored(here, "prices", bodies(0, 3))
    rig.run(2)
    assert waiting(here, "node-1") == 3 and linked(here) == 0
    rig.ask(here, CONNECTION, "start")
    rig.until(lambda: count(there, "news") == 3)
