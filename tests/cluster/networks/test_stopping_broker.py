"""What a broker that stops tells its failover clients: they go to its neighbours, and never wait for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.node.config import NodeConfig
from atalanta.sim.host import Host
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from tests.cluster.balancing.constant_clients import Accounts
from tests.cluster.balancing.failover_clients import FailoverClient, failover, places, uri_of
from tests.cluster.cluster_rig import OPENWIRE_PORT
from tests.cluster.networks.network_rig import NetworkRig, bridges_of, connector


def telling(index: int) -> Callable[[NodeConfig], None]:
    """Changes a configuration: an acceptor tells its clients of brokers that come and go."""

    def change(config: NodeConfig) -> None:
        acceptor = AcceptorConfig("openwire", f"n{index}", OPENWIRE_PORT, protocols=("OPENWIRE",))
        acceptor.options(OpenWireAcceptor).update_cluster_clients = True
        acceptor.options(OpenWireAcceptor).update_cluster_clients_on_remove = True
        config.acceptors.append(acceptor)

    return change


def network(rig: NetworkRig, links: dict[int, list[int]], duplex: bool = False) -> list[Host]:
    """Brokers with bridges to others, by number; they know each other."""
    for index, others in links.items():
        made = rig.single([connector(*others, port=OPENWIRE_PORT, duplex=duplex)] if others else [], telling(index))
        made.listeners[OPENWIRE_PORT] = "openwire"
        made.start()
    joined(rig)
    return rig.hosts


def joined(rig: NetworkRig) -> None:
    rig.until(lambda: all(bridge.connected() for host in rig.hosts if host.up for bridge in bridges_of(host)))
    rig.run(0.5)


def knowing(rig: NetworkRig, host: Host, count: int = 6) -> list[FailoverClient]:
    """Clients whose URL has this broker only, and that were told of all others."""
    clients = failover(rig, count, [host], Accounts(), period_ns=0)
    rig.until(lambda: all(set(each.updated) == {uri_of(other) for other in rig.hosts} for each in clients))
    return clients


@pytest.mark.parametrize("how", [Host.stop, Host.crash])
def test_the_clients_of_a_broker_that_ends_are_at_its_neighbours(rig: NetworkRig, how: Callable[[Host], None]) -> None:
    hosts = network(rig, {0: [1, 2], 1: [0, 2], 2: [0, 1]})
    clients = knowing(rig, hosts[0], 12)
    how(hosts[0])
    rig.until(lambda: sum(places(clients, hosts)[1:]) == 12)
    assert 0 < min(places(clients, hosts)[1:])


def test_the_neighbours_are_those_of_duplex_bridges(rig: NetworkRig) -> None:
    hosts = network(rig, {0: [], 1: [0], 2: [0]}, duplex=True)
    clients = knowing(rig, hosts[0])
    hosts[0].stop()
    rig.until(lambda: sum(places(clients, hosts)[1:]) == 6)


def test_a_rolling_restart_strands_nobody(rig: NetworkRig) -> None:
    """Each broker stops as soon as its clients have come back: its bridges need not be connected again."""
    hosts = network(rig, {0: [1, 2], 1: [0, 2], 2: [0, 1]})
    clients = knowing(rig, hosts[0])
    for host in [*hosts, *hosts]:
        host.stop()
        rig.until(lambda: sum(places(clients, [each for each in hosts if each.up])) == 6)
        host.start()


def test_a_client_of_a_broker_that_has_just_started_keeps_the_others(rig: NetworkRig) -> None:
    """The broker has no bridges yet: what it knows, itself alone, is no news."""
    hosts = network(rig, {0: [1], 1: [0]})
    clients = knowing(rig, hosts[0], 3)
    hosts[1].crash()
    hosts[0].crash()
    rig.until(lambda: not any(each.ready for each in clients))
    hosts[0].start()
    rig.until(lambda: places(clients, hosts) == [3, 0])
    hosts[1].start()
    hosts[0].crash()
    rig.until(lambda: places(clients, hosts) == [0, 3])
