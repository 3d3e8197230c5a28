"""Retroactive addresses in a cluster: each node keeps what was sent to it, and gives it away when it leaves."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down.phase import DONE
from atalanta.kernel.queue.spec import MULTICAST
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import Rig, cluster_of, node_of
from tests.cluster.grouping.grouping_rig import grouped_cluster
from tests.cluster.scale_down.scale_down_rig import held, leave

PREFIX = "$.artemis.internal."
RING = PREFIX + "news.queue.multicast.retro"


def keeping(rig: Rig, count: int = 3, **options: object) -> list[Host]:
    hosts = rig.cluster(2, **options)
    for host in hosts:
        node_of(host).broker.settings.add("news", {"retroactive_message_count": count})
    return hosts


def publish(rig: Rig, host: Host, *bodies: bytes) -> None:
    client = rig.client(host)
    for body in bodies:
        client.publish("news", body, MULTICAST)
    rig.until(lambda: len(client.answers) == len(bodies))
    rig.run(1)


def subscribe(rig: Rig, host: Host, name: str) -> None:
    rig.client(host).create(name, "news", MULTICAST)
    rig.until(lambda: name in node_of(host).broker.queues)
    rig.run(1)


@pytest.mark.parametrize("mode", ["ON_DEMAND", "STRICT", "OFF_WITH_REDISTRIBUTION"])
def test_each_node_keeps_what_was_sent_to_it(rig: Rig, mode: str) -> None:
    first, second = keeping(rig, mode=mode)
    publish(rig, first, b"0")
    publish(rig, second, b"a", b"b")
    publish(rig, first, b"1", b"2", b"3")
    for host in (first, second):
        subscribe(rig, host, f"of-{host.name}")
    assert held(first, "of-n0") == [b"1", b"2", b"3"]
    assert held(second, "of-n1") == [b"a", b"b"]
    for host in (first, second):
        for record in cluster_of(host).peers.values():
            assert not [name for name in record.bindings.bindings if name.startswith(PREFIX)]


def test_groups_that_all_nodes_send_to_are_kept_at_each_of_them(rig: Rig) -> None:
    """A grouping handler decides about the queues of peers only: nobody waits for it because of a ring."""
    hosts = grouped_cluster(rig, 2)
    for host in hosts:
        node_of(host).broker.settings.add("news", {"retroactive_message_count": 3})
    clients = [rig.client(host) for host in hosts]
    for host, client in zip(hosts, clients, strict=True):
        client.publish("news", host.name.encode(), MULTICAST, _AMQ_GROUP_ID="red")
        rig.run(1)
    rig.until(lambda: all(client.answers for client in clients))
    for host in hosts:
        subscribe(rig, host, f"of-{host.name}")
        assert held(host, f"of-{host.name}") == [host.name.encode()]


def test_what_a_peer_tells_of_its_rings_is_not_heard(rig: Rig) -> None:
    first, second = keeping(rig)
    rig.client(first).publish(
        "activemq.notifications", b"", _AMQ_NotifType="BINDING_ADDED",
        _AMQ_Address=PREFIX + "news.address.retro", _AMQ_RoutingName=RING,
        _AMQ_ClusterName=RING + node_of(first).broker.node_id, _AMQ_Binding_ID=7, _AMQ_Distance=0,
    )  # fmt: skip
    rig.run(1)
    bindings = cluster_of(second).peers[node_of(first).broker.node_id].bindings.bindings
    assert RING + node_of(first).broker.node_id not in bindings


def test_a_node_that_leaves_takes_its_subscriptions_and_what_it_kept_along(rig: Rig) -> None:
    first, second = keeping(rig, 4)
    subscribe(rig, second, "mine")
    rig.client(second).consume("mine", "no = 1")  # or nothing is sent there
    rig.run(1)
    publish(rig, first, b"here")  # goes to the subscription as well
    publish(rig, second, b"a", b"b")
    part = leave(rig, second)
    assert (part.phase, part.left()) == (DONE, 0)
    assert held(first, "mine") == [b"here", b"a", b"b"]  # nothing of what its new node has kept
    subscribe(rig, first, "late")
    assert held(first, "late") == [b"here", b"a", b"b"]
