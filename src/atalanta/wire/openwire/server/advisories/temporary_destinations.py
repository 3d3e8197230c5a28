"""The temporary destinations of a node, and the advisories about them.

A client refuses to send to a temporary destination of which it has not heard. So all watchers hear of one before its
creator has the answer, and a new watcher hears of all before the answer to its own request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.producers import DestinationInfo
from atalanta.wire.openwire.conversion.destination import of_kind
from atalanta.wire.openwire.server.advisories.watcher import (
    TEMP_QUEUE,
    TEMP_QUEUE_TOPIC,
    TEMP_TOPIC,
    TEMP_TOPIC_TOPIC,
)
from atalanta.wire.openwire.server.advisories.watchers import AdvisorySource

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import BrokerId, ConnectionId
    from atalanta.wire.openwire.server.advisories.watcher import Watcher
    from atalanta.wire.openwire.server.advisories.watchers import Watchers
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput

ADDED: Final = 0
REMOVED: Final = 1


class TemporaryOwner:
    """The creator of a temporary destination, or the bridge that has brought it over the brokers of `path`."""

    def __init__(
        self, output: OpenWireOutput, kernel: Session, connection_id: ConnectionId, path: list[BrokerId] | None
    ) -> None:
        self.output = output
        self.kernel = kernel
        self.conn: int = output.conn
        self.connection_id = connection_id
        self.path = path


class TemporaryDestinations(AdvisorySource):
    """The temporary destinations. `kinds`: name to type on the wire. `ended`: those whose end is not told yet.

    Everybody who may log in hears of them, but only who may read the topic hears whose they are.
    """

    def __init__(self, watchers: Watchers) -> None:
        self.watchers = watchers
        self.kinds: dict[str, int] = {}
        self.owners: dict[str, TemporaryOwner] = {}
        self.ended: dict[str, tuple[int, TemporaryOwner]] = {}

    def replay(self, watcher: Watcher) -> None:
        if not watcher.hears_of(TEMP_QUEUE) and not watcher.hears_of(TEMP_TOPIC):
            return
        for name, code in self.kinds.items():
            owner = self.owners[name]
            told, for_all = _info(name, code, ADDED, owner, True), _info(name, code, ADDED, owner, False)
            self.watchers.replay(watcher, owner.conn, _topic(code), told, {}, for_all)

    def add(self, destination: ActiveMQDestination, owner: TemporaryOwner) -> None:
        """Reports a new temporary destination."""
        name, code = destination.physical_name or "", destination.code()
        former = self.ended.pop(name, None)
        if former is not None:
            self._tell(name, former[0], REMOVED, former[1])
        self.kinds[name] = code
        self.owners[name] = owner
        self._tell(name, code, ADDED, owner)

    def remove(self, name: str) -> None:
        """Reports the end of a temporary destination."""
        code = self.kinds.pop(name, 0)
        if code:
            self._tell(name, code, REMOVED, self.owners.pop(name))

    def remove_all(self, names: list[str]) -> None:
        """Reports the end of those of a connection that ends, in several turns if they are many."""
        for name in names:
            code = self.kinds.pop(name, 0)
            if code:
                self.ended[name] = (code, self.owners.pop(name))
        self.tell_more()

    def tell_more(self) -> None:
        while self.ended and not self.watchers.enough():
            name = next(iter(self.ended))
            code, owner = self.ended.pop(name)
            self._tell(name, code, REMOVED, owner)

    def _tell(self, name: str, code: int, operation: int, owner: TemporaryOwner) -> None:
        told, for_all = _info(name, code, operation, owner, True), _info(name, code, operation, owner, False)
        self.watchers.publish(owner.conn, _topic(code), told, {}, for_all)


def _topic(code: int) -> str:
    return TEMP_QUEUE_TOPIC if code == codes.TEMP_QUEUE else TEMP_TOPIC_TOPIC


def _info(name: str, code: int, operation: int, owner: TemporaryOwner, whose: bool) -> DestinationInfo:
    """Returns the data of an advisory; `whose`: with the connection. Bridges need the path in any case."""
    connection_id = owner.connection_id if whose else None
    return DestinationInfo(connection_id, of_kind(code, name), operation, broker_path=owner.path)
