"""The state that the bridges of one node share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.server.bridge.demand_shares import DemandShares
from atalanta.wire.openwire.server.bridge.node_demands import NodeDemands
from atalanta.wire.openwire.server.bridge.other_ways import OtherWays
from atalanta.wire.openwire.server.bridge.refusals import Refusals
from atalanta.wire.openwire.server.bridge.refused_demands import RefusedDemands
from atalanta.wire.openwire.server.bridge.stuck_queues import StuckQueues

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.wire.openwire.conversion.message_id import Correlations
    from atalanta.wire.openwire.server.advisories.advisories import Advisories
    from atalanta.wire.openwire.server.sessions.inflations import Inflations
    from atalanta.wire.openwire.server.sessions.pulls import Pulls
    from atalanta.wire.wildcard_queues import WildcardQueues

BRIDGES_MAX: Final = 1_000  # that have refused messages


class NodeBridges:
    """The demands of all bridges, the queues that they watch, and what their sessions need of the node."""

    def __init__(
        self, advisories: Advisories, pulls: Pulls, wildcard_queues: WildcardQueues, correlations: Correlations,
        inflations: Inflations, timers: Timers, queues: QueueRegistry,
    ) -> None:  # fmt: skip
        self.inflations = inflations
        self.advisories = advisories
        self.pulls = pulls
        self.wildcard_queues = wildcard_queues
        self.correlations = correlations
        self.demands = NodeDemands()
        self.demand_shares = DemandShares()
        self.stuck_queues = StuckQueues(timers, queues)
        self.refused_demands = RefusedDemands(timers)
        self.other_ways = OtherWays(timers)
        self.refusals: dict[str, Refusals] = {}

    def refusals_of(self, client_id: str) -> Refusals:
        """Returns what another broker has refused of a bridge, which may have had earlier connections."""
        if len(self.refusals) >= BRIDGES_MAX:
            self.refusals.clear()
        return self.refusals.setdefault(client_id, Refusals())
