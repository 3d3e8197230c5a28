"""Nodes heard in a discovery group, as the cluster connection that looks for members takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.discovery.discovery import DiscoveryListener

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import Cluster
    from atalanta.wire.core.transport import TransportConfiguration

DISCOVERED: Final = "discovered/"


class DiscoveredMembers(DiscoveryListener):
    """A locator to each of them, for as long as it is heard or connected; only news count, not every datagram."""

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
