"""Members of a topology: nodes find each other, tell clients, leave and come back."""

from __future__ import annotations

import pytest

from atalanta.sim.nodes import PORT
from atalanta.wire.core.packets.connection import DisconnectV3, Ping
from atalanta.wire.core.packets.session import CreateSession
from atalanta.wire.core.packets.topology import (
    ClusterTopologyV2,
    ClusterTopologyV4,
    SubscribeTopologyV2,
)
from tests.cluster.cluster_rig import RawPeer, Rig, cluster_of, linked, node_of


def members(rig: Rig) -> list[list[str]]:
    return [sorted(cluster_of(host).topology.members) for host in rig.hosts if host.up]


def test_three_nodes_form_from_one_seed_node(rig: Rig) -> None:
    for _ in range(3):
        rig.node(peers=[0] if rig.hosts else [])
    rig.form()
    assert members(rig) == [["node-0", "node-1", "node-2"]] * 3


def test_a_node_that_starts_before_its_seed_finds_it_later(rig: Rig) -> None:
    seed = rig.node(peers=[])
    early = rig.node(peers=[0])
    early.start()
    rig.run(5)
    seed.start()
    rig.formed()
    assert members(rig) == [["node-0", "node-1"]] * 2


def test_three_nodes_form_by_a_discovery_group(rig: Rig) -> None:
    rig.cluster(3, discovery=True)
    assert members(rig) == [["node-0", "node-1", "node-2"]] * 3


def test_a_client_hears_of_the_node_alone_before_login_and_of_all_and_every_change_after(rig: Rig) -> None:
    hosts = rig.cluster(3)
    rig.run(3)  # The nodes announce themselves twice.
    peer = RawPeer(rig, "client")
    peer.dial(hosts[0])
    peer.send(Ping(60_000), 0)
    peer.send(SubscribeTopologyV2(False, 136), 0)
    rig.run(1)
    told = [
        packet for packet in peer.got(ClusterTopologyV4) if isinstance(packet, ClusterTopologyV4)
    ]
    assert [packet.node_id for packet in told] == ["node-0"]
    assert told[0].last
    assert told[0].primary is not None and told[0].primary.host == "n0"

    peer.send(
        CreateSession(name="s", session_channel=10, version=136, user="user", password="password"),
        1,
    )
    rig.run(1)
    told = [
        packet for packet in peer.got(ClusterTopologyV4) if isinstance(packet, ClusterTopologyV4)
    ]
    assert sorted(packet.node_id for packet in told[1:]) == ["node-0", "node-1", "node-2"]
    assert [packet.last for packet in told[1:]] == [False, False, True]

    hosts[1].stop()
    rig.run(1)
    gone = [
        packet for packet in peer.got(ClusterTopologyV2) if isinstance(packet, ClusterTopologyV2)
    ]
    assert [(packet.node_id, packet.exit) for packet in gone if packet.exit] == [("node-1", True)]
    hosts[1].start()
    rig.formed()
    latest = peer.got(ClusterTopologyV4)[-1]
    assert isinstance(latest, ClusterTopologyV4) and latest.node_id == "node-1"


def test_a_graceful_leave_says_so_and_takes_the_bindings_along(rig: Rig) -> None:
    hosts = rig.cluster(2)
    rig.client(hosts[1]).consume("orders")
    rig.run(1)
    assert "ordersnode-1" in cluster_of(hosts[0]).peers["node-1"].bindings.bindings
    hosts[1].stop()
    rig.run(1)
    goodbyes = [
        packet for _, packet in rig.packets(hosts[1], hosts[0]) if isinstance(packet, DisconnectV3)
    ]
    # Our own good-bye goes out on connections we accepted and on those we opened.
    assert len(goodbyes) >= 2
    assert goodbyes[0].node_id == "node-1" and goodbyes[0].reason == 4
    assert cluster_of(hosts[0]).peers == {}
    assert node_of(hosts[0]).broker.addresses["orders"].remotes() == []
    assert members(rig) == [["node-0"]]
    # Its store-and-forward queue stays.
    assert "$.artemis.internal.sf.test.node-1" in node_of(hosts[0]).broker.queues
    hosts[1].start()
    rig.formed()
    assert members(rig) == [["node-0", "node-1"]] * 2


def test_a_broken_link_is_mended_and_both_are_members_again_without_a_restart(rig: Rig) -> None:
    """The peer shows its old event id: nevertheless it must be a member again, for clients too."""
    rig.cluster(3)
    rig.run(5)
    for connection in sorted(rig.network.streams):
        rig.network.cut_connection(connection)
    rig.run(0.1)
    assert members(rig) != [["node-0", "node-1", "node-2"]] * 3
    rig.formed()
    rig.run(3)
    assert members(rig) == [["node-0", "node-1", "node-2"]] * 3


def test_two_nodes_cut_off_from_each_other_stay_members_for_the_third(rig: Rig) -> None:
    """News that a member is gone are not believed by a node which talks to it."""
    hosts = rig.cluster(3)
    rig.network.block("n0", "n1")
    rig.network.block("n1", "n0")
    rig.run(20)
    assert sorted(cluster_of(hosts[2]).topology.members) == ["node-0", "node-1", "node-2"]
    rig.network.heal()
    rig.formed(30)
    rig.run(3)
    assert members(rig) == [["node-0", "node-1", "node-2"]] * 3


