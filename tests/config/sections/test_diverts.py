"""The section `<diverts>`, and where wildcard routing is switched off."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.problems import ConfigError
from atalanta.kernel.routing.divert_config import ADD_HEADERS, PASS, STRIP, DivertConfig
from tests.config.sections.section_rig import read


def test_a_divert_with_everything(tmp_path: Path) -> None:
    text = f"""<diverts>
      <divert name="plain"><address>a</address><forwarding-address>b</forwarding-address></divert>
      <divert name="full">
        <address>prices.#</address><forwarding-address>b, c</forwarding-address>
        <filter string="price &gt; 3"/><exclusive>true</exclusive>
        <routing-type>PASS</routing-type>
        <transformer><class-name>{ADD_HEADERS}</class-name><property key="k" value="v"/></transformer>
      </divert>
    </diverts>"""
    assert read(tmp_path, text).broker.diverts == [
        DivertConfig("plain", "a", "b", STRIP),
        DivertConfig("full", "prices.#", "b, c", PASS, True, None, "price > 3", {"k": "v"}),
    ]


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ("<address>a</address>", "forwarding-address"),
        ("<forwarding-address>a</forwarding-address>", "needs an <address>"),
        ("<address>a</address><forwarding-address>a</forwarding-address>", "its own address"),
        (
            "<address>a</address><forwarding-address>b</forwarding-address>"
            "<transformer-class-name>com.example.Mine</transformer-class-name>",
            "com.example.Mine",
        ),
        (
            '<address>a</address><forwarding-address>b</forwarding-address><filter string="x ="/>',
            "filter",
        ),
        (
            "<address>a</address><forwarding-address>b</forwarding-address>"
            "<routing-type>SOMEHOW</routing-type>",
            "STRIP, MULTICAST, ANYCAST, PASS",
        ),
    ],
)
def test_what_cannot_work_is_a_problem_with_its_place(
    tmp_path: Path, inside: str, why: str
) -> None:
    with pytest.raises(ConfigError) as problem:
        read(tmp_path, f'<diverts><divert name="d">{inside}</divert></diverts>')
    assert why in str(problem.value)
    assert "broker.xml:1" in str(problem.value)


@pytest.mark.parametrize(
    "text",
    [
        "<wild-card-routing-enabled>false</wild-card-routing-enabled>",
        "<wildcard-addresses><enabled>false</enabled></wildcard-addresses>",
        "<wildcard-addresses><routing-enabled>false</routing-enabled></wildcard-addresses>",
    ],
)
def test_wildcard_routing_is_switched_off(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, "").broker.wildcard.routing_enabled
    found = read(tmp_path, text)
    assert not found.broker.wildcard.routing_enabled
    assert not found.unsupported
