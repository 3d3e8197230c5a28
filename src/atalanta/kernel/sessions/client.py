"""A client connection in the kernel: its identity and its sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.sessions.session_queues import QueueOwner

if TYPE_CHECKING:
    from atalanta.kernel.sessions.services import SessionServices
    from atalanta.kernel.sessions.session import Session

# Memory of the consumers of one connection, counted from above: 32,000 consumers, or 6 million characters of selectors.
CONSUMERS_BYTES_MAX: Final = 64 << 20
CONSUMER_BYTES: Final = 2_000
SELECTOR_CHARACTER_BYTES: Final = 10


class ConsumerMemory:
    """The memory of the consumers of one connection."""

    def __init__(self) -> None:
        self.bytes: int = 0

    def reserve(self, filter_text: str | None) -> int:
        """Returns the bytes that are counted for one more consumer. BrokerError ILLEGAL_STATE: there are too many."""
        size = CONSUMER_BYTES + SELECTOR_CHARACTER_BYTES * len(filter_text or "")
        if self.bytes + size > CONSUMERS_BYTES_MAX:
            raise BrokerError(
                ILLEGAL_STATE,
                f"the consumers and selectors of one connection need at most {CONSUMERS_BYTES_MAX >> 20} MiB",
            )
        self.bytes += size
        return size

    def release(self, size: int) -> None:
        """Takes back what `reserve` counted."""
        self.bytes -= size


class Client(QueueOwner):
    """A client. `connection` is the shell's number; the client's temporary queues are deleted with the connection.

    `zones` are those that the client named, the most wanted first, with commas; `stays`: it accepts no other node.
    `certificate` is the subject of the client's certificate, "" without one. `created_at` is the time (ns) of its first
    session. `protocol` is its name in the `protocols` parameter of acceptors, `implementation` Artemis' name of the
    connection's class, which management shows.
    """

    def __init__(self, connection: int, remote: str) -> None:
        super().__init__()
        self.connection = connection
        self.remote = remote
        self.local: str = ""  # this end of the connection, host:port
        self.certificate: str = ""
        self.protocol: str = "CORE"
        self.implementation: str = "RemotingConnectionImpl"
        self.client_id: str | None = None
        self.zones: str = ""
        self.stays: bool = False
        self.created_at: int = 0
        self.sessions: dict[str, Session] = {}
        self.consumer_memory = ConsumerMemory()

    def hand_over(self, other: Client, session: Session) -> None:
        """Moves `session`, and the queues that are deleted with a connection, to another connection of the client."""
        self.sessions.pop(session.name, None)
        session.client = other
        other.sessions[session.name] = session
        other.client_id = other.client_id or self.client_id
        for consumer in session.consumers.values():
            self.consumer_memory.release(consumer.reserved_bytes)
            other.consumer_memory.release(-consumer.reserved_bytes)
        self.hand_over_queues(other)

    def close(self, now: int, services: SessionServices, failed: bool) -> None:
        """Closes the sessions and deletes the queues; `failed`: the connection was lost."""
        for session in list(self.sessions.values()):
            session.close(now, failed)
        self.delete_queues(now, services.queue_registry)
        services.clients.remove(now, self)
