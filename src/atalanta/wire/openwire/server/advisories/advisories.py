"""The advisories of one node (AdvisoryBroker of ActiveMQ Classic)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.wire.openwire.server.advisories.connections import (
    ConnectionAdvisories,
    ConnectionWatch,
)
from atalanta.wire.openwire.server.advisories.consumers_elsewhere import ConsumersElsewhere
from atalanta.wire.openwire.server.advisories.destinations import (
    DestinationAdvisories,
    DestinationWatch,
)
from atalanta.wire.openwire.server.advisories.endpoints import (
    CONSUMER,
    PRODUCER,
    EndpointAdvisories,
)
from atalanta.wire.openwire.server.advisories.guarded_observer import GuardedObserver
from atalanta.wire.openwire.server.advisories.message_events import MessageEvents
from atalanta.wire.openwire.server.advisories.other_consumers import OtherConsumers
from atalanta.wire.openwire.server.advisories.temporary_destinations import TemporaryDestinations
from atalanta.wire.openwire.server.advisories.watchers import Watchers

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.sessions.clients import ClientObserver
    from atalanta.kernel.settings.broker_config import BrokerConfig


class Advisories:
    """The watchers, and what they hear of. `observers` are to be told what the broker does."""

    def __init__(self, node_id: str, config: BrokerConfig, timers: Timers, queues: QueueRegistry) -> None:
        wildcard = config.wildcard
        self.watchers = Watchers(node_id, config.name, timers, queues.messages)
        self.temporary = TemporaryDestinations(self.watchers)
        self.consumers = EndpointAdvisories(self.watchers, CONSUMER)
        self.producers = EndpointAdvisories(self.watchers, PRODUCER)
        self.connections = ConnectionAdvisories(self.watchers)
        self.elsewhere = ConsumersElsewhere(self.consumers, node_id, timers, queues.addresses)
        destinations = DestinationAdvisories(self.watchers, queues)
        self.watchers.use([self.temporary, self.consumers, self.producers, self.connections, destinations])
        told: list[ClientObserver] = [
            OtherConsumers(self.consumers, node_id, wildcard),
            self.elsewhere,
            ConnectionWatch(self.connections, node_id),
            DestinationWatch(destinations),
            MessageEvents(self.watchers, node_id, wildcard, self.temporary.kinds),
        ]
        self.observers: list[ClientObserver] = [GuardedObserver(self.watchers, each) for each in told]
