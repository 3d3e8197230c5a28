"""Alternate routes to queues that several peers announce, as in a ring. One is used, the others are spares.

Artemis uses the first route that is announced and ignores the others. Here a spare replaces a route that is lost,
or that has no consumers any more while the spare has some. The binding keeps its id, so messages sent through this
node still use it.

Atalanta nodes announce over which nodes they reach a queue (`_ATALANTA_Via`). A route that leads back through this
node is not used. A route over a real Artemis, which does not announce this, is only taken as the first. Consumers
behind a lost link are closed for all nodes at once. So the check runs PAUSE_NS after the change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.routing.bindings import RemoteBinding

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connections import Clusters
    from atalanta.cluster.connection.remote_bindings import RemoteBindings

TIMER: Final = "cluster.detours"
PAUSE_NS: Final = 2_000_000_000  # longer than a notification takes through all nodes


class Detours:
    """Checks all spare routes of a node."""

    def __init__(self, clusters: Clusters) -> None:
        self.clusters = clusters
        self.armed: bool = False

    def look_soon(self, now: int) -> None:
        """Sets the timer of the check after a change that may need another route."""
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
    """Tells if `one` is the better route: connected first, then with consumers, then with fewer hops."""
    if one.connected != other.connected:
        return one.connected
    if (one.consumer_count > 0) != (other.consumer_count > 0):
        return one.consumer_count > 0
    return one.distance < other.distance
