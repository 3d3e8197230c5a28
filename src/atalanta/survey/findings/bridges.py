"""Findings about core bridges and networks of brokers that do not forward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from atalanta.survey.findings.cluster_finding import ERROR, WARNING, ClusterFinding
from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.links import BridgeView, NetworkView
from atalanta.survey.texts import messages

TARGET: Final = "start the target, or correct its connector, user and password"


def forwarding_findings(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    for node in cluster.nodes:
        for bridge in node.bridges:
            yield from bridge_findings(node, bridge)
        for network in node.networks:
            yield from network_findings(node, network)


def bridge_findings(node: NodeView, bridge: BridgeView) -> Iterator[ClusterFinding]:
    """Finds a core bridge that is stopped, that has no connection, or whose messages are refused."""
    facts: dict[str, object] = {"bridge": bridge.name, "queue": bridge.queue, "to": bridge.to, "why": bridge.why}
    wait = "" if not bridge.waiting else f"; {messages(bridge.waiting)} wait in {bridge.queue}"
    why = f": {bridge.why}" if bridge.why else ""
    if not bridge.started:
        text = f"core bridge {bridge.name} from queue {bridge.queue} is stopped{why}{wait}"
        remedy = f"management operation startBridge of the broker with {bridge.name}"
        yield ClusterFinding(WARNING, "bridge_stopped", node.label, text, remedy, facts)
    elif bridge.connected is False:
        to = f" to {bridge.to}" if bridge.to else ""
        text = f"core bridge {bridge.name} from queue {bridge.queue}{to} has no connection{why}{wait}"
        yield ClusterFinding(ERROR, "bridge_not_connected", node.label, text, TARGET, facts)
    elif bridge.why:
        text = f"core bridge {bridge.name} from queue {bridge.queue} to {bridge.to} does not forward{why}{wait}"
        remedy = "mend it at the target; the messages stay in the queue until then"
        yield ClusterFinding(ERROR, "bridge_refused", node.label, text, remedy, facts)


def network_findings(node: NodeView, network: NetworkView) -> Iterator[ClusterFinding]:
    """Finds a bridge of a network connector without a connection."""
    if network.connected:
        return
    why = f": {network.why}" if network.why else ""
    text = f"network connector {network.name} has no connection to {network.address}{why}"
    remedy = "start the other broker, or correct the uri, userName and password of the <networkConnector>"
    facts: dict[str, object] = {"network": network.name, "to": network.address, "why": network.why}
    yield ClusterFinding(ERROR, "network_not_connected", node.label, text, remedy, facts)
