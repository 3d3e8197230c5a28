"""A node whose announced address cannot be dialled: it says so itself, and so do its peers."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.cluster.config import ClusterSettings
from tests.cluster.cluster_rig import Rig, linked


def announcing(host: str) -> Callable[[ClusterSettings], None]:
    """The node's connector names that host."""

    def change(settings: ClusterSettings) -> None:
        own = settings.cluster_connections[0].connector
        settings.connectors[own].host = host

    return change


def test_an_address_that_peers_cannot_dial_is_told_on_both_sides_once(rig: Rig) -> None:
    good = rig.node(peers=[0])
    wrong = rig.node(peers=[0], whole=announcing("inside-only"))
    good.start()
    wrong.start()
    rig.run(14)
    assert not rig.events("not_dialed_back")
    [unreachable] = rig.events("n0 member_unreachable")
    assert "announced=inside-only:61616" in unreachable and "why=refused" in unreachable
    rig.run(40)
    [told] = rig.events("not_dialed_back")
    assert told.split()[1] == "n1" and "node=node-0 announced=inside-only:61616" in told
    assert "announce one that it can" in told
    assert len(rig.events("member_unreachable")) == 1
    # As soon as it can be dialled the all-clear is told.
    rig.network.listen(wrong, "inside-only", 61616)
    rig.until(lambda: linked(good) == 1)
    rig.run(1)
    assert rig.events("n1 dialed_back node=node-0")


def test_a_static_connector_that_leads_to_a_node_does_not_prove_its_announced_address(rig: Rig) -> None:
    """The peer's locator comes by the right address, its link by the announced one."""
    hosts = [rig.node(peers=[1]), rig.node(peers=[0], whole=announcing("inside-only"))]
    for host in hosts:
        host.start()
    rig.run(20)
    assert rig.events("n1 not_dialed_back") and rig.events("n0 member_unreachable")


def test_nothing_is_told_where_all_can_be_dialled_also_when_nodes_come_and_go(rig: Rig) -> None:
    hosts = rig.cluster(3)
    rig.run(20)
    hosts[1].crash()
    rig.run(3)
    hosts[1].start()
    rig.formed()
    hosts[2].stop()
    rig.run(20)
    hosts[2].start()
    rig.formed()
    rig.run(20)
    assert not rig.events("not_dialed_back")
    for line in rig.events("member_unreachable"):
        assert "node=node-1" in line, "only the one that crashed"


def test_nodes_found_by_discovery_are_checked_as_well(rig: Rig) -> None:
    rig.node(discovery=True).start()
    rig.node(discovery=True, whole=announcing("inside-only")).start()
    rig.run(40)
    assert rig.events("n1 not_dialed_back") and rig.events("n0 member_unreachable")
