"""Where the clients of a member go that stops, leaves, or gives its service to its backup."""

from __future__ import annotations

from atalanta.cluster.config import ClusterSettings
from atalanta.wire.core.packets.connection import DisconnectV3
from atalanta.wire.core.packets.topology import ClusterTopology
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from tests.cluster.balancing.constant_clients import Accounts
from tests.cluster.balancing.failover_clients import failover, places, uri_of
from tests.cluster.cluster_rig import OPENWIRE_PORT, RawPeer, Rig, node_of
from tests.cluster.scale_down.scale_down_rig import leave, to


def telling(acceptor: AcceptorConfig) -> None:
    acceptor.options(OpenWireAcceptor).update_cluster_clients = True
    acceptor.options(OpenWireAcceptor).update_cluster_clients_on_remove = True


def test_a_core_client_does_not_hear_that_the_others_have_gone(rig: Rig) -> None:
    """The links of a node that stops end; a client whose topology has this node alone would wait for it."""
    first, *_ = rig.cluster(3)
    peer = RawPeer(rig, "peer")
    peer.log_in(first)
    first.stop()
    rig.until(lambda: peer.closed)
    assert len(peer.got(DisconnectV3)) == 1
    assert [each for each in peer.got(ClusterTopology) if isinstance(each, ClusterTopology) and each.exit] == []


def test_failover_clients_of_a_stopping_member_are_at_the_others(rig: Rig) -> None:
    hosts = rig.cluster(3, openwire=telling)
    clients = failover(rig, 12, hosts[:1], Accounts(), period_ns=0)
    rig.until(lambda: all(len(each.updated) == 3 for each in clients))
    hosts[0].stop()
    rig.until(lambda: sum(places(clients, hosts)[1:]) == 12)
    assert min(places(clients, hosts)[1:]) > 0


def test_failover_clients_of_a_member_that_leaves_are_sent_to_the_one_that_takes_its_messages(rig: Rig) -> None:
    hosts = rig.cluster(3, openwire=telling)
    clients = failover(rig, 6, hosts[2:], Accounts(), randomize=False, period_ns=0)
    rig.until(lambda: all(len(each.updated) == 3 for each in clients))
    leave(rig, to(hosts[2], "n0"))
    rig.until(lambda: places(clients, hosts) == [6, 0, 0])


def test_failover_clients_are_sent_to_the_backup_that_takes_over(rig: Rig) -> None:
    """Their URL has the active node only, which is alone: its backup is not in any list before."""

    def at_openwire(settings: ClusterSettings) -> None:
        for each in settings.connectors.values():
            each.port = OPENWIRE_PORT

    def serving(acceptor: AcceptorConfig) -> None:
        telling(acceptor)
        acceptor.protocols = ()

    active = rig.node(openwire=serving, whole=at_openwire)
    active.start()
    backup = rig.node(openwire=serving, whole=at_openwire, backup_of=0)
    clients = failover(rig, 3, [active], Accounts(), period_ns=0)
    assert not any(each.updated for each in clients)
    connector = TransportConfiguration.tcp(backup.name, backup.address, OPENWIRE_PORT)
    node_of(active).on_backups(rig.world.now, {"test": connector})
    active.stop()
    rig.until(lambda: all(each.updated == [uri_of(backup)] for each in clients))
    backup.take_over(active)
    rig.until(lambda: places(clients, [active, backup]) == [0, 3])
