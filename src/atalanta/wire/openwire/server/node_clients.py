"""The state that the OpenWire connections of one node share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.heart_beats import Beat, HeartBeats
from atalanta.wire.openwire.commands.connections import KeepAliveInfo
from atalanta.wire.openwire.conversion.message_id import Correlations
from atalanta.wire.openwire.options import NS_PER_MS
from atalanta.wire.openwire.server.advisories.advisories import Advisories
from atalanta.wire.openwire.server.bridge.node_bridges import NodeBridges
from atalanta.wire.openwire.server.cluster_clients import ClusterClients
from atalanta.wire.openwire.server.held_client_ids import HeldClientIds
from atalanta.wire.openwire.server.peer_brokers import PeerBrokers
from atalanta.wire.openwire.server.returned_clients import ReturnedClients
from atalanta.wire.openwire.server.sessions.inflations import Inflations
from atalanta.wire.openwire.server.sessions.pulls import Pulls
from atalanta.wire.wildcard_queues import WildcardQueues

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers, Wire
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput
    from atalanta.wire.openwire.wire_format import WireFormat

KEEP_ALIVE_TIMER: Final = "wire.openwire.alive"
# A client closes a connection that was silent for the agreed time (InactivityMonitor of activemq-client): the node
# writes at the latest after a third of it.
PARTS: Final = 3
PERIOD_NS_MIN: Final = 50_000_000  # however impatient a client says it is: it may have many connections
SENT_NS: Final = 60_000_000_000  # a client that comes back within this time did not stay where it was sent
SENT_MAX: Final = 10_000
QUEUES_TIMER: Final = "wire.openwire.queues"


class NodeClients:
    """The shared state. `clients` are the connections by client id, which is unique among OpenWire clients.

    `sent`: the time (ns) at which a client was sent to another node, and that node, by client id.
    """

    def __init__(self, node_id: str, config: BrokerConfig, timers: Timers, queues: QueueRegistry) -> None:
        self.broker_name: str = config.name
        self.clients: dict[str, OpenWireOutput] = {}
        self.advisories = Advisories(node_id, config, timers, queues)
        self.keep_alives = HeartBeats(timers, KEEP_ALIVE_TIMER)
        self.pulls = Pulls(timers)
        self.inflations = Inflations(timers)
        self.correlations = Correlations()
        self.wildcard_queues = WildcardQueues(timers, QUEUES_TIMER)
        self.bridges = NodeBridges(
            self.advisories, self.pulls, self.wildcard_queues, self.correlations, self.inflations, timers, queues
        )
        self.peers = PeerBrokers()
        self.cluster_clients = ClusterClients(self.peers)
        self.held_ids = HeldClientIds(timers)
        self.returned = ReturnedClients(timers)
        self.sent: dict[str, tuple[int, str]] = {}

    def begin_keep_alive(self, now: int, wire: Wire, conn: int, wire_format: WireFormat) -> Beat | None:
        """Returns the signs of life that this side has promised, which begin now; None if it has not."""
        inactivity_ns = wire_format.options.inactivity_ms * NS_PER_MS
        if inactivity_ns <= 0:
            return None
        frame = wire_format.encode(KeepAliveInfo())
        keep_alive = Beat(wire, conn, now, max(inactivity_ns // PARTS, PERIOD_NS_MIN), frame)
        self.keep_alives.add(now, keep_alive)
        return keep_alive

    def sent_away(self, now: int, connection: OpenWireOutput, node_id: str) -> None:
        """Records that a client was sent to another node."""
        self.cluster_clients.forget(connection.conn)
        if len(self.sent) >= SENT_MAX:
            self.sent = {name: sent for name, sent in self.sent.items() if now - sent[0] < SENT_NS}
        if len(self.sent) < SENT_MAX:
            self.sent[connection.client.client_id or ""] = (now, node_id)

    def sent_to(self, now: int, client_id: str) -> str | None:
        """Returns, once, the node to which a client was sent a moment ago; None if it was not."""
        at, node_id = self.sent.pop(client_id, (now - SENT_NS, ""))
        return node_id if now - at < SENT_NS else None
