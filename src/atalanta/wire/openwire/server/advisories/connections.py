"""Advisories about connections (topic `ActiveMQ.Advisory.Connection`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.wire.openwire.commands.connections import ConnectionInfo, RemoveInfo
from atalanta.wire.openwire.commands.identifiers import ConnectionId
from atalanta.wire.openwire.conversion.destination import ADVISORY_PREFIX
from atalanta.wire.openwire.server.advisories.described_consumer import OPENWIRE
from atalanta.wire.openwire.server.advisories.watchers import AdvisorySource

if TYPE_CHECKING:
    from atalanta.kernel.sessions.client import Client
    from atalanta.kernel.sessions.session import Session
    from atalanta.wire.openwire.server.advisories.watcher import Watcher
    from atalanta.wire.openwire.server.advisories.watchers import Watchers

CONNECTION: Final = "Connection"
CONNECTION_TOPIC: Final = f"{ADVISORY_PREFIX}{CONNECTION}"


class ConnectionAdvisories(AdvisorySource):
    """The connections with a login, by the shell's number. Passwords are not told."""

    def __init__(self, watchers: Watchers) -> None:
        self.watchers = watchers
        self.infos: dict[int, ConnectionInfo] = {}

    def replay(self, watcher: Watcher) -> None:
        if not watcher.hears_of(CONNECTION):
            return
        for conn, info in self.infos.items():
            self.watchers.replay(watcher, conn, CONNECTION_TOPIC, info, {})

    def add(self, connection_id: ConnectionId, client: Client, user: str | None) -> None:
        """Reports a connection."""
        info = ConnectionInfo(connection_id, client.client_id, None, user, client_ip=f"tcp://{client.remote}")
        self.infos[client.connection] = info
        self.watchers.publish(client.connection, CONNECTION_TOPIC, info, {})

    def remove(self, conn: int) -> None:
        """Reports the end of a connection, if it is known."""
        info = self.infos.pop(conn, None)
        if info is not None:
            self.watchers.publish(conn, CONNECTION_TOPIC, RemoveInfo(info.connection_id), {})


class ConnectionWatch(ClientObserver):
    """Reports the connections of other protocols, and the end of all."""

    def __init__(self, advisories: ConnectionAdvisories, node_id: str) -> None:
        self.advisories = advisories
        self.node_id = node_id

    def on_session_created(self, now: int, session: Session) -> None:
        client = session.client
        if client.protocol == OPENWIRE or session.identity.cluster or client.connection in self.advisories.infos:
            return
        self.advisories.add(ConnectionId(f"ID:{self.node_id}:{client.connection}"), client, session.identity.user)

    def on_connection_destroyed(self, now: int, client: Client) -> None:
        self.advisories.remove(client.connection)
