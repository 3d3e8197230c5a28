"""Advisories about consumers: demand, for the bridges of other brokers, and counts for applications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.message.properties import Int
from atalanta.wire.openwire.commands.connections import RemoveInfo
from atalanta.wire.openwire.commands.consumers import RemoveSubscriptionInfo
from atalanta.wire.openwire.conversion.destination import ADVISORY_PREFIX, is_queue, parts_of
from atalanta.wire.openwire.server.advisories.described_consumer import (
    described,
    destination_of,
    is_subscription,
)
from atalanta.wire.openwire.server.advisories.subscription_name import subscription_parts
from atalanta.wire.openwire.server.advisories.watchers import AdvisorySource

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.wildcard import WildcardConfiguration
    from atalanta.wire.openwire.commands.consumers import ConsumerInfo
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import ConsumerId
    from atalanta.wire.openwire.server.advisories.watchers import Watcher, Watchers

CONSUMER_TOPIC: Final = f"{ADVISORY_PREFIX}Consumer."
NO_CONNECTION: Final = -1  # of consumers that are not OpenWire's


class ConsumerAdvisories(AdvisorySource):
    """The consumers of a node. Clients choose their ids, so the key has the number of the connection as well.

    `counts`: of the consumers, by topic of the advisory.
    """

    def __init__(self, watchers: Watchers) -> None:
        self.watchers = watchers
        self.infos: dict[tuple[int, ConsumerId], ConsumerInfo] = {}
        self.counts: dict[str, int] = {}

    def replay(self, watcher: Watcher) -> None:
        for (conn, _), info in self.infos.items():
            for topic in _topics(info):
                self.watchers.replay(watcher, conn, topic, info, self._count(topic))

    def add(self, conn: int, info: ConsumerInfo) -> None:
        """Reports a new consumer."""
        consumer_id = info.consumer_id
        assert consumer_id is not None
        self.infos[conn, consumer_id] = info
        for topic in _topics(info):
            self.counts[topic] = self.counts.get(topic, 0) + 1
            self.watchers.publish(conn, topic, info, self._count(topic))

    def remove(self, conn: int, consumer_id: ConsumerId) -> None:
        """Reports the end of a consumer."""
        info = self.infos.pop((conn, consumer_id), None)
        if info is None:
            return
        for topic in _topics(info):
            self.counts[topic] -= 1
            self.watchers.publish(conn, topic, RemoveInfo(consumer_id), self._count(topic))
            if self.counts[topic] == 0:
                del self.counts[topic]

    def subscription_removed(self, destination: ActiveMQDestination, client_id: str, subscription: str) -> None:
        """Reports the end of a durable subscription."""
        topic = _topic(destination)
        data = RemoveSubscriptionInfo(client_id=client_id, subscription_name=subscription)
        self.watchers.publish(NO_CONNECTION, topic, data, self._count(topic))

    def _count(self, topic: str) -> dict[str, object]:
        return {"consumerCount": Int(self.counts.get(topic, 0))}


class OtherConsumers(ClientObserver):
    """Reports the consumers of other protocols, and durable subscriptions that end."""

    def __init__(self, advisories: ConsumerAdvisories, node_id: str, wildcard: WildcardConfiguration) -> None:
        self.advisories = advisories
        self.node_id = node_id
        self.wildcard = wildcard
        self.ids: dict[int, ConsumerId] = {}  # by the broker's number of the consumer

    def on_consumer_added(self, now: int, consumer: Consumer) -> None:
        info = described(consumer, self.node_id, self.wildcard)
        if info is not None and info.consumer_id is not None:
            self.ids[consumer.sequential_id] = info.consumer_id
            self.advisories.add(NO_CONNECTION, info)

    def on_consumer_removed(self, now: int, consumer: Consumer) -> None:
        consumer_id = self.ids.pop(consumer.sequential_id, None)
        if consumer_id is not None:
            self.advisories.remove(NO_CONNECTION, consumer_id)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        if is_subscription(queue.spec):
            client_id, name = subscription_parts(queue.name)
            self.advisories.subscription_removed(destination_of(queue.spec, self.wildcard), client_id, name)


def _topics(info: ConsumerInfo) -> list[str]:
    """Returns the topics of the advisories about a consumer; none about browsers and watchers."""
    if info.browser or info.destination is None:
        return []
    return [
        _topic(part)
        for part in parts_of(info.destination)
        if not (part.physical_name or "").startswith(ADVISORY_PREFIX)
    ]


def _topic(destination: ActiveMQDestination) -> str:
    return f"{CONSUMER_TOPIC}{'Queue' if is_queue(destination) else 'Topic'}.{destination.physical_name or ''}"
