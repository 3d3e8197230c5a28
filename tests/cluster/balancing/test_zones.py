"""Clients that prefer a zone: they stay in it, leave it only when all of it is away, and come back."""

from __future__ import annotations

from atalanta.cluster.native_config import OwnZone
from atalanta.sim.host import Host
from tests.cluster.balancing.balancing_rig import at_node, known, settings
from tests.cluster.balancing.constant_clients import MILLISECOND, Accounts, Roamer, roam
from tests.cluster.balancing.zones_rig import STABILITY_MS, in_zones, residents
from tests.cluster.cluster_rig import Rig
from tests.cluster.pair_rig import announce, fail_over


def restart(rig: Rig, host: Host) -> None:
    host.stop()
    rig.run(2)
    host.start()
    rig.formed()


def test_a_client_that_names_another_zone_is_redirected_before_it_works(rig: Rig) -> None:
    hosts = in_zones(rig, "east", "east", "west")
    accounts = Accounts()
    clients = residents(rig, "east", "n2", 10, accounts)
    rig.until(lambda: at_node(clients, hosts) == [5, 5, 0], seconds=4)
    rig.run(30)
    assert at_node(clients, hosts) == [5, 5, 0]
    assert accounts.redirects <= 12
    assert accounts.errors == 0


def test_clients_without_a_preference_go_anywhere_and_those_with_one_stay(rig: Rig) -> None:
    hosts = in_zones(rig, "east", "east", "west")
    accounts = Accounts()
    east = residents(rig, "east", "n0", 20, accounts)
    free = roam(rig, "n0", 20, accounts, known, period_ns=0)
    rig.until(lambda: max(at_node([*east, *free], hosts)) <= 15, seconds=40)
    rig.run(30)
    assert at_node(east, hosts)[2] == 0
    assert at_node(free, hosts)[2] >= 10


def test_they_leave_when_all_of_the_zone_is_away_and_come_back_a_few_at_a_time(rig: Rig) -> None:
    hosts = in_zones(rig, "east", "east", "west", rebalance_rate=3)
    accounts = Accounts()
    east = residents(rig, "east", "n0", 20, accounts, 200 * MILLISECOND)
    rig.until(lambda: max(at_node(east, hosts)) <= 11, seconds=30)
    hosts[0].stop()
    rig.until(lambda: at_node(east, hosts) == [0, 20, 0])
    hosts[1].stop()
    rig.until(lambda: at_node(east, hosts) == [0, 0, 20])
    rig.run(10)
    hosts[0].start()
    rig.formed()
    back = rig.world.now
    rig.run(STABILITY_MS / 1_000 - 1)
    assert at_node(east, hosts) == [0, 0, 20]  # the zone may go away again
    last = 0
    while at_node(east, hosts)[0] < 20:
        rig.run(1)
        assert at_node(east, hosts)[0] - last <= 6
        last = at_node(east, hosts)[0]
        assert rig.world.now - back < 40 * 1_000_000_000
    hosts[1].start()
    rig.formed()
    rig.until(lambda: max(at_node(east, hosts)) <= 11, seconds=30)  # inside the zone at once
    assert at_node(east, hosts)[2] == 0
    for one in east:
        one.sending = False
    rig.run(5)
    assert accounts.errors == 0
    assert accounts.lost() == []
    assert accounts.repeated(2) == []


def test_a_zone_that_does_not_stay_up_gets_no_clients_back(rig: Rig) -> None:
    hosts = in_zones(rig, "east", "west")
    accounts = Accounts()
    east = residents(rig, "east", "n0", 6, accounts)
    hosts[0].stop()
    rig.until(lambda: at_node(east, hosts) == [0, 6])
    rig.run(10)
    redirects = accounts.redirects
    for _ in range(3):
        hosts[0].start()
        rig.run(STABILITY_MS / 1_000 - 3)
        hosts[0].stop()
        rig.run(3)
    assert accounts.redirects == redirects
    hosts[0].start()
    rig.until(lambda: at_node(east, hosts) == [6, 0], seconds=40)


