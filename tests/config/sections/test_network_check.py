"""The elements `<network-check-…>`: what is asked, what is left out with a warning, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.restart import needs_restart
from atalanta.runtime.network_check.config import PING, PING6

LINE = 4  # of what `read` puts in


def read(folder: Path, text: str) -> Configuration:
    path = folder / "broker.xml"
    path.write_text(
        '<configuration xmlns="urn:activemq">\n<core xmlns="urn:activemq:core">\n<acceptors>'
        f'<acceptor name="a">tcp://127.0.0.1:0</acceptor></acceptors>\n{text}\n</core></configuration>',
        encoding="utf-8",
    )
    return read_broker_xml(path)


def warnings(configuration: Configuration) -> list[str]:
    """Of the check of the network, without their place, which is always the same."""
    place = f"{configuration.path}:{LINE}: network-check-"
    return [line.removeprefix(place) for line in configuration.warnings if "network-check" in line]


def test_what_artemis_create_writes(tmp_path: Path) -> None:
    configuration = read(
        tmp_path,
        "<network-check-NIC>eth0</network-check-NIC>"
        "<network-check-URL-list>http://www.example.org, https://10.0.0.1:8443/x</network-check-URL-list>"
        "<network-check-period>10000</network-check-period>"
        "<network-check-timeout>2000</network-check-timeout>"
        "<network-check-list>10.0.0.1, fe80::1%eth0,gateway.example.org,,10.0.0.1</network-check-list>"
        f"<network-check-ping-command>{PING}</network-check-ping-command>"
        f"<network-check-ping6-command>{PING6}</network-check-ping6-command>",
    )
    network = configuration.network_check
    assert network.addresses == "10.0.0.1,fe80::1%eth0,gateway.example.org"
    assert network.urls == "http://www.example.org,https://10.0.0.1:8443/x"
    assert (network.interface, network.period_ms, network.timeout_ms) == ("eth0", 10_000, 2_000)
    assert not network.custom()
    assert not warnings(configuration)
    assert not configuration.unsupported


def test_without_them_nothing_is_asked(tmp_path: Path) -> None:
    network = read(tmp_path, "").network_check
    assert (network.addresses, network.urls) == ("", "")
    assert (network.period_ms, network.timeout_ms) == (5_000, 1_000), "as in Artemis' code"
    empty = "<network-check-list/><network-check-ping-command></network-check-ping-command>"
    assert not read(tmp_path, empty).network_check.custom()
    assert not warnings(read(tmp_path, empty))


@pytest.mark.parametrize(
    ("element", "text", "kept", "told"),
    [
        ("list", "localhost,10.0.0.1", "10.0.0.1", ["'localhost' is left out: a loopback address always answers"]),
        (
            "list",
            "127.1.2.3,::1",
            "",
            [
                "'127.1.2.3' is left out: a loopback address always answers",
                "'::1' is left out: a loopback address always answers",
                "no entry is left to check",
            ],
        ),
        (
            "list",
            "http://10.0.0.1",
            "http://10.0.0.1",
            ["'http://10.0.0.1' is neither an address nor a host name: it never answers"],
        ),
        (
            "URL-list",
            "www.example.org,http://x/",
            "http://x/",
            ["'www.example.org' is left out: it is not a URL such as http://10.0.0.1:8080/"],
        ),
        (
            "URL-list",
            "http://x:99999/,localhost:80",
            "",
            [
                "'http://x:99999/' is left out: it is not a URL such as http://10.0.0.1:8080/",
                "'localhost:80' is left out: it is not a URL such as http://10.0.0.1:8080/",
                "no entry is left to check",
            ],
        ),
        (
            "ping-command",
            "ping 10.0.0.1",
            "",
            ["does not get the address: add the second value, as in '%d %s' or '%2$s'"],
        ),
    ],
)
def test_what_artemis_leaves_out_is_left_out_with_a_warning(
    tmp_path: Path, element: str, text: str, kept: str, told: list[str]
) -> None:
    name = f"network-check-{element}"
    configuration = read(tmp_path, f"<{name}>{text}</{name}>")
    network = configuration.network_check
    assert network.addresses + network.urls == kept
    assert warnings(configuration) == [f"{element}: {line}" for line in told]


def test_an_interface_has_no_effect_with_a_command_of_the_operator(tmp_path: Path) -> None:
    configuration = read(
        tmp_path,
        "<network-check-NIC>eth0</network-check-NIC>"
        "<network-check-ping6-command>mine %2$s</network-check-ping6-command>",
    )
    told = "NIC: has no effect: the ping command is your own, name the interface there"
    assert warnings(configuration) == [told]


@pytest.mark.parametrize(
    ("element", "text", "told"),
    [
        ("period", "0", "0 is less than 1"),
        ("timeout", "-1", "-1 is less than 1"),
        ("timeout", "x", "'x' is not a number"),
        ("NIC", "-f", "'-f' is not a name of a network interface"),
        ("URL-list", "file:///etc/hosts", "'file:///etc/hosts': only http and https are supported"),
        ("ping-command", "ping %q", "'%q': %d, %s, %1$d, %2$s and %% are understood"),
        ("ping6-command", "ping %d %d", "'%d': the second value, the address, is not a number: %s"),
        ("list", ",".join(f"10.0.0.{n}" for n in range(101)), "101 entries, more than 100"),
    ],
)
def test_what_could_only_fail_later_is_refused(
    tmp_path: Path, element: str, text: str, told: str
) -> None:
    name = f"network-check-{element}"
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, f"<{name}>{text}</{name}>")
    assert str(raised.value) == f"{tmp_path / 'broker.xml'}:{LINE}: {name}: {told}"


def test_a_change_counts_after_a_restart(tmp_path: Path) -> None:
    before = read(tmp_path, "")
    after = read(tmp_path, "<network-check-list>10.0.0.1</network-check-list>")
    assert needs_restart(before, after) == ["network-check"]
