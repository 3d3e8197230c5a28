"""Failover clients of OpenWire: told of the members, balanced by the plan of the cluster, kept in their zones."""

from __future__ import annotations

from collections.abc import Sequence

from atalanta.cluster.native_config import OwnZone
from atalanta.sim.host import Host
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from tests.cluster.balancing.balancing_rig import at_node, known, settings
from tests.cluster.balancing.constant_clients import Accounts, roam
from tests.cluster.balancing.failover_clients import (
    FailoverClient,
    balancing,
    failover,
    places,
    uri_of,
)
from tests.cluster.balancing.zones_rig import STABILITY_MS
from tests.cluster.cluster_rig import Rig


def quiet(rig: Rig, clients: Sequence[FailoverClient], accounts: Accounts) -> None:
    """Everything that was confirmed has arrived, and nothing twice."""
    for each in clients:
        each.sending = False
    rig.until(lambda: not accounts.lost())
    rig.run(3)
    assert len(accounts.confirmed) > 20
    assert accounts.repeated(1) == []


def restart(rig: Rig, host: Host) -> None:
    host.stop()
    rig.run(3)
    host.start()
    rig.formed()


def test_clients_spread_when_a_second_node_joins(rig: Rig) -> None:
    first = rig.node(delay_ms=0, openwire=balancing)
    rig.form()
    accounts = Accounts()
    clients = failover(rig, 10, [first], accounts)
    second = rig.node(delay_ms=0, openwire=balancing)
    rig.form(second)
    rig.until(lambda: places(clients, rig.hosts) == [5, 5], seconds=30)
    rig.run(20)
    assert places(clients, rig.hosts) == [5, 5]
    assert sum(each.orders for each in clients) <= 8
    assert all(set(each.updated) == {uri_of(first), uri_of(second)} for each in clients)
    quiet(rig, clients, accounts)


def test_thirty_clients_are_balanced_after_a_rolling_restart(rig: Rig) -> None:
    hosts = rig.cluster(3, delay_ms=0, openwire=balancing)
    accounts = Accounts()
    clients = failover(rig, 30, hosts, accounts)
    for host in hosts:
        restart(rig, host)
    rig.until(lambda: sum(places(clients, hosts)) == 30 and max(places(clients, hosts)) <= 12, seconds=30)
    rig.run(10)
    assert max(places(clients, hosts)) <= 12
    for each in clients:
        each.sending = False
    rig.until(lambda: not accounts.lost())


def test_one_plan_counts_clients_of_core_and_openwire(rig: Rig) -> None:
    hosts = rig.cluster(2, delay_ms=0, openwire=balancing)
    accounts = Accounts()
    clients = failover(rig, 8, hosts[:1], accounts, randomize=False, period_ns=0)
    core = roam(rig, "n0", 8, accounts, known, period_ns=0)
    rig.until(lambda: places(clients, hosts)[1] + at_node(core, hosts)[1] >= 7, seconds=30)
    rig.run(20)
    here = [a + b for a, b in zip(places(clients, hosts), at_node(core, hosts), strict=True)]
    assert here == [8, 8]


def test_clients_of_an_acceptor_without_rebalance_stay_and_are_told(rig: Rig) -> None:
    def telling(acceptor: object) -> None:
        acceptor.options(OpenWireAcceptor).update_cluster_clients = True  # type: ignore[attr-defined]

    hosts = rig.cluster(2, delay_ms=0, openwire=telling)
    accounts = Accounts()
    clients = failover(rig, 6, hosts[:1], accounts)
    rig.run(30)
    assert places(clients, hosts) == [6, 0]
    assert all(set(each.updated) == {uri_of(host) for host in hosts} for each in clients)
    hosts[0].crash()
    rig.until(lambda: places(clients, hosts) == [0, 6])


def zoned(rig: Rig, *zones: str) -> list[Host]:
    tables = {name: OwnZone(client_ids=f"{name}*") for name in dict.fromkeys(zones)}
    for zone in zones:
        own = settings(zone=zone, zone_stability_ms=STABILITY_MS)
        own.zones = tables
        rig.node(delay_ms=0, own=own, openwire=balancing)
    rig.form()
    rig.run(STABILITY_MS / 1_000 + 1)
    return rig.hosts


def test_clients_with_priority_backup_are_balanced_inside_their_zone_leave_it_last_and_return(rig: Rig) -> None:
    hosts = zoned(rig, "east", "east", "west")
    accounts = Accounts()
    clients = failover(
        rig, 12, hosts, accounts, "east", randomize=False, priority=True, priority_hosts=hosts[:2], period_ns=0
    )
    rig.until(lambda: places(clients, hosts) == [6, 6, 0], seconds=40)
    hosts[0].stop()
    rig.until(lambda: places(clients, hosts) == [0, 12, 0], seconds=40)
    hosts[1].stop()
    rig.until(lambda: places(clients, hosts) == [0, 0, 12], seconds=40)
    hosts[0].start()
    hosts[1].start()
    rig.formed()
    rig.until(lambda: places(clients, hosts) == [6, 6, 0], seconds=60)
    rig.run(30)
    assert places(clients, hosts) == [6, 6, 0]


def test_clients_without_priority_backup_stay_in_their_zone_too(rig: Rig) -> None:
    hosts = zoned(rig, "east", "east", "west")
    accounts = Accounts()
    clients = failover(rig, 10, hosts, accounts, "east", period_ns=0)
    rig.until(lambda: places(clients, hosts) == [5, 5, 0], seconds=40)
    assert all({*each.updated[:2]} == {uri_of(host) for host in hosts[:2]} for each in clients)
    hosts[0].stop()
    hosts[1].stop()
    rig.until(lambda: places(clients, hosts) == [0, 0, 10], seconds=40)
    hosts[0].start()
    hosts[1].start()
    rig.formed()
    rig.until(lambda: places(clients, hosts) == [5, 5, 0], seconds=60)


def test_a_client_that_does_not_stay_where_it_is_sent_is_left_alone(rig: Rig) -> None:
    hosts = rig.cluster(2, delay_ms=0, openwire=balancing)
    accounts = Accounts()
    clients = failover(rig, 12, hosts, accounts, priority=True, priority_hosts=hosts[:1], period_ns=0)
    rig.until(lambda: rig.events("rebalance_paused"), seconds=60)
    rig.until(lambda: places(clients, hosts) == [12, 0], seconds=30)
    orders = sum(each.orders for each in clients)
    rig.run(120)
    assert sum(each.orders for each in clients) == orders
