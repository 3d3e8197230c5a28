"""Failover clients at their first login: told of the members at once, and spread where their URLs begin alike."""

from __future__ import annotations

from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from tests.cluster.balancing.balancing_rig import settings
from tests.cluster.balancing.constant_clients import Accounts
from tests.cluster.balancing.failover_clients import balancing, failover, places, uri_of
from tests.cluster.cluster_rig import Rig


def test_clients_are_told_of_members_that_have_just_met(rig: Rig) -> None:
    def telling(acceptor: AcceptorConfig) -> None:
        acceptor.options(OpenWireAcceptor).update_cluster_clients = True

    hosts = [rig.node(openwire=telling) for _ in range(3)]
    hosts[0].start()
    rig.run(3)
    rig.form(*hosts[1:])
    clients = failover(rig, 2, hosts[:1], Accounts(), period_ns=0)
    assert all(set(each.updated) == {uri_of(host) for host in hosts} for each in clients)
    hosts[0].crash()
    rig.until(lambda: sum(places(clients, hosts)[1:]) == 2)


def test_clients_whose_urls_begin_alike_are_spread(rig: Rig) -> None:
    """They take the brokers in their order: with `randomize=false` all begin at the first."""
    hosts = rig.cluster(3, openwire=balancing)
    clients = failover(rig, 30, hosts, Accounts(), randomize=False, period_ns=0)
    rig.until(lambda: sum(places(clients, hosts)) == 30)
    assert max(places(clients, hosts)) <= 11
    orders = sum(each.orders for each in clients)
    rig.run(20)
    assert max(places(clients, hosts)) <= 11
    assert sum(each.orders for each in clients) == orders


def test_a_client_stays_that_cannot_reach_where_it_is_sent(rig: Rig) -> None:
    hosts = rig.cluster(2, openwire=balancing)
    clients = failover(rig, 6, hosts, Accounts(), randomize=False, period_ns=0, priority=True, priority_hosts=hosts[:1])
    assert places(clients, hosts) == [6, 0]


def test_nobody_is_sent_away_where_balancing_is_off(rig: Rig) -> None:
    hosts = rig.cluster(2, openwire=balancing, own=settings(rebalance=False))
    clients = failover(rig, 6, hosts, Accounts(), randomize=False, period_ns=0)
    assert places(clients, hosts) == [6, 0] and not any(each.orders for each in clients)
