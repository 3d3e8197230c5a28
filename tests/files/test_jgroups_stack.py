"""JGroups stack files: where the discovery protocol of each meets."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.files.jgroups_stack import StackError, parse_stack, read_stack
from atalanta.wire.jgroups_discovery import DNS, FOLDER, HOSTS, MPING, MULTICAST, JgroupsStack

TCP = '<TCP bind_addr="127.0.0.1" bind_port="7900" port_range="5"/>'


def stack(protocols: str, **values: str) -> JgroupsStack:
    text = f'<config xmlns="urn:org:jgroups">\n{protocols}\n<MERGE3/><FD_SOCK/><pbcast.NAKACK2/></config>'
    return parse_stack(text.encode(), "channel", values)


def test_tcpping() -> None:
    found = stack(f'{TCP}<TCPPING initial_hosts="a[7800], b.c[7801]" port_range="3"/>')
    assert (found.kind, found.protocol, found.channel) == (HOSTS, "TCPPING", "channel")
    assert found.hosts == [("a", 7800), ("b.c", 7801)] and found.host_port_range == 3
    assert (found.interface, found.port, found.port_range) == ("127.0.0.1", 7900, 5)
    assert found.describe() == "hosts a:7800 b.c:7801"
    assert found.targets([("a", 7800)]) == [("a", port) for port in (7800, 7801, 7802, 7803)]


def test_defaults_are_those_of_jgroups() -> None:
    found = stack('<TCP/><TCPPING initial_hosts="a[7800]"/>')
    assert (found.interface, found.port, found.port_range, found.host_port_range) == (
        "",
        7800,
        10,
        1,
    )
    found = stack("<TCP/><MPING/>")
    assert (found.kind, found.address, found.group_port, found.port) == (MPING, "230.5.6.7", 7555, 7800)
    found = stack("<UDP/><MPING/>")
    assert (found.kind, found.address, found.port) == (MULTICAST, "228.8.8.8", 7600)
    assert (found.group_address, found.group_port) == ("230.5.6.7", 7555), "earlier releases met there"
    found = stack("<UDP/><PING/>")
    assert (found.kind, found.address, found.port, found.protocol) == (
        MULTICAST,
        "228.8.8.8",
        7600,
        "UDP",
    )


def test_a_namespace_may_be_any_text() -> None:
    text = "<config xmlns='${a:b}'><TCP xmlns='p'/><TCPPING initial_hosts='a[7800]'/></config>"
    assert parse_stack(text.encode(), "channel", {}).hosts == [("a", 7800)]


def test_multicast_groups() -> None:
    found = stack('<UDP mcast_addr="231.1.1.1" mcast_port="5" bind_addr="LOOPBACK"/><PING/>')
    assert (found.address, found.port, found.interface) == ("231.1.1.1", 5, "127.0.0.1")
    found = stack(
        '<TCP bind_addr="SITE_LOCAL"/><MPING mcast_addr="231.1.1.2" mcast_port="6" bind_addr="127.0.0.3"/>'
    )
    assert (found.address, found.group_port, found.group_interface) == ("231.1.1.2", 6, "127.0.0.3")
    found = stack('<TCP tls.enabled="true"/><MPING mcast_addr="231.1.1.2" mcast_port="6"/>')
    assert (found.kind, found.address, found.port) == (MULTICAST, "231.1.1.2", 6), "nothing is said to members"


def test_file_ping() -> None:
    found = stack(f'{TCP}<FILE_PING location="/shared/nodes"/>')
    assert (found.kind, found.folder) == (FOLDER, "/shared/nodes")


@pytest.mark.parametrize("name", ["DNS_PING", "dns.DNS_PING", "org.jgroups.protocols.dns.DNS_PING"])
def test_dns_ping(name: str) -> None:
    found = stack(f'{TCP}<{name} dns_query="a.svc, b.svc"/>')
    assert (found.kind, found.names, found.srv, found.port) == (
        DNS,
        ["a.svc", "b.svc"],
        False,
        7900,
    )
    found = stack(f'{TCP}<{name} dns_query="_ping._tcp.a" dns_record_type="SRV"/>')
    assert found.srv


def test_placeholders() -> None:
    text = '<TCP bind_port="${port:7801}"/><TCPPING initial_hosts="${one,two:a[1]}"/>'
    assert stack(text).hosts == [("a", 1)]
    assert stack(text).port == 7801
    assert stack(text, two="b[2]", port="7").hosts == [("b", 2)]
    assert stack(text, one="c[3]", two="b[2]").hosts == [("c", 3)]


@pytest.mark.parametrize(
    ("protocols", "line", "says"),
    [
        (f"{TCP}\n<TCPPING/>", 3, "initial_hosts='' is not a list"),
        (f'{TCP}\n<TCPPING initial_hosts="a:7800"/>', 3, "is not a list such as"),
        (f'{TCP}\n<TCPPING initial_hosts="a[99999]"/>', 3, "is not a list such as"),
        (f'{TCP}\n<TCPPING initial_hosts="${{hosts}}"/>', 3, r"'\$\{hosts\}' has no value"),
        ('<TCP bind_port="x"/>\n<TCPPING initial_hosts="a[1]"/>', 2, "bind_port='x' is none of"),
        (f"{TCP}\n\n<KUBE_PING/>", 4, "<KUBE_PING> is not supported for discovery"),
        (f"{TCP}\n<PING/>", 3, "multicast group of <UDP>"),
        (f"{TCP}\n<FILE_PING/>", 3, "needs location"),
        (f"{TCP}\n<DNS_PING/>", 3, "needs dns_query"),
        (f'{TCP}\n<DNS_PING dns_query="a" dns_record_type="TXT"/>', 3, "neither A nor SRV"),
        (TCP, 2, "no discovery protocol"),
        ("<TCP", 2, "not well-formed XML"),
    ],
)
def test_what_is_wrong_has_its_line(protocols: str, line: int, says: str) -> None:
    with pytest.raises(StackError, match=says) as caught:
        stack(protocols)
    assert abs(caught.value.line - line) <= (1 if "well-formed" in says else 0)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="cannot be read"):
        read_stack(tmp_path / "missing.xml", "c", {})
    path = tmp_path / "x.xml"
    path.write_text("<configuration/>")
    with pytest.raises(StackError, match="root element is <config>"):
        read_stack(path, "c", {})
    path.write_text('<!DOCTYPE config [<!ENTITY a "b">]><config/>')
    with pytest.raises(StackError, match="DOCTYPE"):
        read_stack(path, "c", {})
    path.write_bytes(b" " * (1 << 21))
    with pytest.raises(StackError, match="larger than"):
        read_stack(path, "c", {})
