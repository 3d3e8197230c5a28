"""Consumers of other protocols, as advisories tell of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.wire.openwire.server.advisories.described_consumer import (
    described,
    destination_of,
    is_composite,
    is_subscription,
)
from atalanta.wire.openwire.server.advisories.endpoints import NO_CONNECTION
from atalanta.wire.openwire.server.advisories.subscription_name import subscription_parts

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.wildcard import WildcardConfiguration
    from atalanta.wire.openwire.commands.identifiers import ConsumerId
    from atalanta.wire.openwire.server.advisories.endpoints import EndpointAdvisories


class OtherConsumers(ClientObserver):
    """Reports the consumers of other protocols, and durable subscriptions that end."""

    def __init__(self, advisories: EndpointAdvisories, node_id: str, wildcard: WildcardConfiguration) -> None:
        self.advisories = advisories
        self.node_id = node_id
        self.wildcard = wildcard
        self.ids: dict[int, ConsumerId] = {}  # by the broker's number of the consumer

    def on_consumer_added(self, now: int, consumer: Consumer) -> None:
        info = described(consumer, self.node_id, self.wildcard)
        if info is not None and info.consumer_id is not None and info.destination is not None:
            self.ids[consumer.sequential_id] = info.consumer_id
            self.advisories.add(NO_CONNECTION, info.consumer_id, info, info.destination)

    def on_consumer_removed(self, now: int, consumer: Consumer) -> None:
        consumer_id = self.ids.pop(consumer.sequential_id, None)
        if consumer_id is not None:
            self.advisories.remove(NO_CONNECTION, consumer_id)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        if is_subscription(queue.spec):
            destination = destination_of(queue.spec, self.wildcard)
            client_id, name = subscription_parts(queue.name)
            if not is_composite(destination):
                self.advisories.subscription_removed(destination, client_id, name)
