"""updateClusterFilter: failover clients are not told of a broker that it leaves out, and are never sent there."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from atalanta.cluster.native_config import OwnZone
from atalanta.sim.host import Host
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from tests.cluster.balancing.balancing_rig import at_node, balancer, known, settings
from tests.cluster.balancing.constant_clients import Accounts, roam
from tests.cluster.balancing.failover_clients import FailoverClient, balancing, failover, places
from tests.cluster.balancing.zones_rig import STABILITY_MS
from tests.cluster.cluster_rig import Rig


def two_of_three(acceptor: AcceptorConfig) -> None:
    balancing(acceptor)
    acceptor.options(OpenWireAcceptor).update_cluster_filter = "n0,n1"


def at_first(rig: Rig, hosts: Sequence[Host], count: int, randomize: bool = True) -> list[FailoverClient]:
    """Clients that have all come to the first node, as they do after the others were away."""
    for host in hosts[1:]:
        host.stop()
    rig.run(1)
    clients = failover(rig, count, hosts[:1], Accounts(), period_ns=0, randomize=randomize)
    for host in hosts[1:]:
        host.start()
    rig.formed()
    return clients


def sent_to(rig: Rig, node: str) -> int:
    return sum(f"to={node} " in line for line in rig.events("client_redirected"))


@pytest.mark.parametrize("randomize", [False, True])
def test_clients_are_balanced_among_the_others(rig: Rig, randomize: bool) -> None:
    hosts = rig.cluster(3, delay_ms=0, openwire=two_of_three)
    clients = at_first(rig, hosts, 20, randomize=randomize)
    rig.until(lambda: places(clients, hosts) == [10, 10, 0], seconds=40)
    orders = sum(each.orders for each in clients)
    rig.run(60)
    assert places(clients, hosts) == [10, 10, 0]
    assert sum(each.orders for each in clients) == orders
    assert sent_to(rig, "node-2") == 0
    assert not rig.events("rebalance_stuck")


def test_clients_of_core_go_there(rig: Rig) -> None:
    hosts = rig.cluster(3, delay_ms=0, openwire=two_of_three)
    clients = at_first(rig, hosts, 8)
    core = roam(rig, "n0", 8, Accounts(), known, period_ns=0)
    rig.until(lambda: at_node(core, hosts)[2] >= 4, seconds=40)
    rig.run(30)
    counts = [a + b for a, b in zip(places(clients, hosts), at_node(core, hosts), strict=True)]
    assert max(counts) <= 6 and places(clients, hosts)[2] == 0


def test_by_hand_they_are_sent_to_the_others(rig: Rig) -> None:
    hosts = rig.cluster(3, delay_ms=0, openwire=two_of_three, own=settings(rebalance=False))
    clients = at_first(rig, hosts, 9)
    rig.run(10)
    assert places(clients, hosts) == [9, 0, 0]
    described = json.loads(rig.ask(hosts[0], "broker", "rebalance", True))
    assert [(move["node"], move["clients"], move["able"]) for move in described["moves"]] == [("node-1", 4, 4)]
    balancer(hosts[0]).ask(rig.world.now)
    rig.until(lambda: places(clients, hosts) == [5, 4, 0], seconds=20)
    assert sent_to(rig, "node-2") == 0


def zoned(rig: Rig, *zones: str, fallback: str = "", leaves_out: str = "n0") -> list[Host]:
    """A node for each of the zones. Clients `east…` belong to `east`; of `leaves_out` nobody is told."""

    def filtered(acceptor: AcceptorConfig) -> None:
        balancing(acceptor)
        names = ",".join(f"n{index}" for index in range(5) if f"n{index}" != leaves_out)
        acceptor.options(OpenWireAcceptor).update_cluster_filter = names

    for zone in zones:
        own = settings(zone=zone, zone_stability_ms=STABILITY_MS)
        own.zones = {"east": OwnZone(client_ids="east*", fallback=fallback)}
        rig.node(delay_ms=0, own=own, openwire=filtered)
    rig.form()
    rig.run(STABILITY_MS / 1_000 + 1)
    return rig.hosts


@pytest.mark.parametrize("comes_back", [False, True])
def test_the_way_home_leads_to_members_that_they_may_reach(rig: Rig, comes_back: bool) -> None:
    """Also for those that come back from another node: these are not sent at the login, but when they are idle."""
    hosts = zoned(rig, "east", "east", "west")
    clients = failover(rig, 6, hosts[2:], Accounts(), "east", period_ns=0)
    rig.until(lambda: places(clients, hosts) == [0, 6, 0], seconds=30)
    if comes_back:
        hosts[1].crash()
        rig.until(lambda: places(clients, hosts) == [0, 0, 6], seconds=30)
        hosts[1].start()
        rig.until(lambda: places(clients, hosts) == [0, 6, 0], seconds=60)
    assert sent_to(rig, "node-0") == 0


def test_a_zone_without_a_member_that_they_may_reach_is_away_for_them(rig: Rig) -> None:
    hosts = zoned(rig, "east", "west", "north", fallback="west")
    clients = failover(rig, 4, hosts[2:], Accounts(), "east", period_ns=0)
    rig.until(lambda: places(clients, hosts) == [0, 4, 0], seconds=30)
    rig.run(20)
    assert places(clients, hosts) == [0, 4, 0]
