"""Queues that several peers tell of, as in a ring: one way is used, the others are kept for when it fails.

Artemis takes the first way it hears of and forgets the others. Here a queue whose way is lost, or has no consumers any
more while another has, is reached by that other one. Our nodes tell by which nodes they reach a queue
(`_ATALANTA_Via`): a way that leads back through this node is none, and one with a real Artemis in between, which does
not tell, is only taken as the first. Consumers behind a lost link are closed for everybody at once, so the look comes a
moment after the change. The binding keeps its id, so whoever sends through this node goes on with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.routing.bindings import RemoteBinding

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connections import Clusters
    from atalanta.cluster.connection.remote_bindings import RemoteBindings

TIMER: Final = "cluster.detours"
PAUSE_NS: Final = 2_000_000_000  # longer than news need to go round


class Detours:
    """Looks at all spare ways of a node."""

    def __init__(self, clusters: Clusters) -> None:
        self.clusters = clusters
        self.armed: bool = False

    def look_soon(self, now: int) -> None:
        """Something changed that may call for another way."""
        if not self.armed and any(peer.spares for peer in self._peers()):
            self.armed = True
            self.clusters.broker.timers.set(TIMER, now + PAUSE_NS)

    def _peers(self) -> list[RemoteBindings]:
        return [
            record.bindings
            for cluster in self.clusters.connections
            for record in cluster.peers.values()
        ]

    def on_timer(self, now: int) -> None:
        self.armed = False
        ways: dict[str, list[RemoteBindings]] = {}
        for peer in self._peers():
            for cluster_name, spare in peer.spares.items():
                if spare.connected and spare.path:
                    ways.setdefault(cluster_name, []).append(peer)
        for cluster_name, peers in ways.items():
            self._choose(now, cluster_name, peers)

    def _choose(self, now: int, cluster_name: str, peers: list[RemoteBindings]) -> None:
        best = peers[0]
        for peer in peers[1:]:
            if better(peer.spares[cluster_name], best.spares[cluster_name]):
                best = peer
        spare = best.spares[cluster_name]
        holder = self.clusters.holder_of(cluster_name)
        if holder is None:
            best.use_spare(now, cluster_name)
            return
        cluster, node_id = holder
        used = cluster.peers[node_id].bindings
        active = used.bindings[cluster_name]
        if spare.consumer_count > 0 and better(spare, active):
            self.clusters.broker.trace.event(
                "binding_detour", {"queue": cluster_name, "from": node_id, "to": best.node_id}
            )
            used.swap(now, cluster_name, best)


def better(one: RemoteBinding, other: RemoteBinding) -> bool:
    """Connected, with consumers, near: in this order."""
    if one.connected != other.connected:
        return one.connected
    if (one.consumer_count > 0) != (other.consumer_count > 0):
        return one.consumer_count > 0
    return one.distance < other.distance
