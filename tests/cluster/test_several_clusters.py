"""Several cluster connections on one node: n0 is in the cluster `east` with n1 and in `west` with n2."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.cluster.config import (
    BroadcastGroupConfig,
    ClusterConnectionConfig,
    ClusterSettings,
    DiscoveryGroupConfig,
)
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from atalanta.sim.nodes import PASSWORD, PORT, USER
from atalanta.wire.core.packets.connection import Ping
from atalanta.wire.core.packets.session import CreateSession
from atalanta.wire.core.packets.topology import ClusterTopologyV4, SubscribeTopologyV2
from atalanta.wire.endpoint import ConnectorConfig
from tests.cluster.cluster_rig import RawPeer, Rig, count, node_of
from tests.cluster.several_clusters_rig import (
    WEST_PORT,
    clusters,
    connection,
    make,
    only,
    orders,
    ready,
)


def views(host: Host) -> list[list[str]]:
    return [sorted(cluster.topology.members) for cluster in clusters(host)]


def told(rig: Rig, name: str, port: int) -> list[tuple[str, int]]:
    """Returns what a client that logs in there hears of the topology."""
    peer = RawPeer(rig, name)
    rig.network.dial(peer, "raw", "n0", port)
    rig.until(lambda: len(peer.conns) == 1)
    peer.write(b"ARTEMIS")
    peer.send(Ping(60_000), 0)
    peer.send(
        CreateSession(name="s", session_channel=10, version=136, user=USER, password=PASSWORD), 1
    )
    peer.send(SubscribeTopologyV2(False, 136), 0)
    rig.run(0.5)
    heard: dict[str, int] = {}
    for packet in peer.got(ClusterTopologyV4):
        assert isinstance(packet, ClusterTopologyV4) and packet.primary is not None
        heard[packet.node_id] = packet.primary.port
    return sorted(heard.items())


def test_each_has_its_own_members_and_its_own_topology_for_clients(rig: Rig) -> None:
    hosts = make(rig)
    assert views(hosts[0]) == [["node-0", "node-1"], ["node-0", "node-2"]]
    assert views(hosts[1]) == [["node-0", "node-1"]]
    assert views(hosts[2]) == [["node-0", "node-2"]]
    assert told(rig, "easterner", PORT) == [("node-0", PORT), ("node-1", PORT)]
    assert told(rig, "westerner", WEST_PORT) == [("node-0", WEST_PORT), ("node-2", PORT)]
    forwards = [name for name in node_of(hosts[0]).broker.queues if "internal.sf" in name]
    assert forwards == ["$.artemis.internal.sf.east.node-1", "$.artemis.internal.sf.west.node-2"]


def test_messages_go_to_the_cluster_whose_address_covers_them(rig: Rig) -> None:
    hosts = make(rig)
    east, west = rig.client(hosts[1]), rig.client(hosts[2])
    for consumer in (east, west):
        consumer.consume("east.orders", number=0)
        consumer.consume("west.orders", number=1)
    rig.run(1)
    producer = rig.client(hosts[0])
    for number in range(4):
        producer.publish("east.orders", b"e%d" % number, ANYCAST)
        producer.publish("west.orders", b"w%d" % number, ANYCAST)
    rig.until(lambda: len(east.bodies) == 4 and len(west.bodies) == 4)
    assert east.bodies == [b"e0", b"e1", b"e2", b"e3"]
    assert west.bodies == [b"w0", b"w1", b"w2", b"w3"]


def test_one_hop_does_not_lead_from_one_cluster_into_the_other_two_do() -> None:
    for hops, names in (
        (1, ["east.ordersnode-0"]),
        (2, ["east.ordersnode-0", "east.ordersnode-2"]),
    ):
        rig = Rig()

        def everything(
            name: str, own: str, peers: list[str], hops: int = hops
        ) -> ClusterConnectionConfig:
            made = connection(name, own, peers, "")
            made.max_hops = hops
            return made

        rig.node(
            whole=only(everything("east", "n0", []), everything("west", "n0west", [])),
            doors={"east": PORT, "west": WEST_PORT},
            queues=orders("east"),
        )
        rig.node(whole=only(everything("east", "n1", ["n0"])), queues=orders("east"))
        rig.node(whole=only(everything("west", "n2", ["n0west"])), queues=orders("east"))
        for host in rig.hosts:
            host.start()
        rig.until(lambda rig=rig: all(ready(host) for host in rig.hosts))  # type: ignore[misc]
        rig.run(1)
        (cluster,) = clusters(rig.hosts[1])
        assert sorted(cluster.peers["node-0"].bindings.bindings) == names


def test_a_crash_in_one_cluster_does_not_touch_the_other(rig: Rig) -> None:
    hosts = make(rig)
    hosts[1].crash()
    rig.run(10)
    assert views(hosts[0]) == [["node-0"], ["node-0", "node-2"]]
    assert views(hosts[2]) == [["node-0", "node-2"]]
    hosts[1].start()
    rig.until(lambda: ready(hosts[1]) and views(hosts[0])[0] == ["node-0", "node-1"])


def test_the_node_in_both_crashes_and_is_found_again_by_both(rig: Rig) -> None:
    hosts = make(rig)
    hosts[0].crash()
    rig.run(10)
    hosts[0].start()
    rig.until(lambda: all(ready(host) for host in hosts) and len(views(hosts[0])[1]) == 2)
    assert views(hosts[0]) == [["node-0", "node-1"], ["node-0", "node-2"]]


def test_redistribution_keeps_to_the_address(rig: Rig) -> None:
    """n2 has a consumer of an address that `west` does not cover: nothing goes there."""
    hosts = make(rig)
    for host in hosts:
        node_of(host).broker.settings.add("#", {"redistribution_delay_ms": 0})
    producer = rig.client(hosts[0])
    producer.publish("east.orders", b"x", ANYCAST)
    rig.client(hosts[2]).consume("east.orders")
    rig.run(2)
    assert count(hosts[0], "east.orders") == 1
    consumer = rig.consuming(hosts[1], "east.orders")
    rig.until(lambda: consumer.bodies == [b"x"])


def test_each_listens_to_a_discovery_group_of_its_own(rig: Rig) -> None:
    def discovered(index: int, *sides: str) -> Callable[[ClusterSettings], None]:
        def change(settings: ClusterSettings) -> None:
            settings.cluster_connections.clear()
            settings.broadcast_groups.clear()
            settings.discovery_groups.clear()
            for number, side in enumerate(sides):
                own = f"n{index}{side}"
                group = {"east": "231.7.7.7", "west": "231.7.7.8"}[side]
                settings.connectors[own] = ConnectorConfig(own, f"n{index}", PORT + number)
                made = ClusterConnectionConfig(side, side, own)
                made.connection_ttl_ms = 6_000
                made.discovery_group = side
                settings.cluster_connections.append(made)
                settings.discovery_groups[side] = DiscoveryGroupConfig(
                    side, group_address=group, group_port=9876
                )
                settings.broadcast_groups.append(
                    BroadcastGroupConfig(
                        side, group_address=group, group_port=9876, connectors=[own]
                    )
                )

        return change

    both = {"east": PORT, "west": WEST_PORT}
    rig.node(whole=discovered(0, "east", "west"), doors=both)
    rig.node(whole=discovered(1, "east"))
    rig.node(whole=discovered(2, "west"))
    rig.node(whole=discovered(3, "east", "west"), doors=both)
    for host in rig.hosts:
        host.start()
    rig.until(lambda: [len(view) for host in rig.hosts for view in views(host)] == [3] * 6)
    assert views(rig.hosts[0]) == [["node-0", "node-1", "node-3"], ["node-0", "node-2", "node-3"]]
    assert views(rig.hosts[3]) == views(rig.hosts[0])
    assert views(rig.hosts[2]) == [["node-0", "node-2", "node-3"]]
