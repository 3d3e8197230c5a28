"""A client connection in the kernel: its identity and its sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.sessions.session_queues import QueueOwner

if TYPE_CHECKING:
    from atalanta.kernel.sessions.services import SessionServices
    from atalanta.kernel.sessions.session import Session


class Client(QueueOwner):
    """A client. `connection` is the shell's number; the client's temporary queues are deleted with the connection.

    `certificate` is the subject of the client's certificate, "" without one. `created_at` is the time (ns) of its first
    session.
    """

    def __init__(self, connection: int, remote: str) -> None:
        super().__init__()
        self.connection = connection
        self.remote = remote
        self.local: str = ""  # this end of the connection, host:port
        self.certificate: str = ""
        self.client_id: str | None = None
        self.created_at: int = 0
        self.sessions: dict[str, Session] = {}

    def hand_over(self, other: Client, session: Session) -> None:
        """Moves `session`, and the queues that are deleted with a connection, to another connection of the client."""
        self.sessions.pop(session.name, None)
        session.client = other
        other.sessions[session.name] = session
        other.client_id = other.client_id or self.client_id
        self.hand_over_queues(other)

    def close(self, now: int, services: SessionServices, failed: bool) -> None:
        """Closes the sessions and deletes the queues; `failed`: the connection was lost."""
        for session in list(self.sessions.values()):
            session.close(now, failed)
        self.delete_queues(now, services.queue_registry)
        services.clients.remove(now, self)
