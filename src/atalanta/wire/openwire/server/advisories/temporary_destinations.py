"""The temporary destinations of a node, and the advisories about them.

A client refuses to send to a temporary destination of which it has not heard. So all watchers hear of one before its
creator has the answer, and a new watcher hears of all before the answer to its own request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.producers import DestinationInfo
from atalanta.wire.openwire.conversion.destination import ADVISORY_PREFIX, of_kind
from atalanta.wire.openwire.server.advisories.watchers import AdvisorySource

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import BrokerId, ConnectionId
    from atalanta.wire.openwire.server.advisories.watchers import Watcher, Watchers

ADDED: Final = 0
REMOVED: Final = 1
TEMP_QUEUE_TOPIC: Final = f"{ADVISORY_PREFIX}TempQueue"
TEMP_TOPIC_TOPIC: Final = f"{ADVISORY_PREFIX}TempTopic"


class TemporaryOwner:
    """The creator of a temporary destination. `path`: the brokers over which a bridge has brought it."""

    def __init__(self, conn: int, connection_id: ConnectionId, path: list[BrokerId] | None) -> None:
        self.conn = conn
        self.connection_id = connection_id
        self.path = path


class TemporaryDestinations(AdvisorySource):
    """The temporary destinations. `kinds`: name to type on the wire."""

    def __init__(self, watchers: Watchers) -> None:
        self.watchers = watchers
        self.kinds: dict[str, int] = {}
        self.owners: dict[str, TemporaryOwner] = {}

    def replay(self, watcher: Watcher) -> None:
        for name, code in self.kinds.items():
            owner = self.owners[name]
            self.watchers.replay(watcher, owner.conn, _topic(code), _info(name, code, ADDED, owner), {})

    def add(self, destination: ActiveMQDestination, owner: TemporaryOwner) -> None:
        """Reports a new temporary destination."""
        name, code = destination.physical_name or "", destination.code()
        self.kinds[name] = code
        self.owners[name] = owner
        self.watchers.publish(owner.conn, _topic(code), _info(name, code, ADDED, owner), {})

    def remove(self, name: str) -> None:
        """Reports the end of a temporary destination."""
        code = self.kinds.pop(name, 0)
        if code:
            owner = self.owners.pop(name)
            self.watchers.publish(owner.conn, _topic(code), _info(name, code, REMOVED, owner), {})


def _topic(code: int) -> str:
    return TEMP_QUEUE_TOPIC if code == codes.TEMP_QUEUE else TEMP_TOPIC_TOPIC


def _info(name: str, code: int, operation: int, owner: TemporaryOwner) -> DestinationInfo:
    return DestinationInfo(owner.connection_id, of_kind(code, name), operation, broker_path=owner.path)
