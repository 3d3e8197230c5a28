"""The state that the OpenWire connections of one node share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.wire.openwire.conversion.message_id import Correlations
from atalanta.wire.openwire.server.sessions.advisories import Advisories
from atalanta.wire.openwire.server.sessions.keep_alive import KeepAlives
from atalanta.wire.openwire.server.sessions.pulls import Pulls
from atalanta.wire.openwire.server.sessions.wildcard_queues import WildcardQueues

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput


class NodeClients:
    """The shared state. `clients` are the connections by client id, which is unique among OpenWire clients."""

    def __init__(self, node_id: str, broker_name: str, timers: Timers) -> None:
        self.broker_name = broker_name
        self.clients: dict[str, OpenWireOutput] = {}
        self.advisories = Advisories(node_id, broker_name)
        self.keep_alives = KeepAlives(timers)
        self.pulls = Pulls(timers)
        self.correlations = Correlations()
        self.wildcard_queues = WildcardQueues(timers)
