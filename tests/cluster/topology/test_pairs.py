"""A primary and its backup, as the other members and the clients see them."""

from __future__ import annotations

from atalanta.sim.host import Host
from atalanta.wire.core.packets.topology import ClusterTopologyV4
from tests.cluster.cluster_rig import RawPeer, Rig, cluster_of, node_of
from tests.cluster.pair_rig import announce, backup_of


def pair(rig: Rig, at: Host, node_id: str) -> list[str]:
    """The addresses of a node and its backup, as the management of `at` shows them."""
    entry = next(each for each in cluster_of(at).members.describe() if each["nodeID"] == node_id)
    return [str(entry[half]) for half in ("primary", "backup") if half in entry]


def test_members_and_clients_hear_of_a_backup_with_a_new_event_id(rig: Rig) -> None:
    hosts = rig.cluster(2)
    rig.run(5)
    peer = RawPeer(rig, "client")
    peer.log_in(hosts[0])
    known = cluster_of(hosts[0]).topology.members["node-1"].event_id
    backup_of(rig, hosts[1])
    rig.run(1)
    for host in hosts:
        assert pair(rig, host, "node-1") == ["n1:61616", "n2:61616"]
    told = peer.got(ClusterTopologyV4)[-1]
    assert isinstance(told, ClusterTopologyV4) and told.node_id == "node-1" and told.event_id > known
    assert told.primary is not None and told.primary.address == "n1:61616"
    assert told.backup is not None and told.backup.address == "n2:61616"


def test_a_backup_is_announced_once_more_only_when_it_changes(rig: Rig) -> None:
    hosts = rig.cluster(2)
    backup = backup_of(rig, hosts[1])
    rig.run(10)
    known = cluster_of(hosts[0]).topology.members["node-1"].event_id
    announce(rig, hosts[1], backup)
    rig.run(10)
    assert cluster_of(hosts[0]).topology.members["node-1"].event_id == known


def test_the_connector_of_a_backup_that_left_stays_announced(rig: Rig) -> None:
    """Artemis members and clients keep it too, and a backup that returns is found there."""
    hosts = rig.cluster(2)
    backup_of(rig, hosts[1])
    rig.run(1)
    node_of(hosts[1]).on_backups(rig.world.now, {})
    hosts[1].flush_later()
    rig.run(1)
    for host in hosts:
        assert pair(rig, host, "node-1") == ["n1:61616", "n2:61616"]
