"""`atalanta check` of nodes in zones."""

from __future__ import annotations

from pathlib import Path

from tests.cli.instance.check_rig import call, told, write

EAST = '[zones.east]\nusers = "a"\nfallback = "west"\n'


def node(folder: Path, name: str, toml: str) -> Path:
    path = write(folder, name)
    path.with_name("atalanta.toml").write_text(toml)
    return path


def test_zones_that_fit_together_are_no_finding(tmp_path: Path) -> None:
    a, b = node(tmp_path, "a", 'zone = "east"\n' + EAST), node(tmp_path, "b", 'zone = "west"\n' + EAST)
    assert not [each for each in told(call(a, b), "warning") if "zone" in each]


def test_a_zone_without_a_member_is_named(tmp_path: Path) -> None:
    toml = 'zone = "east"\n[zones.east]\nfallback = "wets, north"\n[zones.north]\nmembers = "artemis:61616"\n'
    a, b = node(tmp_path, "a", toml), node(tmp_path, "b", toml)
    warnings = told(call(a, b), "warning")
    assert "[zones.east]: no given node is in the zone 'wets'" in warnings
    assert not any("'north'" in each or "'east'" in each for each in warnings)
    assert not any("zone" in each for each in told(call(a), "warning"))  # the other files may have it


def test_different_tables_and_a_node_without_a_zone_are_named(tmp_path: Path) -> None:
    a, b = node(tmp_path, "a", 'zone = "east"\n' + EAST), node(tmp_path, "b", "")
    warnings = told(call(a, b), "warning")
    assert "it has no zone, unlike other nodes" in warnings
    assert f"its tables [zones.NAME] differ from those of {a}: a client would go to and fro" in warnings
