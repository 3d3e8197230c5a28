"""What is told of a member that leaves, and of one that a node has only lost sight of."""

from __future__ import annotations

from atalanta.sim.host import Host
from atalanta.wire.core.packet_types import PING_CHANNEL
from atalanta.wire.core.packets.topology import (
    ClusterTopology,
    ClusterTopologyV4,
    SubscribeTopologyV2,
)
from tests.cluster.cluster_rig import RawPeer, Rig, cluster_of
from tests.cluster.connection.chain_rig import chain


def a_client(rig: Rig, host: Host, name: str) -> RawPeer:
    """A client with the topology of the node."""
    client = RawPeer(rig, name)
    client.log_in(host)
    return client


def a_member(rig: Rig, host: Host) -> RawPeer:
    """A node that follows the topology of another one, as the bridge of a real Artemis does."""
    member = RawPeer(rig, "artemis")
    member.log_in_as_member(host)
    member.send(SubscribeTopologyV2(False, 136), PING_CHANNEL)
    return member


def listed(peer: RawPeer) -> list[str]:
    """The members that it was told of, once each."""
    return sorted({each.node_id for each in peer.got(ClusterTopologyV4) if isinstance(each, ClusterTopologyV4)})


def gone(peer: RawPeer) -> list[str]:
    """The members that it was told to have left."""
    return [each.node_id for each in peer.got(ClusterTopology) if isinstance(each, ClusterTopology) and each.exit]


def forgotten(rig: Rig, host: Host, node_id: str) -> None:
    """Waits until a node does not list another one any longer."""
    rig.until(lambda: node_id not in cluster_of(host).topology.members)


def test_nobody_is_told_that_a_member_left_by_a_node_that_has_lost_sight_of_it(rig: Rig) -> None:
    """Real members would leave it out of their lists for good, although they are linked to it."""
    hosts = rig.cluster(3)
    told = [a_client(rig, hosts[0], "client"), a_member(rig, hosts[0])]
    rig.until(lambda: [listed(each) for each in told] == [["node-0", "node-1", "node-2"]] * 2)
    rig.network.block("n0", "n1")
    rig.network.block("n1", "n0")
    forgotten(rig, hosts[0], "node-1")
    late = a_client(rig, hosts[0], "late")
    rig.until(lambda: listed(late) == ["node-0", "node-2"])
    rig.network.heal()
    rig.formed(30)
    rig.until(lambda: listed(late) == ["node-0", "node-1", "node-2"])
    assert [gone(each) for each in (*told, late)] == [[], [], []]


def test_a_member_that_crashes_is_left_out_of_the_lists_of_those_who_come_later(rig: Rig) -> None:
    hosts = rig.cluster(3)
    told = [a_client(rig, hosts[0], "client"), a_member(rig, hosts[0])]
    hosts[1].crash()
    forgotten(rig, hosts[0], "node-1")
    late = a_client(rig, hosts[0], "late")
    rig.until(lambda: listed(late) == ["node-0", "node-2"])
    assert [gone(each) for each in told] == [[], []]


def test_the_node_behind_the_next_one_hears_that_a_member_leaves_and_tells_its_clients() -> None:
    """No link of its own can show it."""
    rig, hosts = chain(2)
    client = a_client(rig, hosts[0], "client")
    rig.until(lambda: listed(client) == ["node-0", "node-1", "node-2"])
    hosts[2].stop()
    rig.until(lambda: gone(client) == ["node-2"])
    assert sorted(cluster_of(hosts[0]).topology.members) == ["node-0", "node-1"]


def test_a_member_that_leaves_while_it_is_out_of_sight_is_told_to_have_left(rig: Rig) -> None:
    hosts = rig.cluster(3)
    client = a_client(rig, hosts[0], "client")
    rig.network.block("n0", "n1")
    rig.network.block("n1", "n0")
    forgotten(rig, hosts[0], "node-1")
    assert gone(client) == []
    hosts[1].stop()
    rig.until(lambda: gone(client) == ["node-1"])
