"""Broadcast and discovery groups: nodes announce their connectors by UDP multicast and listen for others (A1.d)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.base import ProtocolError
from atalanta.wire.core.datagram import Announcement, decode_announcement, encode_announcement

if TYPE_CHECKING:
    from atalanta.cluster.cluster import Cluster

BROADCAST: Final = "cluster.broadcast."
FOUND_MAX: Final = 10_000


class Discovery:
    """`found` is the last time (ns) each node id was heard in the discovery group.

    One connection of a node `broadcasts`.
    """

    def __init__(self, cluster: Cluster, broadcasts: bool) -> None:
        self.cluster = cluster
        self.broadcasts = broadcasts
        self.found: dict[str, int] = {}
        self.seen_unique: dict[str, str] = {}
        self.joined: list[str] = []

    def start(self, now: int) -> None:
        cluster = self.cluster
        name = cluster.config.discovery_group
        if name is not None:
            group = cluster.settings.discovery_groups[name]
            if group.group_address is not None:
                cluster.links.join(
                    name,
                    group.group_address,
                    group.group_port,
                    group.local_bind_address or "",
                    group.local_bind_port,
                )
                self.joined.append(name)
        if not self.broadcasts:
            return
        for broadcast in cluster.settings.broadcast_groups:
            if broadcast.group_address is not None:
                key = "broadcast/" + broadcast.name
                cluster.links.join(
                    key,
                    broadcast.group_address,
                    broadcast.group_port,
                    broadcast.local_bind_address or "",
                    broadcast.local_bind_port,
                )
                self.joined.append(key)
                self._broadcast(now, broadcast.name)

    def stop(self) -> None:
        for name in self.joined:
            self.cluster.links.leave(name)
        self.joined = []

    def on_timer(self, now: int, key: str) -> None:
        if key.startswith(BROADCAST):
            self._broadcast(now, key[len(BROADCAST) :])

    def _broadcast(self, now: int, name: str) -> None:
        """One datagram with our connectors, at once and then every broadcast-period."""
        cluster = self.cluster
        if cluster.stopping:
            return
        for group in cluster.settings.broadcast_groups:
            if group.name == name:
                connectors = [cluster.transport(connector) for connector in group.connectors]
                announcement = Announcement(cluster.node_id, self.cluster.clusters.unique_id, connectors)
                cluster.links.multicast("broadcast/" + name, encode_announcement(announcement))
                cluster.broker.timers.set(
                    BROADCAST + name, now + group.broadcast_period_ms * 1_000_000
                )

    def on_datagram(self, now: int, group: str, data: bytes) -> None:
        """A node was heard. Anybody can send datagrams: what cannot be read is counted and dropped."""
        cluster = self.cluster
        if group != cluster.config.discovery_group:
            return
        try:
            heard = decode_announcement(data)
        except ProtocolError:
            cluster.broker.trace.count("datagrams_unreadable")
            return
        if heard.node_id == cluster.node_id:
            if heard.unique_id != self.cluster.clusters.unique_id:
                cluster.members.check_copied_folder(heard.connectors)
            return
        previous = self.seen_unique.get(heard.node_id)
        if previous is not None and previous != heard.unique_id:
            cluster.told(
                "discovered_node_changed", heard.node_id, "restarted, or two nodes show this id"
            )
        if previous is None and len(self.seen_unique) >= FOUND_MAX:
            return
        self.seen_unique[heard.node_id] = heard.unique_id
        self.found[heard.node_id] = now
        self._expire(now, group)
        if heard.connectors:
            cluster.find(now, "discovered/" + heard.node_id, heard.connectors[-1])

    def _expire(self, now: int, group: str) -> None:
        """Entries that were not heard for refresh-timeout are dropped; looked at on every receipt."""
        limit = self.cluster.settings.discovery_groups[group].refresh_timeout_ms * 1_000_000
        for node_id in [node_id for node_id, at in self.found.items() if now - at > limit]:
            del self.found[node_id]
            self.cluster.forget("discovered/" + node_id)
