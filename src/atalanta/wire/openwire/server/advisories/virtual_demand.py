"""Demand through virtual destinations, for the bridges of other brokers (useVirtualDestSubs of ActiveMQ Classic).

A consumer of the queue of a virtual topic is told as one of the topic, too, and a consumer of a destination behind a
composite one as one of that: `ActiveMQ.Advisory.VirtualDestination.Consumer.Topic.NAME`. With
useVirtualDestSubsOnCreation such queues are told without a consumer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.routing.virtual_topics import virtual_topics
from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.wire.openwire.commands.connections import RemoveInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import ConsumerId
from atalanta.wire.openwire.conversion.destination import is_queue, parts_of
from atalanta.wire.openwire.server.advisories.described_consumer import (
    HIDDEN,
    PREFETCH,
    destination_of,
    is_composite,
)
from atalanta.wire.openwire.server.advisories.endpoints import (
    CONSUMER,
    NO_CONNECTION,
    EndpointAdvisories,
    topic_of,
)
from atalanta.wire.openwire.server.advisories.watchers import AdvisorySource

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.wire.openwire.encoding.structure import Command, Identifier
    from atalanta.wire.openwire.server.advisories.watcher import Watcher
    from atalanta.wire.openwire.server.advisories.watchers import Watchers

VIRTUAL: Final = "VirtualDestination"
KIND: Final = f"{VIRTUAL}.Consumer"
QUEUES: Final = 3  # number of the session in the ids of queues without a consumer


class VirtualDestinations:
    """The virtual destinations of a node, and what is behind them."""

    def __init__(self, config: BrokerConfig, queues: QueueRegistry) -> None:
        self.config = config
        self.queues = queues

    def before(self, destination: ActiveMQDestination) -> list[ActiveMQDestination]:
        """Returns the virtual destinations whose messages come to a destination."""
        found: list[ActiveMQDestination] = []
        name = destination.physical_name or ""
        of_queue = is_queue(destination)
        if of_queue:
            topic = virtual_topics(self.config.virtual_topic_forms).topic_of(name)
            if topic is not None:
                found.append(ActiveMQTopic(topic.name))
        for divert in self.config.diverts:
            if divert.forwarding_address == name and (divert.routing_type == ANYCAST) == of_queue:
                address = self.queues.addresses.by_name.get(divert.address)
                anycast = address is not None and address.anycast
                found.append(ActiveMQQueue(divert.address) if anycast else ActiveMQTopic(divert.address))
        return found


class VirtualConsumers(EndpointAdvisories):
    """The consumers behind virtual destinations, as consumers of these."""

    def __init__(self, watchers: Watchers, destinations: VirtualDestinations) -> None:
        super().__init__(watchers, KIND)
        self.destinations = destinations

    def add_behind(self, conn: int, key: Identifier, info: Command, destination: ActiveMQDestination) -> None:
        """Reports a consumer, if virtual destinations are before its own."""
        if not isinstance(info, ConsumerInfo) or info.browser:
            return
        found: list[ActiveMQDestination] = []
        for part in parts_of(destination):
            found.extend(self.destinations.before(part))
        if not found:
            return
        names = [f"{'queue' if is_queue(each) else 'topic'}://{each.physical_name}" for each in found]
        virtual = found[0] if len(found) == 1 else ActiveMQTopic(",".join(names))
        self.add(conn, key, _consumer_of(virtual, info), virtual)


class ConsumerAdvisories(EndpointAdvisories):
    """The consumers of a node. Those behind virtual destinations are told with `virtual`, too."""

    def __init__(self, watchers: Watchers, virtual: VirtualConsumers) -> None:
        super().__init__(watchers, CONSUMER)
        self.virtual = virtual

    def add(self, conn: int, key: Identifier, info: Command, destination: ActiveMQDestination) -> None:
        if self.virtual.destinations.config.virtual_demand:
            self.virtual.add_behind(conn, key, info, destination)
        super().add(conn, key, info, destination)

    def remove(self, conn: int, key: Identifier) -> None:
        self.virtual.remove(conn, key)
        super().remove(conn, key)


class VirtualQueues(AdvisorySource):
    """The queues behind virtual destinations, as consumers of these: they want messages without a consumer, too."""

    def __init__(self, watchers: Watchers, destinations: VirtualDestinations, node_id: str) -> None:
        self.watchers = watchers
        self.destinations = destinations
        self.node_id = node_id

    def replay(self, watcher: Watcher) -> None:
        if self.destinations.config.virtual_demand_of_queues and watcher.hears_of(VIRTUAL):
            for queue in list(self.destinations.queues.by_name.values()):
                for topic, info in self.told_of(queue):
                    self.watchers.replay(watcher, NO_CONNECTION, topic, info, {})

    def told_of(self, queue: Queue) -> list[tuple[str, ConsumerInfo]]:
        """Returns the advisories of a queue: topic and consumer."""
        config, spec = self.destinations.config, queue.spec
        if not config.virtual_demand_of_queues or spec.internal or spec.is_temporary():
            return []
        destination = destination_of(spec, config)
        if not is_queue(destination) or is_composite(destination) or spec.address.startswith(HIDDEN):
            return []
        consumer_id = ConsumerId(f"ID:{self.node_id}", QUEUES, queue.id)
        return [
            (topic_of(KIND, each), ConsumerInfo(consumer_id, destination=each, prefetch_size=PREFETCH))
            for each in self.destinations.before(destination)
        ]


class VirtualQueueWatch(ClientObserver):
    """Reports the queues that come and go."""

    def __init__(self, advisories: VirtualQueues) -> None:
        self.advisories = advisories

    def on_queue_added(self, now: int, queue: Queue) -> None:
        for topic, info in self.advisories.told_of(queue):
            self.advisories.watchers.publish(NO_CONNECTION, topic, info, {})

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        for topic, info in self.advisories.told_of(queue):
            self.advisories.watchers.publish(NO_CONNECTION, topic, RemoveInfo(info.consumer_id), {})


def _consumer_of(destination: ActiveMQDestination, info: ConsumerInfo) -> ConsumerInfo:
    """Returns a consumer as one of another destination."""
    return ConsumerInfo(
        info.consumer_id,
        destination=destination,
        prefetch_size=info.prefetch_size,
        client_id=info.client_id,
        selector=info.selector,
        priority=info.priority,
        broker_path=info.broker_path,
        network_subscription=info.network_subscription,
        network_consumer_path=info.network_consumer_path,
    )
