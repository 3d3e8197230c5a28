"""The advisories of one node (AdvisoryBroker of ActiveMQ Classic)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.wire.openwire.server.advisories.consumers import ConsumerAdvisories, OtherConsumers
from atalanta.wire.openwire.server.advisories.consumers_elsewhere import ConsumersElsewhere
from atalanta.wire.openwire.server.advisories.temporary_destinations import TemporaryDestinations
from atalanta.wire.openwire.server.advisories.watchers import Watchers

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.settings.broker_config import BrokerConfig


class Advisories:
    """The watchers, and what they hear of. `others` observes the clients of other protocols."""

    def __init__(self, node_id: str, config: BrokerConfig, timers: Timers, addresses: AddressRegistry) -> None:
        self.watchers = Watchers(node_id, config.name)
        self.temporary = TemporaryDestinations(self.watchers)
        self.consumers = ConsumerAdvisories(self.watchers)
        self.watchers.sources = [self.temporary, self.consumers]
        self.elsewhere = ConsumersElsewhere(self.consumers, node_id, timers, addresses)
        self.others = OtherConsumers(self.consumers, node_id, config.wildcard)
