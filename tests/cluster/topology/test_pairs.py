"""A primary and its backup, as the other members and the clients see them."""

from __future__ import annotations

import pytest

from atalanta.cluster.topology.topology import Member
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.queue.spec import MULTICAST
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL
from atalanta.wire.core.packets.cluster import NodeAnnounce
from atalanta.wire.core.packets.topology import ClusterTopologyV4
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.cluster_rig import RawPeer, Rig, cluster_of, count, linked, node_of
from tests.cluster.pair_rig import (
    announce,
    backup_of,
    connector,
    fail_over,
    members,
)
from tests.kernel.broker_rig import SECOND, RecordingEndpoint


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


# -- failover -------------------------------------------------------------------------------------
def test_messages_stored_for_a_node_reach_its_backup_once_and_nobody_takes_it_for_a_second_node(rig: Rig) -> None:
    hosts = members(rig, 3)
    backup = backup_of(rig, hosts[1])
    rig.stored(hosts[0], "prices", [b"before"], MULTICAST)
    rig.until(lambda: count(hosts[1], "reports") == 1)
    hosts[1].crash()
    rig.run(1)
    sent = [b"%d" % number for number in range(20)]
    rig.stored(hosts[0], "prices", sent, MULTICAST)
    backup.take_over(hosts[1])
    rig.formed()
    rig.until(lambda: count(backup, "reports") == 21)
    reader = rig.client(backup)
    reader.consume("reports")
    rig.run(10)
    assert reader.bodies == [b"before", *sent]
    for host in (hosts[0], hosts[2], backup):
        assert pair(rig, host, "node-1") == ["n3:61616"]
    assert not rig.events("node_id_shared") and not rig.events("duplicate_node_id")


def lease(rig: Rig, host: Host, epoch: int = 0) -> int:
    """Leases the queue `orders` of a node, or renews that epoch; returns the epoch."""
    views = node_of(host).broker.log_views
    held = views.lease(rig.world.now, "orders", "g", "driver", 600 * SECOND, epoch, RecordingEndpoint(), 1)
    host.flush_later()
    return held.epoch


def test_a_lease_moves_to_the_backup_and_an_ended_one_stays_ended(rig: Rig) -> None:
    """The other node has a lease of its own, which is not touched."""
    hosts = members(rig)
    backup = backup_of(rig, hosts[1])
    for host in hosts:
        rig.filled(host, [b"a", b"b"])
        assert lease(rig, host) == 1
    rig.run(1)
    fail_over(backup, hosts[1])
    rig.formed()
    queue = node_of(backup).broker.queues["orders"]
    held = queue.active_lease()
    assert held is not None and (held.epoch, held.owner) == (1, "driver")
    node_of(backup).broker.log_views.end_lease(rig.world.now, queue, "user admin from h:1", 1)
    backup.flush_later()
    rig.run(1)
    backup.crash()
    backup.start()
    rig.formed()
    views = node_of(backup).broker.log_views
    with pytest.raises(BrokerError, match="was ended by user admin from h:1"):
        views.ack_through("orders", "", "g", 1, 2, RecordingEndpoint(), 1)
    assert count(backup, "orders") == 2
    assert lease(rig, hosts[0], 1) == 1, "each node has its own lease"


def test_a_message_that_had_reached_the_dead_node_is_not_repeated_at_its_backup(rig: Rig) -> None:
    """The answer was lost: the message is sent again, and its duplicate id is in the journal of the pair."""
    hosts = members(rig)
    backup = backup_of(rig, hosts[1])
    rig.run(1)
    rig.stored(hosts[0], "prices", [b"a", b"b"], MULTICAST)
    rig.network.block(hosts[1].name, hosts[0].name)
    rig.until(lambda: count(hosts[1], "reports") == 2)
    rig.run(1)
    fail_over(backup, hosts[1])
    rig.formed()
    rig.run(2)
    assert count(backup, "reports") == 2


def test_a_link_tries_the_backup_in_turn_with_the_primary(rig: Rig) -> None:
    """The backup cannot dial out: it is found by the other node alone, without an announcement."""
    hosts = members(rig)
    backup = backup_of(rig, hosts[1])
    rig.run(1)
    hosts[1].crash()
    rig.run(3)
    backup.take_over(hosts[1])
    cluster_of(backup).stop(rig.world.now)
    rig.until(lambda: linked(hosts[0]) == 1, 3)


def test_a_link_to_a_silent_primary_is_given_up_as_soon_as_its_backup_has_taken_over(rig: Rig) -> None:
    """A frozen machine: its connections stay open, and nothing comes from there."""
    hosts = members(rig)
    backup = backup_of(rig, hosts[1])
    rig.run(1)
    hosts[1].freeze()
    rig.run(1)
    backup.take_over(hosts[1])
    rig.until(lambda: pair(rig, hosts[0], "node-1") == ["n2:61616"], 1)
    rig.until(lambda: linked(hosts[0]) == 1 and linked(backup) == 1, 1)
    rig.stored(hosts[0], "prices", [b"after"], MULTICAST)
    rig.until(lambda: count(backup, "reports") == 1)
    assert not rig.events("node_id_shared") and not rig.events("duplicate_node_id")


