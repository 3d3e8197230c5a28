"""Clients spread over the members again, and nobody is harmed by it."""

from __future__ import annotations

from atalanta.sim.host import Host
from tests.cluster.balancing.balancing_rig import at_node
from tests.cluster.balancing.constant_clients import MILLISECOND, Accounts, roam
from tests.cluster.cluster_rig import Rig


def restart(rig: Rig, host: Host) -> None:
    host.stop()
    rig.run(2)
    host.start()
    rig.formed()


def test_a_rolling_restart_under_sixty_clients_ends_in_balance_and_stays_so(rig: Rig) -> None:
    hosts = rig.cluster(3, mode="OFF")
    accounts = Accounts()
    roamers = [one for host in hosts for one in roam(rig, host.name, 20, accounts)]
    for host in hosts:
        rig.run(3)
        restart(rig, host)
    rig.until(lambda: all(one.ready for one in roamers))
    assert max(at_node(roamers, hosts)) >= 30  # the last one to restart has none
    rig.until(lambda: max(at_node(roamers, hosts)) <= 24, seconds=30)
    moved = accounts.redirects
    assert moved <= 45
    rig.run(10)
    for one in roamers:
        one.period_ns = 5_000 * MILLISECOND
    calm = accounts.redirects
    rig.run(290)
    assert accounts.redirects == calm
    assert max(at_node(roamers, hosts)) <= 24
    for one in roamers:
        one.sending = False
    rig.run(5)
    assert accounts.errors == 0
    assert accounts.lost() == []
    assert accounts.repeated(2) == []
