"""`atalanta doctor` against nodes of ours, and its judgement on views made by hand."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from atalanta.cli.cluster.diagnose import diagnosed, show
from atalanta.cli.cluster.findings import ClusterFinding
from atalanta.cli.cluster.survey import url_of
from atalanta.cli.cluster.view import (
    ClusterConnectionView,
    ConsumerView,
    LinkView,
    LiveCluster,
    NodeView,
    QueueView,
    Unreachable,
)
from atalanta.cli.output.duration import duration_text
from atalanta.client import Message, Xid
from atalanta.client.blocking import connect
from tests.cli.cluster_nodes import Node, cluster
from tests.cli.messages.consuming_client import consuming

FORWARD = "$.artemis.internal.sf.test."


# -- judgement ------------------------------------------------------------------------------------
def two_nodes() -> LiveCluster:
    """a and b, linked both ways, in order."""
    members = {"id-a": "h1:61616", "id-b": "h2:61616"}
    nodes = []
    for name, host, other in (("a", "h1", "id-b"), ("b", "h2", "id-a")):
        connection = ClusterConnectionView("test", load_balancing="ON_DEMAND")
        connection.static_connectors = ["other"]
        connection.links[other] = LinkView(other, members[other])
        node = NodeView(f"{host}:61616", f"id-{name}", name, members=dict(members))
        node.connections.append(connection)
        nodes.append(node)
    return LiveCluster(nodes)


def put(node: NodeView, name: str, **values: Any) -> QueueView:
    queue = QueueView(name, values.pop("address", name), **values)
    node.queues[name] = queue
    return queue


def stranding() -> LiveCluster:
    """Five orders at a, a consumer at b."""
    found = two_nodes()
    put(found.nodes[0], "orders", messages=5, oldest_ms=180_000)
    put(found.nodes[1], "orders", consumers=1)
    found.nodes[1].consumers.append(ConsumerView("0", "s", "orders"))
    return found


def the(found: LiveCluster, code: str, user: str = "u", password: str = "p") -> ClusterFinding:
    (finding,) = [each for each in diagnosed(found, user, password) if each.code == code]
    return finding


def test_all_is_well() -> None:
    assert diagnosed(two_nodes(), "u", "p") == []


def test_a_stranded_message_where_since_when_and_what_keeps_it() -> None:
    found = the(stranding(), "stranded")
    assert (found.severity, found.node) == ("error", "a")
    assert "5 messages in orders for 3 min" in found.text and "b (1 consumer)" in found.text
    assert "redistribution-delay is -1" in found.text
    assert found.remedy == (
        '<address-setting match="orders"><redistribution-delay>0</redistribution-delay></address-setting>'
    )


def _mode(text: str) -> Callable[[LiveCluster], object]:
    return lambda found: setattr(found.nodes[0].connections[0], "load_balancing", text)


@pytest.mark.parametrize(
    ("change", "why", "remedy"),
    [
        (
            _mode("OFF"),
            "message-load-balancing is OFF",
            "<message-load-balancing>OFF_WITH_REDISTRIBUTION</message-load-balancing>",
        ),
        (
            _mode("STRICT"),
            "message-load-balancing is STRICT",
            "<message-load-balancing>ON_DEMAND</message-load-balancing>",
        ),
        (
            lambda found: setattr(found.nodes[0].connections[0], "address", "jms"),
            "address 'jms' does not cover orders",
            "<address>jms,orders</address>",
        ),
        (
            lambda found: setattr(found.nodes[0].connections[0], "address", "!ord"),
            "does not cover",
            "<address></address>",
        ),
        (
            lambda found: found.nodes[0].connections[0].links.clear(),
            "no link from here to b",
            "<static-connectors>",
        ),
        (
            lambda found: found.nodes[0].redistribution_delay_ms.update(orders=0),
            "messages of a group are never redistributed",
            "<grouping-handler",
        ),
        (lambda found: found.nodes[0].connections.clear(), "no cluster connection", "<cluster"),
    ],
)
def test_a_finding_names_its_reason_and_remedy(change: Callable[[LiveCluster], object], why: str, remedy: str) -> None:
    found = stranding()
    change(found)
    finding = the(found, "stranded")
    assert why in finding.text and finding.remedy.startswith(remedy)


def test_two_hops_away() -> None:
    found = stranding()
    a, b = found.nodes
    middle = NodeView("h3:1", "id-c", "c")
    middle.connections.append(
        ClusterConnectionView("test", links={"id-b": LinkView("id-b"), "id-a": LinkView("id-a")})
    )
    found.nodes.append(middle)
    a.connections[0].links = {"id-c": LinkView("id-c")}
    b.connections[0].links = {"id-c": LinkView("id-c")}
    assert the(found, "stranded").remedy == "<max-hops>2</max-hops>"


def test_not_stranded() -> None:
    """With a consumer of its own, without one anywhere, while it empties, or when only a selector might take it."""
    found = stranding()
    found.nodes[0].consumers.append(ConsumerView("0", "s", "orders"))
    assert not [each for each in diagnosed(found, "u", "p") if each.code == "stranded"]
    found = stranding()
    found.nodes[1].consumers.clear()
    assert not [each for each in diagnosed(found, "u", "p") if each.code == "stranded"]
    found = stranding()
    put(found.nodes[0], "orders", messages=5, later=QueueView("orders", "orders", acknowledged=3))
    assert not [each for each in diagnosed(found, "u", "p") if each.code == "stranded"]
    found = stranding()
    found.nodes[1].consumers[0].filter = "colour = 'red'"
    assert the(found, "stranded").severity == "note"


def test_parked_for_a_member_that_is_away() -> None:
    found = stranding()
    del found.nodes[1]
    a = found.nodes[0]
    put(a, "orders", consumers=1)
    put(a, FORWARD + "id-b", messages=7, internal=True, oldest_ms=90_000, addresses={"orders": 7})
    a.connections[0].links["id-b"] = LinkView("id-b", linked=False)
    finding = the(found, "parked")
    assert finding.severity == "error"
    assert "7 messages parked for h2:61616, which is away; the oldest for 90 s" in finding.text
    assert "a (orders)" in finding.text and "Artemis keeps them" in finding.remedy
    a.ours = True
    a.connections[0].links["id-b"].may_have_arrived = 2
    finding = the(found, "parked")
    assert "2 of them may have arrived" in finding.text and "atalanta.toml" in finding.remedy


def test_a_forward_queue_that_grows() -> None:
    found = two_nodes()
    queue = put(found.nodes[0], FORWARD + "id-b", messages=100, internal=True, addresses={"x": 100})
    queue.later = QueueView(queue.name, queue.name, messages=900)
    found.seconds = 3
    finding = the(found, "forwarding_falls_behind")
    assert "900 messages wait for b, 800 more than 3 s ago" in finding.text
    assert '<address-setting match="x"><address-full-policy>PAGE<' in finding.remedy


def test_consumers_with_credit_that_get_nothing() -> None:
    for values, why, remedy in (
        ({"paused": True}, "the queue is paused", "atalanta queue resume orders"),
        ({"exclusive": True}, "exclusive", '<queue name="orders" exclusive="false"/>'),
        (
            {"consumers_before_dispatch": 5},
            "waits for 5 consumers",
            'consumers-before-dispatch="2"',
        ),
        ({"enabled": False}, "disabled", 'enabled="true"'),
        ({}, "groups of other consumers", "group-rebalance"),
    ):
        found = two_nodes()
        found.seconds = 2
        queue = put(found.nodes[0], "orders", messages=4, consumers=2, **values)
        queue.later = QueueView("orders", "orders", messages=4)
        for number in ("0", "1"):
            consumer = ConsumerView(number, "s", "orders", delivered=3)
            consumer.later = ConsumerView(number, "s", "orders", delivered=3)
            found.nodes[0].consumers.append(consumer)
        # Without credit: not hungry.
        found.nodes[0].consumers[0].ready = False
        finding = the(found, "consumers_starve")
        assert "1 of 2 consumers of orders" in finding.text and why in finding.text
        assert remedy in finding.remedy


def test_prepared_transactions_whose_manager_is_gone() -> None:
    found = two_nodes()
    found.nodes[0].prepared = ["AAA", "BBB"]
    finding = the(found, "prepared_transactions")
    assert finding.text.startswith("2 prepared XA transactions wait") and "with AAA" in finding.remedy


def test_topologies_that_differ_and_links_one_way() -> None:
    found = two_nodes()
    del found.nodes[0].members["id-b"]
    assert the(found, "topology_differs").node == "a"
    found = two_nodes()
    found.nodes[1].connections[0].links.clear()
    finding = the(found, "one_way_link")
    assert (finding.severity, finding.node) == ("warning", "b")
    found.nodes[1].connections[0].static_connectors = []  # the end of a chain, perhaps
    assert the(found, "one_way_link").severity == "note"


def test_members_that_are_away() -> None:
    found = two_nodes()
    a = found.nodes[0]
    since = int(time.time() * 1_000) - 300_000
    a.connections[0].links["id-c"] = LinkView("id-c", "h3:1", False, since)
    finding = the(found, "member_away")
    assert (finding.severity, finding.node) == ("warning", "h3:1")
    assert finding.text == "is away for 5 min: no link from a"
    del a.connections[0].links["id-c"]
    put(a, FORWARD + "id-c", internal=True)  # it left in good order, perhaps for good
    assert the(found, "member_away").severity == "note"


def test_a_finding_that_several_nodes_have_is_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    found = two_nodes()
    for node in found.nodes:
        node.security_enabled = False
    show(found, diagnosed(found, "u", "p"))
    shown = capsys.readouterr().out
    assert "│ a, b" in shown and "2 nodes asked: 1 warning" in shown


def test_advertised_addresses_that_lead_nowhere() -> None:
    for place, why in (
        ("0.0.0.0:61616", "cannot be connected to"),
        ("127.0.0.1:61616", "only its own host can reach"),
    ):
        found = two_nodes()
        for node in found.nodes:
            node.members["id-b"] = place
        finding = the(found, "wrong_address")
        assert finding.node == "b" and why in finding.text
        assert finding.remedy == '<connector name="…">tcp://its-host:61616</connector>'
    found = two_nodes()
    found.unreachable.append(Unreachable("h2:61616", "node id-a answers there", "id-b", "id-a"))
    assert "node a answers there" in the(found, "wrong_address").text
    found = two_nodes()
    found.unreachable.append(Unreachable("h9:1", "connection refused", "id-c"))
    found.nodes[0].members["id-c"] = "h9:1"
    found.nodes[1].members["id-c"] = "h9:1"
    assert "no member has a link to it" in the(found, "unreachable").text


def test_settings_that_should_be_alike() -> None:
    found = two_nodes()
    found.nodes.append(two_nodes().nodes[1])
    found.nodes[0].connections[0].load_balancing = "OFF"
    finding = the(found, "settings_differ")
    assert finding.node == "a" and "'OFF', elsewhere 'ON_DEMAND'" in finding.text
    found = two_nodes()
    found.nodes[0].redistribution_delay_ms["x"] = -1
    found.nodes[1].redistribution_delay_ms["x"] = 500
    assert (
        "redistribution-delay of x is -1 here, 500 elsewhere" in the(found, "settings_differ").text
    )


def test_passwords() -> None:
    found = two_nodes()
    found.nodes[0].default_cluster_password = True
    assert the(found, "default_cluster_password").severity == "error"
    found = two_nodes()
    del found.nodes[1]
    assert "very common password" in the(found, "well_known_password", "admin", "admin").text
    found.nodes[0].security_enabled = False
    assert the(found, "security_off").remedy == "<security-enabled>true</security-enabled>"


def test_the_table_names_node_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    found = stranding()
    show(found, diagnosed(found, "u", "p"))
    shown = capsys.readouterr().out
    assert '→ <address-setting match="orders">' in shown
    assert shown.splitlines()[-1] == "2 nodes asked: 1 error"


def test_names_and_times() -> None:
    assert url_of("host") == ("tcp://host:61616", "")
    assert url_of("host:1") == ("tcp://host:1", "")
    assert url_of("tcp://host?sslEnabled=true") == ("tcp://host:61616", "sslEnabled=true")
    assert url_of("tcp://[::1]:5") == ("tcp://[::1]:5", "")
    assert url_of("tcp://[::1]") == ("tcp://[::1]:61616", "")
    assert [
        duration_text(ms) for ms in (None, 5_000, 119_000, 120_000, 7_200_000, 200_000_000)
    ] == [
        "an unknown time",
        "5 s",
        "119 s",
        "2 min",
        "2 h",
        "2 days",
    ]


# -- real nodes -----------------------------------------------------------------------------------
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


def test_a_single_node_that_found_nobody() -> None:
    found = two_nodes()
    del found.nodes[1:]
    (node,) = found.nodes
    node.ours, node.members = True, {node.node_id: node.at}
    node.connections[0].links.clear()
    assert diagnosed(found, "u", "p") == []  # its only connector is its own
    node.connections[0].failures["h2:61616"] = "connection refused"
    finding = the(found, "connector_failed")
    assert finding.severity == "warning" and "h2:61616: connection refused" in finding.text
    node.connections[0].failures.clear()
    node.connections[0].discovery_group = "group"
    assert the(found, "no_member").severity == "warning"


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
