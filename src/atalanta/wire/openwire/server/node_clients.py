"""The state that the OpenWire connections of one node share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.server.advisories.advisories import Advisories
from atalanta.wire.openwire.server.bridge.node_demands import NodeDemands
from atalanta.wire.openwire.server.bridge.refusals import Refusals
from atalanta.wire.openwire.server.bridge.stuck_queues import StuckQueues
from atalanta.wire.openwire.server.sessions.keep_alive import KeepAlives
from atalanta.wire.openwire.server.sessions.pulls import Pulls
from atalanta.wire.openwire.server.sessions.wildcard_queues import WildcardQueues

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput

BRIDGES_MAX: Final = 1_000  # that have refused messages


class NodeClients:
    """The shared state. `clients` are the connections by client id, which is unique among OpenWire clients."""

    def __init__(self, node_id: str, config: BrokerConfig, timers: Timers, queues: QueueRegistry) -> None:
        self.broker_name: str = config.name
        self.clients: dict[str, OpenWireOutput] = {}
        self.advisories = Advisories(node_id, config)
        self.keep_alives = KeepAlives(timers)
        self.pulls = Pulls(timers)
        self.wildcard_queues = WildcardQueues(timers)
        self.demands = NodeDemands()
        self.stuck_queues = StuckQueues(timers, queues)
        self.refusals: dict[str, Refusals] = {}

    def refusals_of(self, client_id: str) -> Refusals:
        """Returns what another broker has refused of a bridge, which may have had earlier connections."""
        if len(self.refusals) >= BRIDGES_MAX:
            self.refusals.clear()
        return self.refusals.setdefault(client_id, Refusals())
