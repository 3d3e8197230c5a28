"""Consumers of other protocols as OpenWire describes consumers: they are demand for the bridges of other brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.routing.virtual_topics import virtual_topics
from atalanta.kernel.sessions.session_consumer import SessionConsumer
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import ConsumerId
from atalanta.wire.openwire.conversion.destination import classic_name
from atalanta.wire.openwire.conversion.text_bounds import fits_tight
from atalanta.wire.openwire.server.advisories.subscription_name import subscription_parts

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.settings.broker_config import BrokerConfig

OPENWIRE: Final = "OPENWIRE"
PREFETCH: Final = 1_000
# Numbers of sessions in the ids of consumers.
CLIENTS: Final = 0
SUBSCRIPTIONS: Final = 1
ELSEWHERE: Final = 2
BROKERS_NAMES: Final = "AMQ"  # in the names of message fields that selectors of CORE have
COMPOSITE: Final = ","  # a name with it would mean several destinations: OpenWire clients are not told of it
HIDDEN: Final = ("$", "activemq.management", "activemq.notifications")  # the broker's own names


def described(consumer: QueueConsumer, node_id: str, config: BrokerConfig) -> ConsumerInfo | None:
    """Returns the description of a client's consumer; None if it is no demand, or if OpenWire describes it itself."""
    spec = consumer.queue.spec
    if not isinstance(consumer, SessionConsumer) or spec.internal or spec.address.startswith(HIDDEN):
        return None
    session = consumer.session
    if session.client.protocol == OPENWIRE or session.identity.cluster:
        return None
    info = consumer_info(consumer, node_id, config)
    return None if is_composite(info.destination) else info


def consumer_info(consumer: SessionConsumer, node_id: str, config: BrokerConfig) -> ConsumerInfo:
    """Returns the description of a client's consumer of any protocol."""
    spec = consumer.queue.spec
    session = consumer.session
    selector = consumer.selector
    subscribed = is_subscription(spec, config)
    client_id, name = subscription_parts(spec.name) if subscribed else (session.client.client_id, None)
    return ConsumerInfo(
        ConsumerId(f"ID:{node_id}", CLIENTS, consumer.sequential_id),
        destination=destination_of(spec, config),
        prefetch_size=PREFETCH,
        client_id=client_id,
        subscription_name=name,
        selector=classic_selector(spec.filter_text if selector is None else selector.text),
        priority=min(max(consumer.priority, -128), 127),
    )


def subscriptions(
    queues: QueueRegistry, node_id: str, config: BrokerConfig
) -> list[tuple[QueueSpec, ConsumerInfo]]:
    """Returns the durable subscriptions of topics, also those without a consumer, with their queues."""
    found: list[tuple[QueueSpec, ConsumerInfo]] = []
    for queue in queues.by_name.values():
        spec = queue.spec
        if is_subscription(spec, config) and not spec.address.startswith(HIDDEN):
            client_id, name = subscription_parts(spec.name)
            consumer_id = ConsumerId(f"ID:{node_id}", SUBSCRIPTIONS, queue.id)
            destination = destination_of(spec, config)
            if is_composite(destination):
                continue
            info = ConsumerInfo(
                consumer_id, destination=destination, prefetch_size=PREFETCH,
                selector=classic_selector(spec.filter_text),
                client_id=client_id, subscription_name=name,
            )  # fmt: skip
            found.append((spec, info))
    return found


def classic_selector(text: str | None) -> str | None:
    """Returns a selector that Classic understands as the broker does; None: it gets all messages."""
    return None if text is None or BROKERS_NAMES in text or not fits_tight(text) else text


def destination_of(spec: QueueSpec, config: BrokerConfig) -> ActiveMQDestination:
    """Returns the destination that an OpenWire client consumes to get the messages of the queue."""
    if spec.routing_type == ANYCAST or _of_virtual_topic(spec, config):
        return ActiveMQQueue(classic_name(spec.name, config.wildcard))
    return ActiveMQTopic(classic_name(spec.address, config.wildcard))


def _of_virtual_topic(spec: QueueSpec, config: BrokerConfig) -> bool:
    """Returns whether the queue is a consumer of a virtual topic."""
    topic = virtual_topics(config.virtual_topic_forms).topic_of(spec.name)
    return topic is not None and topic.name == classic_name(spec.address, config.wildcard)


def is_composite(destination: ActiveMQDestination | None) -> bool:
    """Returns True for a name that OpenWire clients would take for several."""
    return destination is not None and COMPOSITE in (destination.physical_name or "")


def is_subscription(spec: QueueSpec, config: BrokerConfig) -> bool:
    """Returns True for the queue of a durable subscription of a topic."""
    if spec.routing_type == ANYCAST or not spec.durable or spec.is_temporary() or spec.internal:
        return False
    return not _of_virtual_topic(spec, config)
