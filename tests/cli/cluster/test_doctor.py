"""`atalanta doctor` against nodes of ours, and its table."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from atalanta.cli.cluster.diagnose import show
from atalanta.client import Message, Xid
from atalanta.client.blocking import connect
from atalanta.survey.findings.diagnosis import diagnosed
from tests.cli.cluster_nodes import Node, cluster
from tests.cli.messages.consuming_client import consuming
from tests.survey.views import stranding, two_nodes


def test_a_finding_that_several_nodes_have_is_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    found = two_nodes()
    for node in found.nodes:
        node.security_enabled = False
    show(found, diagnosed(found, "u", "p"))
    shown = capsys.readouterr().out
    assert "│ a, b" in shown and "2 nodes asked: 1 warning" in shown


def test_the_table_names_node_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    found = stranding()
    show(found, diagnosed(found, "u", "p"))
    shown = capsys.readouterr().out
    assert '→ <address-setting match="orders">' in shown
    assert shown.splitlines()[-1] == "2 nodes asked: 1 error"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    with cluster(tmp_path_factory.mktemp("cluster"), 3) as found:
        yield found


def report(node: Node, *words: str, status: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        node.cli("doctor", node.at, "--wait", "0", *words, "--json", status=status)
    )
    return found


def until_known(node: Node, count: int) -> None:
    """Until a look at the cluster shows that many nodes, all linked."""
    deadline = time.monotonic() + 30
    while True:
        found = report(node, status=1)  # security is off
        codes = [each["code"] for each in found["findings"]]
        if len(found["nodes"]) == count and "one_way_link" not in codes:
            if "topology_differs" not in codes:
                return
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


@pytest.mark.process
def test_a_stranded_message_in_a_cluster_of_three(nodes: list[Node]) -> None:
    a, b, _ = nodes
    until_known(a, 3)
    a.cli("produce", "orders", "--text", "lonely")
    with consuming(b.at, "orders"):
        deadline = time.monotonic() + 20
        while True:
            found = report(b, status=1)
            stranded = [each for each in found["findings"] if each["code"] == "stranded"]
            if stranded:
                break
            assert time.monotonic() < deadline, found
    (finding,) = stranded
    assert (finding["node"], finding["queue"], finding["messages"]) == ("a", "orders", 1)
    assert finding["consumers_at"] == ["b"] and finding["oldest_ms"] >= 0
    assert "redistribution-delay" in finding["remedy"]
    assert {node["name"] for node in found["nodes"]} == {"a", "b", "c"}
    assert all(node["atalanta"] for node in found["nodes"])


@pytest.mark.process
def test_default_passwords_and_a_wrong_address(tmp_path: Path) -> None:
    with cluster(tmp_path, 2, login="", security=True, advertised={1: "127.0.0.1:1"}) as (a, b):
        for node in (a, b):
            node.cli.environment |= {"ATALANTA_USER": "admin", "ATALANTA_PASSWORD": "admin"}
        deadline = time.monotonic() + 30
        while True:
            found = report(b, status=1)
            codes = {each["code"]: each for each in found["findings"]}
            if "wrong_address" in codes and codes["wrong_address"]["node"] == "b":
                break
            assert time.monotonic() < deadline, found
        assert "127.0.0.1:1" in codes["wrong_address"]["text"]
        assert codes["default_cluster_password"]["severity"] == "error"
        assert codes["well_known_password"]
        table = a.cli("doctor", a.at, "--wait", "0", status=1)
        assert "<connector name" in table
        a.cli("doctor", a.at, "--user", "admin", "--password", "wrong", status=77)


@pytest.mark.process
def test_a_branch_that_nobody_ends(tmp_path: Path) -> None:
    with cluster(tmp_path, 1, login="") as (node,):
        with connect(f"tcp://{node.at}") as client:
            for name in (b"first", b"second"):
                with client.xa_resource.branch(Xid(1, name, b"global")) as branch:
                    branch.send("orders", Message(text="one"))
                    branch.prepare()
            found = report(node, status=1)
            (finding,) = [one for one in found["findings"] if one["code"] == "prepared_transactions"]
            assert finding["text"].startswith("2 prepared XA transactions wait")
            (oldest, _) = finding["transactions"]
            assert client.management().call("broker", "rollbackPreparedTransaction", oldest)
            client.xa_resource.forget(Xid(1, b"first", b"global"))
            assert [xid.branch_qualifier for xid in client.xa_resource.recover()] == [b"second"]


@pytest.mark.process
def test_a_node_whose_connectors_fail(tmp_path: Path) -> None:
    """The doctor names the connector, and asks for the default password without a refused login."""
    with cluster(tmp_path, 2, security=True) as (a, b):
        a.cli.environment |= {"ATALANTA_USER": "admin", "ATALANTA_PASSWORD": "admin"}
        b.broker.end(signal.SIGKILL)
        xml = b.broker.broker_xml
        xml.write_text(xml.read_text().replace("<cluster-password>secret", "<cluster-password>other"))
        deadline = time.monotonic() + 30
        while True:
            found = report(a, status=1)
            codes = {each["code"]: each for each in found["findings"]}
            if "member_away" in codes or "connector_failed" in codes:
                break
            assert time.monotonic() < deadline, found
        assert "login_refused" not in a.broker.log()
        b.broker.start()
        b.broker.wait_ready()
        while True:
            found = report(b, "--user", "admin", "--password", "admin", status=1)
            codes = {each["code"]: each for each in found["findings"]}
            if "connector_failed" in codes and "password" in codes["connector_failed"]["text"]:
                break
            assert time.monotonic() < deadline, found
        assert "topology_differs" not in codes
        assert a.at in codes["connector_failed"]["text"]
        assert "cluster-password" in codes["connector_failed"]["remedy"]
        refused = [line for line in a.broker.log().splitlines() if "cluster_login_refused" in line]
        assert len(refused) == 1 and "remote=127.0.0.1:" in refused[0]


@pytest.mark.process
def test_errors_are_one_line(nodes: list[Node]) -> None:
    nodes[0].cli("doctor", "127.0.0.1:1", status=69)
    assert "connection refused" in nodes[0].cli.errors
    assert len(nodes[0].cli.errors.splitlines()) == 1


@pytest.mark.process
def test_two_nodes_of_one_id_are_named(tmp_path: Path) -> None:
    """One data folder was copied; one node that is reached in two ways is one."""
    with cluster(tmp_path / "first", 1) as (a,):
        (id_file,) = (tmp_path / "first").rglob("node-id")
        copy = tmp_path / "second" / id_file.relative_to(tmp_path / "first")
        copy.parent.mkdir(parents=True)
        copy.write_bytes(id_file.read_bytes())
        with cluster(tmp_path / "second", 1) as (b,):
            found = report(a, f"localhost:{a.port}", b.at, status=1)
    (finding,) = [each for each in found["findings"] if each["code"] == "shared_node_id"]
    assert (finding["severity"], finding["other"]) == ("error", b.at)
    assert f"at {b.at}, has the same node id {finding['member']}" in finding["text"]
    assert [each["node_id"] for each in found["nodes"]] == [finding["member"]]
