"""Connections that may be closed to make room for others, by the host of their peer."""

from __future__ import annotations

from typing import Protocol

from atalanta.kernel.security.remote_host import remote_host


class Closable(Protocol):
    """A connection of `peer`, host:port, that can be closed at once."""

    peer: str

    def abort(self) -> None:
        """Closes the connection now."""


class ConnectionsByHost:
    """Connections in the order of their accept, for each host."""

    def __init__(self) -> None:
        self._hosts: dict[str, dict[Closable, None]] = {}

    def add(self, connection: Closable) -> None:
        """Adds a connection as the newest of its host."""
        self._hosts.setdefault(remote_host(connection.peer), {})[connection] = None

    def remove(self, connection: Closable) -> None:
        """Removes a connection, if it is here."""
        host = remote_host(connection.peer)
        found = self._hosts.get(host)
        if found is not None:
            found.pop(connection, None)
            if not found:
                del self._hosts[host]

    def close_one(self) -> bool:
        """Closes the oldest connection of the host that has most. Returns False if there is none."""
        most: dict[Closable, None] = {}
        for found in self._hosts.values():
            if len(found) > len(most):
                most = found
        if not most:
            return False
        oldest = next(iter(most))
        self.remove(oldest)
        oldest.abort()
        return True
