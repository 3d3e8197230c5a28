"""Rates and backlog of clusters made by hand."""

from __future__ import annotations

from atalanta.survey.flow import flow_of, rate
from atalanta.survey.model.links import BridgeView, NetworkView
from tests.survey.views import flowing


def test_rates_backlog_and_members_that_are_away() -> None:
    flow = flow_of(flowing())
    assert [(node.label, node.reached) for node in flow.nodes] == [
        ("a", True),
        ("b<&>", True),
        ("h3:1", False),
    ]
    a = flow.nodes[0]
    assert (a.messages, a.consumers, a.in_per_second, a.out_per_second) == (30, 2, 25.0, 35.0)
    there = flow.between("id-a", "id-b")
    assert there is not None and (there.linked, there.per_second, there.waiting) == (True, 20.0, 0)
    away = flow.between("id-a", "id-c")
    assert away is not None and (away.linked, away.waiting, away.may_have_arrived) == (False, 7, 2)
    assert [(first.label, second.label) for first, second in flow.pairs()] == [
        ("a", "b<&>"),
        ("a", "h3:1"),
    ]


def test_rates() -> None:
    assert [rate(one) for one in (None, 0.0, 0.25, 12.4, 12_345.6)] == [
        "",
        "0/s",
        "0.2/s",
        "12/s",
        "12,346/s",
    ]


def test_what_leads_out_of_the_cluster() -> None:
    """Core bridges and networks: to a member, and to brokers that are none, each of which is there once."""
    cluster = flowing()
    b, a = cluster.nodes
    a.bridges.append(BridgeView("out", "orders", to="h9:61616", connected=True, acknowledged=10, later_acknowledged=30))
    a.bridges.append(BridgeView("inside", "orders", to="h2:1", connected=True, waiting=4))
    a.networks.append(NetworkView("NC", "tcp://h8:61616", "classic", True, True, "", 0, 0, 8, 6))
    b.networks.append(NetworkView("NC", "tcp://h8:61616", "", False, why="connection refused"))
    flow = flow_of(cluster)
    assert [(each.label, each.at) for each in flow.neighbours] == [("h9:61616", "h9:61616"), ("classic", "h8:61616")]
    places = [getattr(flow.place(each.target), "label", None) for each in flow.bridges]
    assert places == ["h9:61616", "b<&>", "classic", "classic"]
    assert [each.per_second for each in flow.bridges] == [10.0, None, 4.0, None]
    assert (flow.bridges[2].back_per_second, flow.bridges[3].why) == (3.0, "connection refused")


def test_bridges_of_a_real_artemis_lead_to_untold_places() -> None:
    cluster = flowing()
    cluster.nodes[0].bridges += [BridgeView("x", "orders"), BridgeView("y", "orders")]
    assert [each.at for each in flow_of(cluster).neighbours] == ["an untold place", "an untold place"]
