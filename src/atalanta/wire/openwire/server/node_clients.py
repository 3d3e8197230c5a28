"""The state that the OpenWire connections of one node share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.wire.openwire.server.advisories.advisories import Advisories
from atalanta.wire.openwire.server.bridge.node_demands import NodeDemands
from atalanta.wire.openwire.server.bridge.stuck_queues import StuckQueues
from atalanta.wire.openwire.server.sessions.keep_alive import KeepAlives
from atalanta.wire.openwire.server.sessions.pulls import Pulls
from atalanta.wire.openwire.server.sessions.wildcard_queues import WildcardQueues

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput


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
