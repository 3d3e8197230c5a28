"""Findings about members: topology, addresses, settings, passwords."""

from __future__ import annotations

import time

from atalanta.survey.findings.diagnosis import diagnosed
from atalanta.survey.model.cluster import NOT_ADMITTED, Unreachable
from atalanta.survey.model.links import LinkView
from tests.survey.views import FORWARD, put, the, two_nodes


def test_all_is_well() -> None:
    assert diagnosed(two_nodes(), "u", "p") == []


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


def test_a_member_that_may_not_be_asked_has_a_remedy() -> None:
    found = two_nodes()
    found.unreachable.append(Unreachable("h9:1", NOT_ADMITTED, "id-c"))
    for node in found.nodes:
        node.members["id-c"] = "h9:1"
    finding = the(found, "not_agreed")
    assert finding.severity == "warning" and "nobody has agreed" in finding.text
    assert "h9:1" in finding.remedy


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


def test_a_question_that_a_node_refuses_is_no_reassurance() -> None:
    """A user without rights saw a healthy cluster, with a note."""
    found = two_nodes()
    found.nodes[0].unasked.append("alarms: user viewer lacks the permission manage")
    finding = the(found, "not_told")
    assert finding.severity == "warning" and "permission manage" in finding.remedy
    found = two_nodes()
    found.nodes[0].unsupported += ["alarms", "events"]
    finding = the(found, "not_supported")
    assert (finding.severity, finding.text) == ("note", "its release does not tell: alarms, events")


def test_clocks_that_differ() -> None:
    found = two_nodes()
    for node in found.nodes:
        node.clock_ms = node.asked_ms = 1_000_000
    assert diagnosed(found, "u", "p") == []
    found.nodes[0].clock_ms = 1_000_000 - 300_000
    finding = the(found, "clock_differs")
    assert (finding.node, finding.text) == ("a", "its clock is 5 min behind that of the other nodes")


def test_releases_that_differ_are_a_note() -> None:
    found = two_nodes()
    for node, version in zip(found.nodes, ("1.0", "1.1"), strict=True):
        node.ours, node.version = True, version
    assert the(found, "versions_differ").severity == "note"


def test_backups_of_other_pairs_do_not_listen() -> None:
    """Two pairs whose connectors name all four nodes."""
    found = two_nodes()
    a, b = found.nodes
    b.backups = {"id-b": "h4:1"}
    a.connections[0].failures = {"h4:1": "connection refused"}
    found.unreachable.append(Unreachable("h4:1", "connection refused"))
    assert diagnosed(found, "u", "p") == []
