"""Consumers of other protocols as OpenWire describes consumers: they are demand for the bridges of other brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.sessions.session_consumer import SessionConsumer
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import ConsumerId
from atalanta.wire.openwire.conversion.destination import VIRTUAL_CONSUMER, classic_name
from atalanta.wire.openwire.server.advisories.subscription_name import subscription_parts

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.kernel.routing.wildcard import WildcardConfiguration

OPENWIRE: Final = "OPENWIRE"
PREFETCH: Final = 1_000
BROKERS_NAMES: Final = "AMQ"  # in the names of message fields that selectors of CORE have
HIDDEN: Final = ("$", "activemq.")  # the broker's own queues, management and notifications


def described(consumer: Consumer, node_id: str, wildcard: WildcardConfiguration) -> ConsumerInfo | None:
    """Returns the description of a client's consumer; None if it is no demand, or if OpenWire describes it itself."""
    spec = consumer.queue.spec
    if not isinstance(consumer, SessionConsumer) or spec.internal or spec.address.startswith(HIDDEN):
        return None
    session = consumer.session
    if session.client.protocol == OPENWIRE or session.identity.cluster:
        return None
    text = None if consumer.selector is None else consumer.selector.text
    client_id, name = subscription_parts(spec.name) if is_subscription(spec) else (session.client.client_id, None)
    return ConsumerInfo(
        ConsumerId(f"ID:{node_id}", 0, consumer.sequential_id),
        destination=destination_of(spec, wildcard),
        prefetch_size=PREFETCH,
        client_id=client_id,
        subscription_name=name,
        selector=None if text is None or BROKERS_NAMES in text else text,
        priority=min(max(consumer.priority, -128), 127),
    )


def destination_of(spec: QueueSpec, wildcard: WildcardConfiguration) -> ActiveMQDestination:
    """Returns the destination that an OpenWire client consumes to get the messages of the queue."""
    if spec.routing_type == ANYCAST or spec.name.startswith(f"{VIRTUAL_CONSUMER}."):
        return ActiveMQQueue(classic_name(spec.name, wildcard))
    return ActiveMQTopic(classic_name(spec.address, wildcard))


def is_subscription(spec: QueueSpec) -> bool:
    """Returns True for the queue of a durable subscription of a topic."""
    if spec.routing_type == ANYCAST or not spec.durable or spec.is_temporary() or spec.internal:
        return False
    return not spec.name.startswith(f"{VIRTUAL_CONSUMER}.")
