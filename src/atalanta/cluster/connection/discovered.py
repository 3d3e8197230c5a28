"""Nodes of a discovery group as connectors of a cluster connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.discovery.discovery import DiscoveryListener

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import Cluster
    from atalanta.wire.core.transport import TransportConfiguration

DISCOVERED: Final = "discovered/"


class DiscoveredMembers(DiscoveryListener):
    """Keeps a locator to each discovered node while it is announced or connected.

    An announcement without change has no effect.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.known: dict[str, TransportConfiguration] = {}

    def discovered(self, now: int, node_id: str, connector: TransportConfiguration) -> None:
        if self.known.get(node_id) != connector:
            self.known[node_id] = connector
            self.cluster.find(now, DISCOVERED + node_id, connector)

    def undiscovered(self, now: int, node_id: str) -> None:
        self.known.pop(node_id, None)
        self.cluster.forget(DISCOVERED + node_id)