def test_a_wrong_cluster_password_is_refused_and_nothing_is_told(rig: Rig) -> None:
    right = rig.node(peers=[])
    wrong = rig.node(peers=[0], password="guessed")
    right.start()
    wrong.start()
    rig.run(5)
    assert rig.events("n0 cluster_login_refused")
    assert sorted(cluster_of(right).topology.members) == ["node-0"]
    assert sorted(cluster_of(wrong).topology.members) == ["node-1"]
    assert linked(right) == linked(wrong) == 0


def test_a_wrong_cluster_password_is_reported_once_and_tried_ever_more_rarely(rig: Rig) -> None:
    rig.node(peers=[]).start()
    rig.node(peers=[0], password="guessed").start()
    rig.run(60)
    assert len(rig.events("n0 cluster_login_refused")) == 1
    (line,) = rig.events("n1 cluster_connector_failed")
    assert "n0:" in line and "cluster-password" in line
    dials = [connection for name, target, connection, _ in rig.network.sent if name == "n1"]
    assert len(dials) < 12


def test_a_connector_that_nobody_answers_is_reported_once_and_when_it_is_over(rig: Rig) -> None:
    absent, node = rig.node(peers=[]), rig.node(peers=[0])
    node.start()
    rig.run(20)
    (line,) = rig.events("n1 cluster_connector_failed")
    assert "n0:" in line and "what_to_do" in line
    failures = rig.get(node, "clusterconnection.test", "ConnectorFailures")
    assert isinstance(failures, dict) and list(failures) == [f"n0:{PORT}"]
    absent.start()
    rig.formed()
    assert len(rig.events("n1 cluster_connector_connected")) == 1
    assert rig.get(node, "clusterconnection.test", "ConnectorFailures") == {}


def test_two_reasons_that_alternate_are_each_reported_once(rig: Rig) -> None:
    """Behind a load balancer a dial is refused now, and accepted and reset then."""
    rig.node(peers=[])
    node = rig.node(peers=[0])
    node.start()
    rig.run(2)
    scanner = cluster_of(node).scanner
    (name,) = scanner.targets
    for turn in range(10):
        scanner.lost(rig.world.now, name, "reset" if turn % 2 else "refused by the balancer")
    assert len(rig.events("n1 cluster_connector_failed")) == 3  # nobody listens, and these two
    assert len(scanner.failures()) == 1


def test_the_passive_backup_of_the_node_itself_is_no_failed_connector(rig: Rig) -> None:
    """Its port does not listen. A connector that leads to nobody is still told, only later."""
    rig.node(peers=[])
    rig.node(peers=[])
    node = rig.node(peers=[0, 1], whole=lambda settings: setattr(settings, "backed_up", True))
    node.start()
    cluster = cluster_of(node)
    waits, wrong = (cluster.scanner.targets[name] for name in sorted(cluster.scanner.targets))
    cluster.topology.members["node-2"].backup = waits
    rig.run(30)
    (line,) = rig.events("n2 cluster_connector_failed")
    assert "n1:" in line
    assert list(cluster.scanner.failures()) == [wrong.address]


def test_a_member_that_changed_its_password_is_reported_once(rig: Rig) -> None:
    first, _ = rig.cluster(2)
    cluster_of(first).settings.cluster_password = "guessed"
    for connection in sorted(rig.network.streams):
        rig.network.cut_connection(connection)
    rig.run(60)
    assert 1 <= len(rig.events("n0 bridge_lost")) <= 2
    assert len(rig.events("n1 cluster_login_refused")) == 1


def test_a_second_connection_to_a_peer_is_not_wanted(rig: Rig) -> None:
    """Two bridges at one queue would share its messages, and only one would finish them."""
    hosts = rig.cluster(2)
    again = cluster_of(hosts[0]).on_dialed(rig.world.now, 9_999, "cluster.0.bridge.node-1")
    assert again is None
    assert len(cluster_of(hosts[0]).peers["node-1"].forward.consumers) == 1


@pytest.mark.parametrize("alive", [0, 1, 2])
def test_any_one_static_member_that_is_alive_at_start_is_enough(rig: Rig, alive: int) -> None:
    """All four list each other; the fourth starts beside one of them, the others come when they come."""
    hosts = [rig.node(peers=[0, 1, 2, 3]) for _ in range(4)]
    hosts[alive].start()
    hosts[3].start()
    rig.formed()
    assert members(rig) == [sorted([f"node-{alive}", "node-3"])] * 2
    for host in hosts:
        if not host.up:
            host.start()
            rig.run(1)
    rig.formed()
    assert members(rig) == [["node-0", "node-1", "node-2", "node-3"]] * 4


def test_members_are_learnt_from_the_topology_alone_and_stay_when_the_seed_is_gone(rig: Rig) -> None:
    hosts = [rig.node(peers=[0]) for _ in range(3)]
    rig.form(*hosts)
    hosts[0].stop()
    rig.run(30)
    assert members(rig) == [["node-1", "node-2"]] * 2
    client, other = rig.client(hosts[1]), rig.client(hosts[2])
    other.consume("orders")
    rig.run(1)
    client.publish("orders", b"across")
    rig.until(lambda: other.bodies == [b"across"])
