"""Advisories about consumers and producers: demand for the bridges of other brokers, and counts for applications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.properties import Int
from atalanta.wire.openwire.commands.connections import RemoveInfo
from atalanta.wire.openwire.commands.consumers import RemoveSubscriptionInfo
from atalanta.wire.openwire.conversion.destination import ADVISORY_PREFIX, is_queue, parts_of
from atalanta.wire.openwire.server.advisories.watchers import AdvisorySource

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.encoding.structure import Command, Identifier
    from atalanta.wire.openwire.server.advisories.watcher import Watcher
    from atalanta.wire.openwire.server.advisories.watchers import Watchers

CONSUMER: Final = "Consumer"
PRODUCER: Final = "Producer"
NO_CONNECTION: Final = -1  # of consumers that are not OpenWire's


class Endpoint:
    """A consumer or producer: its ConsumerInfo or ProducerInfo, and the topics of the advisories about it."""

    def __init__(self, info: Command, topics: list[str]) -> None:
        self.info = info
        self.topics = topics


class EndpointAdvisories(AdvisorySource):
    """The consumers, or the producers, of a node; `kind` says which.

    Clients choose their ids, so the key has the number of the connection as well. `counts`: by topic of the advisory.
    """

    def __init__(self, watchers: Watchers, kind: str) -> None:
        self.watchers = watchers
        self.kind = kind
        self.count_name: str = f"{kind.rpartition('.')[2].lower()}Count"
        self.endpoints: dict[tuple[int, Identifier], Endpoint] = {}
        self.counts: dict[str, int] = {}

    def replay(self, watcher: Watcher) -> None:
        if not watcher.hears_of(self.kind.partition(".")[0]):
            return
        for (conn, _), endpoint in self.endpoints.items():
            for topic in endpoint.topics:
                self.watchers.replay(watcher, conn, topic, endpoint.info, self._count(topic))

    def add(self, conn: int, key: Identifier, info: Command, destination: ActiveMQDestination) -> None:
        """Reports a new one."""
        endpoint = Endpoint(info, self._topics(destination))
        self.endpoints[conn, key] = endpoint
        for topic in endpoint.topics:
            self.counts[topic] = self.counts.get(topic, 0) + 1
            self.watchers.publish(conn, topic, info, self._count(topic))

    def remove(self, conn: int, key: Identifier) -> None:
        """Reports the end of one, if it is known."""
        endpoint = self.endpoints.pop((conn, key), None)
        if endpoint is None:
            return
        for topic in endpoint.topics:
            self.counts[topic] -= 1
            self.watchers.publish(conn, topic, RemoveInfo(key), self._count(topic))
            if self.counts[topic] == 0:
                del self.counts[topic]

    def subscription_removed(self, destination: ActiveMQDestination, client_id: str, subscription: str) -> None:
        """Reports the end of a durable subscription."""
        data = RemoveSubscriptionInfo(client_id=client_id, subscription_name=subscription)
        for topic in self._topics(destination):
            self.watchers.publish(NO_CONNECTION, topic, data, self._count(topic))

    def _count(self, topic: str) -> dict[str, object]:
        return {self.count_name: Int(self.counts.get(topic, 0))}

    def _topics(self, destination: ActiveMQDestination) -> list[str]:
        return [
            topic_of(self.kind, part)
            for part in parts_of(destination)
            if not (part.physical_name or "").startswith(ADVISORY_PREFIX)
        ]


def topic_of(kind: str, destination: ActiveMQDestination) -> str:
    """Returns the topic of the advisories of that kind about a destination."""
    return f"{ADVISORY_PREFIX}{kind}.{'Queue' if is_queue(destination) else 'Topic'}.{destination.physical_name or ''}"
