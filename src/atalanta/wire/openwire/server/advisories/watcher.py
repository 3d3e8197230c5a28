"""A consumer of advisory topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.routing.wildcard_addresses import AddressPattern
from atalanta.kernel.security.security import CONSUME
from atalanta.wire.openwire.conversion.destination import (
    ADVISORY_PREFIX,
    CLASSIC_WILDCARDS,
    has_wildcard,
    name_of,
    parts_of,
)

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import ConsumerId
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput

DELIMITER: Final = CLASSIC_WILDCARDS.delimiter
TEMP_QUEUE: Final = "TempQueue"
TEMP_TOPIC: Final = "TempTopic"
TEMP_QUEUE_TOPIC: Final = f"{ADVISORY_PREFIX}{TEMP_QUEUE}"
TEMP_TOPIC_TOPIC: Final = f"{ADVISORY_PREFIX}{TEMP_TOPIC}"
# Every JMS client watches them: without them it sends to no temporary destination of others.
OPEN_TOPICS: Final = (TEMP_QUEUE_TOPIC, TEMP_TOPIC_TOPIC)
WILDCARDS: Final = (CLASSIC_WILDCARDS.any_words, CLASSIC_WILDCARDS.single_word)


class Watcher:
    """A consumer of advisories: `topics` by name, `patterns` with wildcards. `no_local`: not about its own connection.

    `first`: of its connection, as each JMS client has one. `number` is its number in the node. `kinds`: the words
    behind the prefix that its topics have; None: any.
    """

    def __init__(
        self,
        connection: OpenWireOutput,
        kernel: Session,
        consumer_id: ConsumerId,
        destination: ActiveMQDestination,
        no_local: bool = False,
        first: bool = False,
    ) -> None:
        self.connection = connection
        self.kernel = kernel
        self.consumer_id = consumer_id
        self.no_local = no_local
        self.first = first
        self.number: int = 0
        self.topics: dict[str, bool] = {}
        self.patterns: dict[str, AddressPattern] = {}
        self.kinds: dict[str, bool] | None = {}
        for part in parts_of(destination):
            self._add(name_of(part))

    def _add(self, name: str) -> None:
        if has_wildcard(name):
            self.patterns[name] = AddressPattern(name, CLASSIC_WILDCARDS)
        else:
            self.topics[name] = True
        kind = name[len(ADVISORY_PREFIX) :].partition(DELIMITER)[0]
        if kind in WILDCARDS:
            self.kinds = None
        elif self.kinds is not None:
            self.kinds[kind] = True

    @property
    def user(self) -> str:
        """Returns the name of the user whose consumer it is."""
        return self.kernel.identity.user

    def size(self) -> int:
        """Returns the number of its topics that count for its user: of the first consumer of a connection the topics of
        temporary destinations do not."""
        open_topics = sum([topic in self.topics for topic in OPEN_TOPICS]) if self.first else 0
        return len(self.topics) + len(self.patterns) - open_topics

    def hears_of(self, kind: str) -> bool:
        """Returns True if its topics may be of that kind: Consumer, Connection …"""
        return self.kinds is None or kind in self.kinds

    def watches(self, topic: str) -> bool:
        """Returns True if the consumer is for that topic."""
        if topic in self.topics:
            return True
        for pattern in self.patterns.values():
            if pattern.matches(topic):
                return True
        return False

    def may_read(self, topic: str) -> bool:
        """Returns True if its user has the permission to consume from the topic now."""
        return self.kernel.services.permissions.allows(self.kernel.identity, CONSUME, topic)