def test_failover_and_failback_again_and_again(rig: Rig) -> None:
    hosts = members(rig)
    active, passive = hosts[1], backup_of(rig, hosts[1])
    sent = 0
    for _ in range(4):
        rig.run(1)
        fail_over(passive, active)
        active, passive = passive, active
        rig.stored(hosts[0], "prices", [b"%d" % sent], MULTICAST)
        sent += 1
        rig.formed()
        announce(rig, active, passive)
        rig.run(0.1)
        both = [connector(active).address, connector(passive).address]
        assert pair(rig, hosts[0], "node-1") == both
    rig.until(lambda: count(active, "reports") == sent)
    reader = rig.client(active)
    reader.consume("reports")
    rig.run(5)
    assert reader.bodies == [b"%d" % number for number in range(sent)]
    assert not rig.events("node_id_shared") and not rig.events("duplicate_node_id")


def test_messages_wait_for_a_node_that_was_stopped_while_its_backup_takes_over(rig: Rig) -> None:
    hosts = members(rig)
    backup = backup_of(rig, hosts[1])
    rig.run(1)
    hosts[1].stop()
    rig.run(1)
    rig.stored(hosts[0], "prices", [b"meanwhile"], MULTICAST)
    backup.take_over(hosts[1])
    rig.formed()
    rig.until(lambda: count(backup, "reports") == 1)


def test_two_nodes_of_one_id_that_both_run_are_reported_although_one_has_a_backup(rig: Rig) -> None:
    hosts = members(rig)
    backup_of(rig, hosts[1])
    twin = rig.node(peers=[0], node_id="node-1")
    rig.run(2)
    twin.start()
    rig.run(5)
    told = [line for line in rig.events("node_id_shared") if line.split()[1] == "n0"]
    assert told and "n1:61616" in told[0] and "n3:61616" in told[0]


def test_a_failover_is_no_second_node_in_a_discovery_group(rig: Rig) -> None:
    hosts = rig.cluster(2, discovery=True)
    backup = backup_of(rig, hosts[1], discovery=True)
    rig.run(1)
    active, passive = hosts[1], backup
    for _ in range(3):
        fail_over(passive, active)
        active, passive = passive, active
        rig.formed()
        announce(rig, active, passive)
        rig.run(12)
    assert not rig.events("node_id_shared") and not rig.events("duplicate_node_id")


def test_a_backup_that_announces_itself_is_half_of_a_pair_and_not_linked_to(rig: Rig) -> None:
    """As a real Artemis backup does, here before its primary is known, and then with it."""
    host = rig.node(peers=[0])
    rig.form()
    peer = RawPeer(rig, "backup")
    peer.listen()
    peer.log_in_as_member(host)
    own = TransportConfiguration.tcp("backup", "backup", PORT)
    peer.send(NodeAnnounce("pair", None, True, rig.world.now // 1_000_000, own), CLUSTER_CHANNEL)
    rig.run(3)
    assert cluster_of(host).peers == {} and len(peer.conns) == 1
    assert pair(rig, host, "pair") == ["backup:61616"]
    primary = TransportConfiguration.tcp("primary", "primary", PORT)
    peer.send(NodeAnnounce("pair", None, False, 5, primary), CLUSTER_CHANNEL)
    rig.run(1)
    assert pair(rig, host, "pair") == ["primary:61616", "backup:61616"]


def test_a_late_announcement_of_the_other_half_by_a_clock_that_is_ahead_does_not_last(rig: Rig) -> None:
    """As of a paused machine whose clock jumped ahead when it went on; it has lost the store and ends soon."""
    hosts = members(rig)
    backup = backup_of(rig, hosts[1])
    rig.run(1)
    late = RawPeer(rig, "late")
    late.log_in_as_member(hosts[0])
    ahead = rig.world.now // 1_000_000 + 3_600_000
    late.send(NodeAnnounce("node-1", None, False, ahead, connector(backup)), CLUSTER_CHANNEL)
    rig.run(0.001)
    rig.until(lambda: pair(rig, hosts[0], "node-1") == ["n1:61616", "n2:61616"], 5)
    rig.until(lambda: linked(hosts[0]) == 1, 10)
    rig.stored(hosts[0], "prices", [b"after"], MULTICAST)
    rig.until(lambda: count(hosts[1], "reports") == 1)


def test_a_member_of_the_own_replicated_group_is_no_second_node(rig: Rig) -> None:
    """Both may announce the node id for a moment. The register says who serves: nobody is to delete a node-id."""
    hosts = rig.cluster(2)
    rig.run(5)
    cluster = cluster_of(hosts[1])
    local, settings = cluster.local, cluster.local.settings
    [other] = cluster.config.static_connectors
    update = Member(local.node_id, local.event_id + 1, settings.transport(other), None, None, None)
    settings.group_connectors = [other]
    cluster.members.update(rig.world.now, update)
    assert not rig.events("duplicate_node_id")
    rig.run(2)
    assert local.event_id > update.event_id, "this node serves: its announcement is above that of the other one"
    settings.group_connectors = []
    update.event_id = local.event_id + 1
    cluster.members.update(rig.world.now, update)
    assert rig.events("duplicate_node_id")
