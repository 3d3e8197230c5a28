"""The registry of connections that have logged in, for management, metrics and closing a connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.kernel.observer import Observer

if TYPE_CHECKING:
    from atalanta.kernel.sessions.client import Client
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.sessions.session_consumer import SessionConsumer


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientObserver(Observer):
    """Receives the changes of clients and sessions, after each change, besides those of queues and addresses."""

    def on_consumer_slow(self, now: int, consumer: SessionConsumer) -> None:
        """The consumer takes fewer messages than its address allows (slow-consumer-policy NOTIFY)."""
        return None

    def on_session_created(self, now: int, session: Session) -> None:
        return None

    def on_session_closed(self, now: int, session: Session) -> None:
        return None

    def on_connection_created(self, now: int, client: Client) -> None:
        """Called with the first session of the connection: a connection without a session belongs to no user."""
        return None

    def on_connection_destroyed(self, now: int, client: Client) -> None:
        return None


class Clients:
    """The clients by the shell's number of the connection. `close` ends one after the batch of inputs.

    `leaving` are clients that were redirected to another node.
    """

    def __init__(self, close: Callable[[int, str], None] | None) -> None:
        self.connected: dict[int, Client] = {}
        self.connections_total: int = 0
        self.sessions_total: int = 0
        self._number: int = 0
        self.logins_total: int = 0
        self.logins_refused: int = 0
        self.leaving: dict[int, bool] = {}
        self.observers: list[ClientObserver] = []
        self.close: Callable[[int, str], None] = cannot_close if close is None else close

    def take_number(self) -> int:
        """Returns the broker's number for a new consumer or producer."""
        self._number += 1
        return self._number

    def count_login(self) -> None:
        """Counts a login that succeeded."""
        self.logins_total += 1

    def opened(self, session: Session) -> None:
        """Registers a session; the first one of a connection registers the connection."""
        client = session.client
        now = session.created_at
        self.sessions_total += 1
        if client.connection not in self.connected:
            self.connected[client.connection] = client
            client.created_at = now
            self.connections_total += 1
            for observer in self.observers:
                observer.on_connection_created(now, client)
        for observer in self.observers:
            observer.on_session_created(now, session)

    def moved(self, old: Client, new: Client) -> None:
        """Registers that a session of `old` continues on the connection of `new`."""
        if new.connection not in self.connected:
            self.connected[new.connection] = new
            new.created_at = old.created_at

    def closed(self, now: int, session: Session) -> None:
        """Notifies the observers that a session is closed."""
        for observer in self.observers:
            observer.on_session_closed(now, session)

    def remove(self, now: int, client: Client) -> None:
        """Removes a client whose connection is closed."""
        self.leaving.pop(client.connection, None)
        if self.connected.pop(client.connection, None) is not None:
            for observer in self.observers:
                observer.on_connection_destroyed(now, client)

    def sessions(self) -> list[Session]:
        found: list[Session] = []
        for client in self.connected.values():
            found.extend(client.sessions.values())
        return found

    def held_bytes(self) -> int:
        """Returns the bytes of messages that local transactions keep in memory."""
        held = 0
        for session in self.sessions():
            if session.branch is None:
                for transaction in session.open_transactions():
                    held += transaction.held_bytes()
        return held

    def client_count(self) -> int:
        """Returns the number of connections with a session that is not a peer's."""
        count = 0
        for client in self.connected.values():
            for session in client.sessions.values():
                if not (session.identity.cluster or client.bridge):
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
