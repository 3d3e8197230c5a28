"""A link that finds members: it announces this node to one connector and listens to the topology there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.cluster.links.cluster_link import ClusterLink
from atalanta.wire.core.packets.base import Packet

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import Cluster


class Locator(ClusterLink):
    def __init__(self, cluster: Cluster, conn: int, now: int, key: str) -> None:
        super().__init__(cluster, conn, now)
        self.key = key

    def on_ready(self, now: int) -> None:
        self.waiting_since = 0
        self.cluster.scanner.opened(now, self.key)
        self.announce(True)

    def on_said(self, now: int, packet: Packet, channel: int) -> None:
        return None

    def on_lost(self, now: int, why: str) -> None:
        self.cluster.scanner.lost(now, self.key)