def test_a_rolling_restart_ends_with_every_client_in_its_zone_and_the_zone_in_balance(rig: Rig) -> None:
    hosts = in_zones(rig, "east", "east", "west", "west")
    accounts = Accounts()
    east: list[Roamer] = [*residents(rig, "east", "n0", 16, accounts, 200 * MILLISECOND)]
    west: list[Roamer] = [*residents(rig, "west", "n0", 8, accounts, 200 * MILLISECOND)]
    rig.until(lambda: at_node(east, hosts) == [8, 8, 0, 0] and at_node(west, hosts) == [0, 0, 4, 4], 30)
    for host in hosts:
        rig.run(3)
        restart(rig, host)
    rig.until(
        lambda: max(at_node(east, hosts)[:2]) <= 9
        and sum(at_node(east, hosts)[:2]) == 16
        and max(at_node(west, hosts)[2:]) <= 5
        and sum(at_node(west, hosts)[2:]) == 8,
        seconds=60,
    )
    for one in [*east, *west]:
        one.sending = False
    rig.run(5)
    assert accounts.errors == 0
    assert accounts.lost() == []
    assert accounts.repeated(2) == []


def test_a_node_that_was_restarted_knows_that_the_other_zone_was_never_away(rig: Rig) -> None:
    hosts = in_zones(rig, "east", "west")
    restart(rig, hosts[1])
    accounts = Accounts()
    rig.run(3)
    east = residents(rig, "east", "n1", 4, accounts)
    rig.until(lambda: at_node(east, hosts) == [4, 0], seconds=3)


def test_a_pair_is_one_member_in_the_zone_of_its_active_half(rig: Rig) -> None:
    hosts = in_zones(rig, "east", "west")
    own = settings(zone="east", zone_stability_ms=STABILITY_MS)
    backup = rig.node(peers=[1], delay_ms=0, own=own, backup_of=0)
    announce(rig, hosts[0], backup)
    accounts = Accounts()
    clients = residents(rig, "east", "n0", 4, accounts)
    rig.run(3)
    fail_over(backup, hosts[0])
    rig.until(lambda: at_node(clients, rig.hosts) == [0, 4, 0] or at_node(clients, rig.hosts) == [0, 0, 4])
    rig.until(lambda: at_node(clients, rig.hosts) == [0, 0, 4], seconds=40)


def test_a_list_of_zones_is_followed_in_its_order(rig: Rig) -> None:
    hosts = in_zones(rig, "east", "west", "north")
    accounts = Accounts()
    clients = residents(rig, "east, north", "n1", 4, accounts)
    rig.until(lambda: at_node(clients, hosts) == [4, 0, 0], seconds=10)
    hosts[0].stop()
    rig.until(lambda: at_node(clients, hosts) == [0, 0, 4], seconds=30)
    hosts[0].start()
    rig.until(lambda: at_node(clients, hosts) == [4, 0, 0], seconds=60)


def test_the_file_gives_a_zone_to_clients_that_name_none(rig: Rig) -> None:
    table = OwnZone(networks="10.9.0.0/16", users="user", fallback="north")
    hosts = in_zones(rig, "west", "north", "east", east=table)
    accounts = Accounts()
    clients = roam(rig, "n0", 4, accounts, known, period_ns=0)
    rig.until(lambda: at_node(clients, hosts) == [0, 0, 4], seconds=20)
    hosts[2].stop()
    rig.until(lambda: at_node(clients, hosts) == [0, 4, 0], seconds=40)


def test_a_client_that_is_not_known_to_reconnect_stays_and_the_operator_is_told_why(rig: Rig) -> None:
    hosts = in_zones(rig, "west", "east", east=OwnZone(users="user"))
    clients = roam(rig, "n0", 4, Accounts(), period_ns=0)
    rig.run(30)
    assert at_node(clients, hosts) == [4, 0]
    assert len(rig.events("n0 rebalance_stuck surplus=4 stay=4 why=4 not known to reconnect")) == 1


def test_a_client_that_cannot_reach_its_zone_is_left_alone(rig: Rig) -> None:
    hosts = in_zones(rig, "west", "east")
    accounts = Accounts()
    clients = residents(rig, "east", "n0", 2, accounts)
    rig.until(lambda: at_node(clients, hosts) == [0, 2])
    hosts[1].stop()
    rig.until(lambda: at_node(clients, hosts) == [2, 0])
    for one in clients:
        one.obeys = False  # it dials the address that it knows
    hosts[1].start()
    rig.run(120)
    assert at_node(clients, hosts) == [2, 0]
    assert 2 <= accounts.redirects - 2 <= 10


