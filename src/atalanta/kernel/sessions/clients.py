"""The registry of connections that have logged in, for management, metrics and closing a connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.sessions.client import Client
    from atalanta.kernel.sessions.session import Session


class Clients:
    """The clients by the shell's number of the connection. `close` ends one after the batch of inputs."""

    def __init__(self, close: Callable[[int, str], None] | None) -> None:
        self.connected: dict[int, Client] = {}
        self.connections_total: int = 0
        self.sessions_total: int = 0
        self.logins_total: int = 0
        self.logins_refused: int = 0
        self.permissions_refused: int = 0
        self.permissions_granted: int = 0  # for sends: once per session and address
        self.leaving: dict[int, bool] = {}  # clients that were redirected to another node
        self.close: Callable[[int, str], None] = cannot_close if close is None else close

    def opened(self, session: Session) -> None:
        """Registers a session; the first one of a connection registers the connection."""
        client = session.client
        broker = session.broker
        self.sessions_total += 1
        if client.connection not in self.connected:
            self.connected[client.connection] = client
            client.created_at = session.created_at
            self.connections_total += 1
            for observer in broker.observers:
                observer.on_connection_created(broker.now, client)
        for observer in broker.observers:
            observer.on_session_created(broker.now, session)

    def moved(self, old: Client, new: Client) -> None:
        """Registers that a session of `old` continues on the connection of `new`."""
        if new.connection not in self.connected:
            self.connected[new.connection] = new
            new.created_at = old.created_at

    def gone(self, now: int, broker: Broker, client: Client) -> None:
        self.leaving.pop(client.connection, None)
        if self.connected.pop(client.connection, None) is not None:
            for observer in broker.observers:
                observer.on_connection_destroyed(now, client)

    def sessions(self) -> list[Session]:
        found: list[Session] = []
        for client in self.connected.values():
            found.extend(client.sessions.values())
        return found

    def client_count(self) -> int:
        """Returns the number of connections with a session that is not a peer's."""
        count = 0
        for client in self.connected.values():
            for session in client.sessions.values():
                if not session.identity.cluster:
                    count += 1
                    break
        return count

    def session_count(self) -> int:
        count = 0
        for client in self.connected.values():
            count += len(client.sessions)
        return count


def cannot_close(connection: int, why: str) -> None:
    raise NotImplementedError(f"connection {connection} cannot be closed: no shell is attached")
