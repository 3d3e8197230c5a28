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
    from collections.abc import Callable

    from atalanta.cluster.connection.remote_bindings import RemoteBindings
    from atalanta.kernel.ports import Timers, Trace

TIMER: Final = "cluster.alternate_routes"
PAUSE_NS: Final = 2_000_000_000  # longer than a notification takes through all nodes


class AlternateRoutes:
    """Checks all spare routes of a node. `peers` returns the bindings of all peers."""

    def __init__(
        self, timers: Timers, trace: Trace, peers: Callable[[], list[RemoteBindings]]
    ) -> None:
        self.timers = timers
        self.trace = trace
        self.peers = peers
        self.timer_set: bool = False

    def routes_changed(self, now: int) -> None:
        """Sets the timer of the check after a change that may need another route."""
        if not self.timer_set and any(peer.spares for peer in self.peers()):
            self.timer_set = True
            self.timers.set(TIMER, now + PAUSE_NS)

    def on_timer(self, now: int) -> None:
        self.timer_set = False
        spares: dict[str, list[RemoteBindings]] = {}
        for peer in self.peers():
            for cluster_name, spare in peer.spares.items():
                if spare.connected and spare.path:
                    spares.setdefault(cluster_name, []).append(peer)
        for cluster_name, peers in spares.items():
            self._choose(now, cluster_name, peers)

    def _choose(self, now: int, cluster_name: str, peers: list[RemoteBindings]) -> None:
        best = peers[0]
        for peer in peers[1:]:
            if better(peer.spares[cluster_name], best.spares[cluster_name]):
                best = peer
        spare = best.spares[cluster_name]
        used = next((peer for peer in self.peers() if cluster_name in peer.bindings), None)
        if used is None:
            best.use_spare(now, cluster_name)
            return
        active = used.bindings[cluster_name]
        if spare.consumer_count > 0 and better(spare, active):
            self.trace.event(
                "binding_detour", {"queue": cluster_name, "from": used.node_id, "to": best.node_id}
            )
            used.swap(now, cluster_name, best)


def better(one: RemoteBinding, other: RemoteBinding) -> bool:
    """Returns whether `one` is the better route: connected first, then with consumers, then with fewer hops."""
    if one.connected != other.connected:
        return one.connected
    if (one.consumer_count > 0) != (other.consumer_count > 0):
        return one.consumer_count > 0
    return one.distance < other.distance
