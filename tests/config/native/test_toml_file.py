"""The file of our own beside broker.xml: read if it is there, and every mistake named with its line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.problems import ConfigError

BROKER = "<configuration><core><name>n</name></core></configuration>"


def folder_with(tmp_path: Path, own: str | None, name: str = "atalanta.toml") -> Path:
    path = tmp_path / "broker.xml"
    path.write_text(BROKER)
    if own is not None:
        (tmp_path / name).write_text(own)
    return path


def test_without_it_everything_has_its_default(tmp_path: Path) -> None:
    assert read_broker_xml(folder_with(tmp_path, None)).own.zone is None


def test_a_size_has_its_suffix(tmp_path: Path) -> None:
    own = read_broker_xml(folder_with(tmp_path, 'producer-window = "2M"\n')).own
    assert own.producer_window_bytes == 2 << 20


def test_its_values_are_taken_and_a_change_of_it_is_watched(tmp_path: Path) -> None:
    configuration = read_broker_xml(folder_with(tmp_path, 'zone = "east"\n'))
    assert configuration.own.zone == "east"
    assert tmp_path / "atalanta.toml" in configuration.files


def test_a_file_for_one_broker_xml_goes_before_the_one_for_all(tmp_path: Path) -> None:
    folder_with(tmp_path, 'zone = "east"\n')
    path = folder_with(tmp_path, 'zone = "west"\n', "broker.atalanta.toml")
    assert read_broker_xml(path).own.zone == "west"


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ('# where\nzome = "east"', "atalanta.toml:2: unknown key 'zome' (did you mean 'zone'?)"),
        ("\n\nzone = 7", "atalanta.toml:3: zone: 7 is not of type str"),
        ("zone = ", "atalanta.toml:1: is not TOML"),
        ('zone = "a"\ndns-discovery = "udp://x"', "atalanta.toml:2: dns-discovery: scheme 'udp'"),
        ("dns-discovery-period = 5", "atalanta.toml:1: dns-discovery-period: 5 is less than 100"),
        ('producer-window = "63K"', "atalanta.toml:1: producer-window: 63K is less than 65536"),
        ('dns-discovery = { a = 5 }', "atalanta.toml:1: dns-discovery.a: 5 is not a string"),
        ('dns-discovery = { a = "udp://x" }', "atalanta.toml:1: dns-discovery: scheme 'udp'"),
        ('zone = "a"\n[ha]\nlease_ms = 199', "atalanta.toml:3: lease_ms: 199 is less than 200"),
        ("[ha]\nlease_ms = 60001", "atalanta.toml:2: lease_ms: 60001 is more than 60000"),
        ('[ha]\nlease_ms = "2s"', "atalanta.toml:2: lease_ms: '2s' is not a number"),
        ("[ha]\nlease = 5", "unknown key 'lease' in [ha]"),
        ("ha = 5", "atalanta.toml:1: ha is not a table (write [ha])"),
        ('zone = "a"\n[other]\nx = 1', "atalanta.toml:2: unknown key 'other'"),
        ("zones = 5", "atalanta.toml:1: zones is not a table (write [zones.NAME])"),
        ("[zones]\neast = 1", "atalanta.toml:1: zones.east is not a table (write [zones.east])"),
        ('[zones.east]\nuser = "u"', "atalanta.toml:2: unknown key 'user' in [zones.east] (did you mean 'users'?)"),
        ("[zones.east]\nusers = [1]", "atalanta.toml:2: users: [1] is not a string"),
        ('[zones.east]\n\nnetworks = "10.1.0.0/99"', "atalanta.toml:3: networks: '10.1.0.0/99'"),
        ('[zones.east]\nmembers = "artemis"', "atalanta.toml:2: members: 'artemis' is not host:port"),
        ("[zones.'a,b']", "[zones.'a,b']: a zone's name is not empty and has no comma"),
    ],
)
def test_mistakes_name_their_line(tmp_path: Path, own: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_broker_xml(folder_with(tmp_path, own))
    assert says in str(caught.value)


def test_the_length_of_the_lease(tmp_path: Path) -> None:
    assert read_broker_xml(folder_with(tmp_path, None)).ha.lease_ms == 2000
    assert read_broker_xml(folder_with(tmp_path, "[ha]\nlease_ms = 500\n")).ha.lease_ms == 500


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "atalanta.toml")
    with pytest.raises(ConfigError, match=r"atalanta\.toml: cannot be read: is a named pipe"):
        read_broker_xml(folder_with(tmp_path, None))


def test_the_zones_are_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = '[zones.west]\nusers = "a, b"\nfallback = "east"\n[zones.east]\nnetworks = "10.1.0.0/16"\n'
    zones = read_broker_xml(folder_with(tmp_path, text)).own.zones
    assert list(zones) == ["west", "east"]
    assert (zones["west"].users, zones["west"].fallback) == ("a, b", "east")
    assert zones["east"].networks == "10.1.0.0/16"


def test_dns_names_by_cluster_connection(tmp_path: Path) -> None:
    found = read_broker_xml(folder_with(tmp_path, 'dns-discovery = { inner = "tcp://x" }'))
    assert found.own.dns_by_cluster == {"inner": "tcp://x"}
    assert any("there is no cluster-connection 'inner'" in each for each in found.warnings)


@pytest.mark.parametrize("text", [f"zone = {'9' * 5000}", f"zone = {'[' * 5000}"])
def test_what_toml_cannot_hold_is_a_problem_of_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"atalanta\.toml: is not TOML that can be read"):
        read_broker_xml(folder_with(tmp_path, text))
