"""A client connection in the kernel: its identity, and the queues that are deleted with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.sessions.session import Session


class Client:
    """A client. `connection` is the shell's number; the client's temporary queues are deleted with the connection."""

    def __init__(self, connection: int, remote: str) -> None:
        self.connection = connection
        self.remote = remote
        self.certificate: str = ""  # the subject of the client's certificate, if it sent one
        self.client_id: str | None = None
        self.created_at: int = 0  # of its first session
        self.sessions: dict[str, Session] = {}
        self.temporary_queues: dict[str, Queue] = {}
        self.transient_queues: dict[str, Queue] = {}

    def use_transient(self, queue: Queue) -> None:
        """Records that this client uses a shared subscription, which is deleted after its last user."""
        if queue.name not in self.transient_queues:
            self.transient_queues[queue.name] = queue
            queue.usage.add_client()

    def hand_over(self, other: Client, session: Session) -> None:
        """Moves `session`, and the queues that are deleted with a connection, to another connection of the client."""
        self.sessions.pop(session.name, None)
        session.client = other
        other.sessions[session.name] = session
        other.client_id = other.client_id or self.client_id
        other.temporary_queues.update(self.temporary_queues)
        self.temporary_queues.clear()
        for queue in self.transient_queues.values():
            queue.usage.remove_client()
            other.use_transient(queue)
        self.transient_queues.clear()

    def close(self, now: int, broker: Broker, failed: bool) -> None:
        for session in list(self.sessions.values()):
            session.close(now, failed)
        for queue in list(self.temporary_queues.values()):
            if not queue.deleted:
                broker.queue_registry.delete(now, queue.name, "its connection was closed")
        self.temporary_queues.clear()
        for queue in list(self.transient_queues.values()):
            queue.usage.remove_client()
            # The queue may never have had a consumer, whose removal would delete it.
            if queue.usage.clients == 0 and not queue.deleted and queue.consumer_count() == 0:
                broker.queue_registry.delete(now, queue.name, "its connection was closed")
        self.transient_queues.clear()
        broker.clients.gone(now, broker, self)
