"""Failover clients in a network of brokers, without a cluster: spread over the brokers of their data centre."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from atalanta.node.config import NodeConfig
from atalanta.sim.host import Host
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.openwire.server.node_clients import NodeClients
from atalanta.wire.openwire.server.protocol import OpenWireProtocol
from tests.cluster.balancing.constant_clients import Accounts
from tests.cluster.balancing.failover_clients import FailoverClient, failover, places
from tests.cluster.cluster_rig import OPENWIRE_PORT, node_of
from tests.cluster.networks.network_rig import NetworkRig, bridges_of, connector


def balancing(index: int, names: str) -> Callable[[NodeConfig], None]:
    """Changes a configuration: an acceptor for clients, who are told of the brokers of these names."""

    def change(config: NodeConfig) -> None:
        acceptor = AcceptorConfig("openwire", f"n{index}", OPENWIRE_PORT, protocols=("OPENWIRE",))
        acceptor.options(OpenWireAcceptor).update_cluster_clients = True
        acceptor.options(OpenWireAcceptor).rebalance_cluster_clients = True
        acceptor.options(OpenWireAcceptor).update_cluster_clients_on_remove = True
        acceptor.options(OpenWireAcceptor).update_cluster_filter = names
        config.acceptors.append(acceptor)

    return change


def network(rig: NetworkRig, *names: str) -> list[Host]:
    """Three brokers with bridges to each other; the clients of the first two are told of these only, or of `names`."""
    for index in range(3):
        others = [each for each in range(3) if each != index]
        bridges = connector(*others, port=OPENWIRE_PORT, message_ttl=10, consumer_ttl=1)
        made = rig.single([bridges], balancing(index, ",".join(names) or ("n0,n1" if index < 2 else "n2")))
        made.listeners[OPENWIRE_PORT] = "openwire"
        made.start()
    joined(rig)
    return rig.hosts


def joined(rig: NetworkRig) -> None:
    rig.until(lambda: all(bridge.connected() for host in rig.hosts if host.up for bridge in bridges_of(host)))


def node_clients_of(host: Host) -> NodeClients:
    (found,) = [each for each in node_of(host).host.protocols if isinstance(each, OpenWireProtocol)]
    return found.node_clients


def spread(clients: Sequence[FailoverClient], hosts: Sequence[Host]) -> bool:
    """All clients are at the first two, in about equal parts."""
    first, second, other = places(clients, hosts)
    return other == 0 and first + second == len(clients) and min(first, second) >= len(clients) // 4


def quiet(rig: NetworkRig, clients: Sequence[FailoverClient], accounts: Accounts) -> None:
    """Everything that was confirmed has arrived, and nothing twice."""
    for each in clients:
        each.sending = False
    rig.until(lambda: not accounts.lost())
    rig.run(8)
    assert len(accounts.confirmed) > 20
    assert accounts.repeated(1) == []


def test_clients_with_priority_backup_are_spread_in_their_data_centre_leave_it_last_and_return(rig: NetworkRig) -> None:
    hosts = network(rig)
    clients = failover(
        rig, 12, hosts, Accounts(), randomize=False, priority=True, priority_hosts=hosts[:2], period_ns=0
    )
    rig.until(lambda: spread(clients, hosts), seconds=40)
    for host in hosts[:2]:
        host.stop()
        rig.until(lambda: sum(places(clients, hosts)[:2]) == 12, seconds=40)
        host.start()
        joined(rig)
        rig.until(lambda: spread(clients, hosts), seconds=40)
    for host in hosts[:2]:
        host.crash()
    rig.until(lambda: places(clients, hosts) == [0, 0, 12], seconds=40)
    for host in hosts[:2]:
        host.start()
    joined(rig)
    rig.until(lambda: spread(clients, hosts), seconds=60)
    rig.run(10)
    placed = {each.name: each.at for each in clients}
    orders = sum(each.orders for each in clients)
    rig.run(60)
    assert {each.name: each.at for each in clients} == placed
    assert sum(each.orders for each in clients) == orders


def test_clients_are_moved_between_two_calls(rig: NetworkRig) -> None:
    hosts = network(rig)
    accounts = Accounts()
    hosts[1].stop()
    clients = failover(rig, 12, hosts[:1], accounts)
    rig.run(3)
    hosts[1].start()
    rig.until(lambda: spread(clients, hosts), seconds=60)
    quiet(rig, clients, accounts)


def test_a_client_that_does_not_stay_where_it_is_sent_is_left_alone(rig: NetworkRig) -> None:
    hosts = network(rig)
    clients = failover(
        rig, 12, hosts, Accounts(), randomize=False, priority=True, priority_hosts=hosts[:1], period_ns=0
    )
    rig.run(30)
    rig.until(lambda: places(clients, hosts) == [12, 0, 0])
    orders = sum(each.orders for each in clients)
    assert 0 < orders <= 24  # at the login, and once more
    rig.run(120)
    assert sum(each.orders for each in clients) == orders


# Client ids of which the hash alone would place 6, 21 and 3 at the three brokers.
UNEVEN = "whe"


def test_the_load_of_each_broker_is_bounded(rig: NetworkRig) -> None:
    """Also while counts are told once a second, and after each broker has been away; then nobody is moved any more."""
    hosts = network(rig, "n0", "n1", "n2")
    clients = failover(rig, 30, hosts, Accounts(), UNEVEN, randomize=False, period_ns=0)
    rig.until(lambda: bounded(clients, hosts), seconds=30)
    for host in hosts:
        host.stop()
        rig.until(lambda: sum(places(clients, [each for each in hosts if each.up])) == 30)
        rig.run(5)
        host.start()
        joined(rig)
        rig.until(lambda: bounded(clients, hosts), seconds=40)
    rig.run(10)
    placed = places(clients, hosts)
    orders = sum(each.orders for each in clients)
    rig.run(60)
    assert places(clients, hosts) == placed and bounded(clients, hosts)
    assert sum(each.orders for each in clients) == orders


def bounded(clients: Sequence[FailoverClient], hosts: Sequence[Host]) -> bool:
    """No broker has more than a fifth above the mean."""
    found = places(clients, hosts)
    return sum(found) == len(clients) and max(found) <= 1.2 * len(clients) / len(hosts)


def test_clients_whose_urls_begin_alike_are_spread_at_the_login(rig: NetworkRig) -> None:
    hosts = network(rig, "n0", "n1", "n2")
    clients = failover(rig, 30, hosts, Accounts(), UNEVEN, randomize=False, period_ns=0)
    rig.run(0.5)
    assert bounded(clients, hosts)


def test_a_broker_that_tells_no_count_gets_those_whose_place_it_is(rig: NetworkRig) -> None:
    """As a Classic broker."""
    hosts = network(rig, "n0", "n1", "n2")
    for host in hosts:
        node_clients_of(host).peers.listeners.clear()
        for peer in node_clients_of(host).peers.neighbours.values():
            peer.clients = None
    clients = failover(rig, 30, hosts, Accounts(), UNEVEN, randomize=False, period_ns=0)
    rig.until(lambda: places(clients, hosts) == [6, 21, 3], seconds=30)
