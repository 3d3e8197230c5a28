"""Elements of several nodes side by side."""

from __future__ import annotations

from atalanta.console.configuration.comparison import differences
from atalanta.console.configuration.node_configuration import NodeElement


def part(origin: str = "file", **values: str) -> NodeElement:
    return NodeElement("bridge", "b", values, origin=origin)


def test_a_default_is_the_same_as_none() -> None:
    assert differences([part(ha="false"), part()], {"ha": "false"}) == []
    assert differences([part(ha="true"), part()], {"ha": "false"}) == ["ha"]
    assert differences([part(a="1", b="2"), part(a="1", b="3")], {}) == ["b"]
    assert differences([part(a="1"), part(origin="runtime")], {}) == ["a"]


def test_what_controls_do_not_show_is_not_compared() -> None:
    assert differences([part(a="1"), part(origin="management")], {}) == []
    assert differences([part(a="1"), part(origin="management", a="2")], {}) == ["a"]
    assert differences([part(a="1"), part(origin="in effect", a="2")], {}) == []
