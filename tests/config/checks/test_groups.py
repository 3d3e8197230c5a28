"""Groups by which no member is met are named at a start, with the line of the element."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.checks.groups import group_warnings

BROKER_XML = """<core><connectors><connector name="c">tcp://127.0.0.1:61616</connector></connectors>
<broadcast-groups>
<broadcast-group name="b">{group}{connector}</broadcast-group></broadcast-groups>
<discovery-groups><discovery-group name="d"><group-address>231.7.7.7</group-address><group-port>9876</group-port>
</discovery-group></discovery-groups></core>"""
CONNECTOR = "<connector-ref>c</connector-ref>"


def told(folder: Path, address: str, more: str = "", connector: str = CONNECTOR) -> list[str]:
    path = folder / "broker.xml"
    group = f"<group-address>{address}</group-address><group-port>9876</group-port>{more}"
    path.write_text(BROKER_XML.format(group=group, connector=connector))
    return [each.removeprefix(f"{path}:") for each in group_warnings(read_broker_xml(path))]


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("224.0.0.0", "224.0.0.0 is reserved, and never a group (239.0.0.0 to"),
        ("10.1.1.1", "10.1.1.1 is not a multicast address (239.0.0.0 to"),
        ("somewhere", "somewhere is not a multicast address"),
        ("ff00::", "ff00:: is reserved"),
    ],
)
def test_an_address_that_is_no_group(tmp_path: Path, address: str, text: str) -> None:
    (found,) = told(tmp_path, address)
    assert found.startswith("3: broadcast-group 'b': ") and text in found


def test_what_a_sender_is_bound_to(tmp_path: Path) -> None:
    local = "<local-bind-address>{}</local-bind-address>"
    assert told(tmp_path, "231.7.7.7", local.format("127.0.0.1")) == []
    (foreign,) = told(tmp_path, "231.7.7.7", local.format("172.16.9.3"))
    assert "this host does not have the address 172.16.9.3" in foreign
    port = "<local-bind-port>5432</local-bind-port>"
    (everywhere,) = told(tmp_path, "231.7.7.7", port)
    assert "local-bind-port without local-bind-address takes it on all interfaces" in everywhere
    assert told(tmp_path, "231.7.7.7", local.format("127.0.0.1") + port) == []


def test_a_group_that_announces_nothing(tmp_path: Path) -> None:
    (found,) = told(tmp_path, "231.7.7.7", connector="")
    assert found == "3: broadcast-group 'b' announces no connector (name one in <connector-ref>)"
