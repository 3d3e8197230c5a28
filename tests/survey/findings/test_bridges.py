"""Findings about core bridges and networks that do not forward."""

from __future__ import annotations

from atalanta.survey.findings.bridges import forwarding_findings
from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.links import BridgeView, NetworkView


def told(node: NodeView) -> list[tuple[str, str, str]]:
    return [(each.severity, each.code, each.text) for each in forwarding_findings(LiveCluster([node]))]


def test_bridges() -> None:
    node = NodeView("h:1", "id", "a")
    bridge = BridgeView("out", "orders", connected=True, to="b:61616", waiting=0)
    node.bridges.append(bridge)
    assert told(node) == []
    bridge.connected, bridge.why, bridge.waiting = False, "connection refused", 7
    assert told(node) == [(
        "error", "bridge_not_connected",
        "core bridge out from queue orders to b:61616 has no connection: connection refused; 7 messages wait in orders",
    )]  # fmt: skip
    bridge.connected, bridge.why = True, "address inbox is full"
    assert told(node)[0][:2] == ("error", "bridge_refused")
    bridge.started = False
    assert told(node)[0][:2] == ("warning", "bridge_stopped")


def test_a_bridge_of_a_real_artemis_that_does_not_tell() -> None:
    """Artemis 2.31 and earlier do not say whether a bridge is connected."""
    node = NodeView("h:1", "id", "a", bridges=[BridgeView("out", "orders", connected=None)])
    assert told(node) == []


def test_networks() -> None:
    node = NodeView("h:1", "id", "a")
    node.networks.append(NetworkView("NC", "tcp://c:61616", "classic", True, sent=3))
    assert told(node) == []
    node.networks.append(NetworkView("NC", "tcp://d:61616", "", False, why="connection refused"))
    assert told(node) == [(
        "error", "network_not_connected",
        "network connector NC has no connection to tcp://d:61616: connection refused",
    )]  # fmt: skip
