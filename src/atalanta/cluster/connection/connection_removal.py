"""The store-and-forward queues of a cluster connection that a reload removes.

They are deleted one event-loop iteration later, when its links have given up their consumers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import ClusterConnection
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.queues import QueueRegistry

TIMER: Final = "cluster.removal"
WHY: Final = "its cluster connection was removed"


class ConnectionRemoval:
    """The removed cluster connections of a node whose queues are still there."""

    def __init__(self, queues: QueueRegistry, timers: Timers) -> None:
        self.queues = queues
        self.timers = timers
        self.removed: list[ClusterConnection] = []

    def _queues(self, cluster: ClusterConnection) -> list[Queue]:
        """Returns the store-and-forward queues of a cluster connection, those of former members too."""
        prefix = cluster.forward_name("")
        return [queue for name, queue in self.queues.by_name.items() if queue.internal and name.startswith(prefix)]

    def waiting(self, cluster: ClusterConnection) -> list[str]:
        """Returns the queues with messages, and how many each has."""
        counts = [(queue.name, queue.message_count + queue.pending) for queue in self._queues(cluster)]
        return [f"{name} ({count})" for name, count in counts if count > 0]

    def add(self, now: int, cluster: ClusterConnection) -> None:
        """Deletes the queues soon."""
        self.removed.append(cluster)
        self.timers.set(TIMER, now)

    def on_timer(self, now: int) -> None:
        removed = self.removed
        self.removed = []
        for cluster in removed:
            for queue in self._queues(cluster):
                if queue.message_count + queue.pending == 0:
                    self.queues.delete(now, queue.name, WHY)
