"""Clients that are redirected at their first login, since the file gives them another zone."""

from __future__ import annotations

from atalanta.cluster.native_config import OwnZone
from atalanta.kernel.errors import ROUTING
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT
from atalanta.wire.core.packets.session import STAY_ADDRESS
from tests.cluster.balancing.zones_rig import in_zones
from tests.cluster.cluster_rig import Rig
from tests.cluster.connection_routers.router_rig import Visitor

EAST = OwnZone(client_ids="east-*")


class Newcomer(Visitor):
    """Logs in through the door that the cluster announces."""

    port = PORT


def visit(rig: Rig, host: Host, client_id: str) -> Newcomer:
    visitor = Newcomer(rig, host, client_id)
    rig.run(0.1)
    return visitor


def test_a_newcomer_is_sent_to_its_zone_and_the_members_there_get_equal_shares(rig: Rig) -> None:
    hosts = in_zones(rig, "west", "east", "east", east=EAST, rebalance_any_client=True)
    visitors = [visit(rig, hosts[0], f"east-{number}") for number in range(4)]
    assert sorted(visitor.to for visitor in visitors) == ["n1", "n1", "n2", "n2"]
    assert all(visitor.error == ROUTING for visitor in visitors)
    assert visit(rig, hosts[0], "west-1").stays
    assert visit(rig, hosts[1], "east-1").stays


def test_without_its_zone_it_is_served(rig: Rig) -> None:
    hosts = in_zones(rig, "west", "east", east=EAST, rebalance_any_client=True)
    hosts[1].stop()
    assert visit(rig, hosts[0], "east-1").stays


def test_it_is_served_where_clients_are_not_all_known_to_reconnect(rig: Rig) -> None:
    hosts = in_zones(rig, "west", "east", east=EAST)
    assert visit(rig, hosts[0], "east-1").stays


def test_a_client_of_ours_that_accepts_no_other_node_stays_for_ever(rig: Rig) -> None:
    hosts = in_zones(rig, "west", "east", east=EAST, rebalance_any_client=True)
    visitor = Newcomer(rig, hosts[0], "east-1")
    visitor.default_address = STAY_ADDRESS
    rig.run(30)
    assert visitor.stays and not visitor.to


def test_one_that_comes_again_with_the_same_login_could_not_go_there(rig: Rig) -> None:
    hosts = in_zones(rig, "west", "east", east=EAST, rebalance_any_client=True)
    first = visit(rig, hosts[0], "east-1")
    assert first.to == "n1"
    again = Newcomer(rig, hosts[0], "east-1")
    again.name = first.name
    rig.run(0.1)
    assert again.stays
    rig.run(30)
    assert again.stays and not again.to


def test_a_java_client_repeats_the_login_before_it_closes_the_connection_and_gets_no_session(rig: Rig) -> None:
    hosts = in_zones(rig, "west", "east", east=EAST, rebalance_any_client=True)
    visitor = visit(rig, hosts[0], "east-1")
    assert visitor.to == "n1"
    visitor.log_in(10)
    rig.run(1)
    assert not visitor.stays
    assert len(rig.events("client_redirected")) == 1


def test_nobody_is_sent_by_a_node_that_redirects_no_clients(rig: Rig) -> None:
    hosts = in_zones(rig, "west", "east", east=EAST, rebalance_any_client=True, rebalance=False)
    assert visit(rig, hosts[0], "east-1").stays
