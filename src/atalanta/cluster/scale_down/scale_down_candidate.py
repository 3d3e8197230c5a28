"""Who may take over from a node that leaves."""

from __future__ import annotations

from atalanta.cluster.discovery.discovery import DiscoveryListener
from atalanta.wire.core.transport import TransportConfiguration


class Candidate:
    """`node_id` is empty where only a connector is known."""

    def __init__(self, node_id: str, transport: TransportConfiguration) -> None:
        self.node_id = node_id
        self.transport = transport


class Heard(DiscoveryListener):
    """Nodes in the discovery group of `<scale-down>`."""

    def __init__(self) -> None:
        self.nodes: dict[str, TransportConfiguration] = {}

    def discovered(self, now: int, node_id: str, connector: TransportConfiguration) -> None:
        self.nodes[node_id] = connector

    def undiscovered(self, now: int, node_id: str) -> None:
        self.nodes.pop(node_id, None)


def place(candidate: Candidate) -> str:
    return f"{candidate.transport.host}:{candidate.transport.port}"
