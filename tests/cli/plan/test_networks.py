"""`atalanta plan` draws networks of brokers: which file each uri leads to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from typer.testing import CliRunner

from atalanta.cli.application import application
from tests.config.activemq.classic_files import classic_file, network_file


def planned(*arguments: object) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(application, ["plan", "--json", *map(str, arguments)])
    return done.exit_code, json.loads(done.stdout)


def bridges(plan: dict[str, Any]) -> list[tuple[str, str, str]]:
    return sorted((link["source"], link["target"], link["found"]) for link in plan["links"] if link["network"])


def texts(plan: dict[str, Any], level: str) -> str:
    return "\n".join(each["text"] for each in plan["findings"] if each["level"] == level)


def test_a_network_of_three(tmp_path: Path) -> None:
    drawing = tmp_path / "net.svg"
    files = [
        network_file(tmp_path, "a", 61616, "static:(tcp://b.example:61617)", 'duplex="true" networkTTL="3"'),
        network_file(tmp_path, "b", 61617, "static:(tcp://localhost:61618)"),
        network_file(tmp_path, "c", 61618, "static:(tcp://a:61616,tcp://far:61999)"),
    ]
    status, plan = planned(*files, "--svg", drawing)
    assert status == 0
    assert bridges(plan) == [
        ("a", "b", "static:, TTL 3, duplex"),
        ("b", "a", "static:, TTL 3, duplex"),
        ("b", "c", "static:, TTL 1"),
        ("c", "a", "static:, TTL 1"),
    ]
    assert plan["islands"] == [["a", "b", "c"]]
    assert plan["without"] == {"a": [["b", "c"]], "b": [["a", "c"]], "c": [["a", "b"]]}
    assert "c: network 'to-next' leads to far:61999, which is in none of these files" in texts(plan, "info")
    picture = drawing.read_text()
    ElementTree.fromstring(picture)
    assert picture.count("stroke-dasharray") == 4
    assert "3 nodes, 4 links · dashed: network to-next" in picture


def test_brokers_on_one_port_are_known_by_their_names(tmp_path: Path) -> None:
    files = [
        network_file(tmp_path, "a", 61616, "static:(tcp://b:61616)"),
        network_file(tmp_path, "b", 61616, "masterslave:(tcp://c:61616,tcp://a:61616)"),
        network_file(tmp_path, "c", 61616, "static:(tcp://10.0.0.9:61616)"),
    ]
    _, plan = planned(*files)
    assert bridges(plan) == [
        ("a", "b", "static:, TTL 1"),
        ("b", "a", "masterslave:, TTL 1"),
        ("b", "c", "masterslave:, TTL 1"),
    ]
    assert "c: network 'to-next' leads to 10.0.0.9:61616" in texts(plan, "info")


def test_a_chain_needs_its_middle(tmp_path: Path) -> None:
    files = [
        network_file(tmp_path, "a", 61616, "static:(tcp://b:61617)"),
        network_file(tmp_path, "b", 61617, "static:(tcp://c:61618)"),
        network_file(tmp_path, "c", 61618, "static:(tcp://elsewhere:1)"),
    ]
    _, plan = planned(*files)
    assert "without b at their start the others are parted: a | c" in texts(plan, "warning")


def test_brokers_that_find_each_other_by_multicast(tmp_path: Path) -> None:
    def file(name: str, group: str) -> Path:
        inside = (
            '<networkConnectors><networkConnector uri="multicast://north"/></networkConnectors>'
            f'<transportConnectors><transportConnector name="o" uri="tcp://127.0.0.1:0"'
            f' discoveryUri="multicast://{group}"/></transportConnectors>'
        )
        return classic_file(tmp_path / name, inside, f'brokerName="{name}" persistent="false"')

    _, plan = planned(file("a", "north"), file("b", "north"), file("c", "south"))
    assert bridges(plan) == [
        ("a", "b", "multicast:, TTL 1"),
        ("b", "a", "multicast:, TTL 1"),
        ("c", "a", "multicast:, TTL 1"),
        ("c", "b", "multicast:, TTL 1"),
    ]
