"""The dispatch list: queues that have work at the end of the batch of inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue


class DispatchList:
    """Queues to dispatch, with messages that no local consumer takes, and with messages that others replaced.

    Each queue is listed once: the flags `dirty` and `unattended` of a queue say that it is listed.
    """

    def __init__(self) -> None:
        self.dirty: list[Queue] = []
        self.unattended: list[Queue] = []
        self.displacements: list[Queue] = []

    def mark_dirty(self, queue: Queue) -> None:
        """Lists the queue for the dispatch at the end of the batch of inputs, if it has consumers."""
        if not queue.dirty and queue.consumers:
            queue.dirty = True
            self.dirty.append(queue)

    def take_dirty(self) -> list[Queue]:
        """Returns the queues to dispatch; each stays marked until `begin`."""
        taken = self.dirty
        self.dirty = []
        return taken

    def put_back(self, queues: list[Queue]) -> None:
        """Lists queues again that were not dispatched, before those that were listed meanwhile."""
        self.dirty = queues + self.dirty

    def begin(self, queue: Queue) -> None:
        """Marks the queue as dispatched: from here on it may be listed again."""
        queue.dirty = False

    def note_unattended(self, queue: Queue) -> None:
        """Lists the queue as having a message that no local consumer takes; one notification per batch of inputs."""
        if not queue.unattended and not queue.internal:
            queue.unattended = True
            self.unattended.append(queue)

    def take_unattended(self) -> list[Queue]:
        """Returns the queues of which observers are notified; each stays marked until `attend`."""
        taken = self.unattended
        self.unattended = []
        return taken

    def attend(self, queue: Queue) -> None:
        """Marks the queue as notified: from here on it may be listed again."""
        queue.unattended = False

    def note_displacement(self, queue: Queue) -> None:
        """Lists the queue: messages that others replaced leave it at the end of the batch of inputs."""
        self.displacements.append(queue)

    def take_displacements(self) -> list[Queue]:
        """Returns the queues whose replaced messages leave now."""
        taken = self.displacements
        self.displacements = []
        return taken
