"""Rates and backlog of clusters made by hand."""

from __future__ import annotations

from atalanta.survey.flow import flow_of, rate
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
