"""Cluster connection of a node: a link to each member, and the bindings of the members.

The node finds members by static connectors or a discovery group, with a Locator for each. It learns further members
from topologies (cluster/connection/members.py). Each member gets a PeerRecord with a durable store-and-forward
queue and a Bridge. A peer that crashes keeps its queue and its bindings, which attract no messages while it is
away. A peer that sends DISCONNECT keeps the queue only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.config import OFF_WITH_REDISTRIBUTION as OFF_WITH_REDISTRIBUTION_NAME
from atalanta.cluster.config import STRICT as STRICT_NAME
from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.cluster.connection.bridge import Bridge
from atalanta.cluster.connection.departed_peers import DEPARTURE, Departures
from atalanta.cluster.connection.dial_back import DIAL_BACK, DialBack
from atalanta.cluster.connection.discovered import DiscoveredMembers
from atalanta.cluster.connection.members import Members
from atalanta.cluster.connection.peer import PeerRecord
from atalanta.cluster.connection.scanner import LOCATE, Scanner
from atalanta.cluster.connection.topology_subscribers import Subscribers
from atalanta.cluster.links.retry import Attempts
from atalanta.cluster.parked.parked_messages import MARK, PARKED, ParkedMessages
from atalanta.cluster.topology import Member, Topology
from atalanta.kernel.queue.spec import MULTICAST, QueueSpec
from atalanta.kernel.routing.bindings import OFF, OFF_WITH_REDISTRIBUTION, ON_DEMAND, STRICT
from atalanta.message.encoding.digits import all_digits
from atalanta.wire.connection import Connection
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connections import Clusters
    from atalanta.kernel.queue.queue import Queue

BRIDGE: Final = "bridge."
ANNOUNCE: Final = "announce"
CONNECT_TIMEOUT_MAX_MS: Final = 600_000


class Cluster:
    """The state of a cluster connection: `mode` as in bindings.py, `peers` by node id. `prefix` begins all keys."""

    def __init__(self, clusters: Clusters, config: ClusterConnectionConfig, number: int) -> None:
        self.clusters = clusters
        self.settings = clusters.settings
        self.config = config
        self.prefix: str = f"cluster.{number}."
        self.broker = clusters.broker
        self.notifications = clusters.notifications
        self.host = clusters.host
        self.links = clusters.links
        self.wire = clusters.wire
        self.node_id = self.broker.node_id
        self.notification_address = self.broker.config.management_notification_address
        self.mode = load_balancing(config)
        self.peers: dict[str, PeerRecord] = {}
        self.attempts = Attempts(config)
        self.stopping: bool = False
        self.finds_by_name: bool = False  # cluster/discovery/dns.py looks for members too
        self.scanner = Scanner(self)
        self.members = Members(self)
        self.parked = ParkedMessages(self)
        self.departures = Departures(self)
        self.dial_back = DialBack(self)
        self.subscribers = Subscribers(self)

    @property
    def topology(self) -> Topology:
        return self.members.topology

    # -- life -----------------------------------------------------------------------------------
    def start(self, now: int) -> None:
        self.members.start(now)
        self.parked.start(now)
        for name in self.config.static_connectors:
            self.find(now, name, self.transport(name))
        if self.config.discovery_group is not None:
            discovery = self.clusters.discovery
            discovery.listen(now, self.config.discovery_group, DiscoveredMembers(self))

    def stop(self, now: int) -> None:
        """Stops dialing. Each link sends its own DISCONNECT (ClusterLink.stop)."""
        self.stopping = True

    def key(self, rest: str) -> str:
        """Returns the key of a dial or timer of this connection."""
        return self.prefix + rest

    def own_member(self) -> Member:
        return self.members.own()

    def transport(self, name: str) -> TransportConfiguration:
        return self.settings.transport(name)

    def unique_name(self) -> str:
        return self.broker.ids.uuid().hex()

    def dial(self, key: str, target: TransportConfiguration) -> None:
        """Dials a connector. The TLS settings come from a connector of this node.

        The connector that a peer announces holds no secrets, and it proves nothing. A node that announces TLS for
        itself never logs in at another node over a plain connection, whatever that node announces. The only
        exception is a static connector without TLS.
        """
        connectors = self.settings.connectors
        named = connectors.get(target.name)
        static = named is not None and target.name in self.config.static_connectors
        own = connectors[self.config.connector]
        timeout_ms = connect_timeout_ms(target)
        if named is not None and static:
            timeout_ms = named.connect_timeout_ms
        wanted = target.parameters.get("sslEnabled", "").lower() == "true"
        if not wanted and (static or own.tls is None):
            self.links.dial_within(key, target.host, target.port, timeout_ms)
        elif named is not None and named.tls is not None:
            self.links.dial_secure(key, target.host, target.port, target.name, timeout_ms)
        else:
            self.links.dial_secure(key, target.host, target.port, own.name, timeout_ms)

    # -- finding members ------------------------------------------------------------------------
    def find(self, now: int, name: str, target: TransportConfiguration) -> None:
        """Adds a connector by which members may be found."""
        self.scanner.find(now, name, target)

    def forget(self, name: str) -> None:
        """Removes a discovered connector that is no longer announced."""
        self.scanner.forget(name)

    # -- peers ----------------------------------------------------------------------------------
    def bridge_to(self, now: int, member: Member) -> None:
        """Opens a link to a member that is new or updated, unless this connection only accepts links."""
        if member.primary is None or self.stopping or not self._wants(member.primary):
            return
        record = self.peers.get(member.node_id)
        if record is None:
            record = PeerRecord(self, member.node_id, self._forward_queue(now, member.node_id))
            self.peers[member.node_id] = record
            self.departures.back(member.node_id)
        record.member = member
        if record.bridge is None and not record.dialing:
            record.dialing = True
            self.dial(self.key(BRIDGE + member.node_id), member.primary)

    def _wants(self, transport: TransportConfiguration) -> bool:
        """Tells if this node opens links to that connector.

        The answer is no if there is nothing to find members by (ClusterConnectionImpl.nodeUP without a locator).
        With `allow-direct-connections-only` it is yes for static connectors only.
        """
        config = self.config
        known = config.static_connectors or self.finds_by_name
        if config.discovery_group is None and not known:
            return False
        if not config.allow_direct_connections_only:
            return True
        return any(
            self.transport(name).same_target(transport) for name in config.static_connectors
        )

    def forward_name(self, node_id: str) -> str:
        """Returns the queue name `$.artemis.internal.sf.<cluster>.<node>`."""
        return f"{self.settings.internal_naming_prefix}sf.{self.config.name}.{node_id}"

    def _forward_queue(self, now: int, node_id: str) -> Queue:
        """Returns the store-and-forward queue of a node; creates it durable and internal."""
        name = self.forward_name(node_id)
        queue = self.broker.queues.get(name)
        if queue is None:
            spec = QueueSpec(name, name, MULTICAST)
            spec.internal = True
            queue = self.broker.queue_registry.create(now, spec)
        self.broker.addresses[name].internal = True
        return queue

    def expect(self, now: int, node_id: str) -> Queue:
        """Returns the store-and-forward queue of a node.

        A node that is no peer counts as away (cluster/parked/parked_messages.py).
        """
        queue = self._forward_queue(now, node_id)
        if node_id not in self.peers:
            self.parked.expect(now, node_id)
        return queue

    def owner_of(self, cluster_name: str) -> str | None:
        """Returns the id of the peer whose bridge brought that binding."""
        for node_id, record in self.peers.items():
            if cluster_name in record.bindings.bindings:
                return node_id
        return None

    # -- connections ----------------------------------------------------------------------------
    def on_dialed(self, now: int, conn: int, key: str) -> Connection | None:
        if self.stopping:
            return None
        rest = key[len(self.prefix) :]
        if rest.startswith(LOCATE):
            return self.scanner.dialed(now, conn, rest[len(LOCATE) :])
        if rest.startswith(BRIDGE):
            record = self.peers.get(rest[len(BRIDGE) :])
            if record is None or record.bridge is not None:
                return None
            record.dialing = False
            bridge = Bridge(self, conn, now, record)
            record.bridge = bridge
            bridge.open(now, None if record.member is None else record.member.primary)
            return bridge
        return None

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        rest = key[len(self.prefix) :]
        if rest.startswith(LOCATE):
            self.scanner.lost(now, rest[len(LOCATE) :])
            return
        record = self.peers.get(rest[len(BRIDGE) :])
        if record is not None:
            record.dialing = False
            self.dial_back.on_unreachable(record, why)
            self._retry(now, record)

    def bridge_open(self, now: int, record: PeerRecord) -> None:
        self.attempts.succeeded(record.node_id)
        self.scanner.wake(now)
        self.dial_back.on_link(now, record)

    def _retry(self, now: int, record: PeerRecord) -> None:
        """Sets the timer of the next attempt, or drops the peer if its attempts are used up.

        A dropped peer gets neither link nor messages until the topology has an update of it.
        """
        if self.stopping:
            return
        pause_ms = self.attempts.next_pause_ms(record.node_id)
        if pause_ms >= 0:
            key = self.key(BRIDGE + record.node_id)
            self.broker.timers.set(key, now + pause_ms * 1_000_000)
            return
        self.told("cluster_gave_up", record.node_id, "its attempts are used up")
        self._drop(now, record)

    def _drop(self, now: int, record: PeerRecord) -> None:
        record.bindings.remove_all(now)
        self.peers.pop(record.node_id, None)
        self.attempts.forget(record.node_id)
        self.dial_back.forget(record.node_id)

    def bridge_lost(self, now: int, bridge: Bridge, why: str) -> None:
        record = bridge.record
        if record.bridge is bridge:
            record.bridge = None
        self.parked.lost(now, record)
        self.broker.trace.event("bridge_lost", {"node": record.node_id, "why": why})
        member = self.topology.members.get(record.node_id)
        if member is not None:
            self.members.gone(now, record.node_id, member.event_id)
        if bridge.said_goodbye:
            if bridge.left_to:
                self.departures.add(now, record, bridge.left_to)
            self._drop(now, record)
            return
        record.bindings.disconnected()
        self._retry(now, record)

    # -- time -------------------------------------------------------------------------------------
    def on_timer(self, now: int, key: str) -> None:
        if self.stopping:
            return
        rest = key[len(self.prefix) :]
        if rest == ANNOUNCE:
            self.members.announce_again(now)
        elif rest.startswith(LOCATE):
            self.scanner.dial(rest[len(LOCATE) :])
        elif rest.startswith(BRIDGE):
            self._dial_bridge(now, rest)
        elif rest.startswith(DIAL_BACK):
            self.dial_back.on_timer(now, rest[len(DIAL_BACK) :])
        elif rest.startswith(PARKED):
            self.parked.on_timer(now, rest[len(PARKED) :])
        elif rest.startswith(MARK):
            self.parked.on_mark_timer(now, rest[len(MARK) :])
        elif rest.startswith(DEPARTURE):
            self.departures.on_timer(now, rest[len(DEPARTURE) :])

    def _dial_bridge(self, now: int, rest: str) -> None:
        record = self.peers.get(rest[len(BRIDGE) :])
        if record is None or record.bridge is not None or record.dialing or self.stopping:
            return
        member = self.topology.members.get(record.node_id) or record.member
        if member is not None and member.primary is not None:
            record.dialing = True
            self.dial(self.key(rest), member.primary)

    def flush(self, now: int) -> None:
        for record in self.peers.values():
            if record.bridge is not None:
                record.bridge.settle(now)

    # -- events ---------------------------------------------------------------------------------
    def told(self, event: str, node_id: str, text: str) -> None:
        self.broker.trace.event(event, {"node": node_id, "why": text})


def load_balancing(config: ClusterConnectionConfig) -> int:
    """Returns the mode of message-load-balancing. config/sections/cluster.py applies forward-when-no-consumers."""
    if config.message_load_balancing == STRICT_NAME:
        return STRICT
    if config.message_load_balancing == OFF_WITH_REDISTRIBUTION_NAME:
        return OFF_WITH_REDISTRIBUTION
    if config.message_load_balancing == "OFF":
        return OFF
    return ON_DEMAND


def connect_timeout_ms(target: TransportConfiguration) -> int:
    """Returns connect-timeout-millis of a connector, at most 600 s; -1 if it is missing, 0 or no number."""
    text = target.parameters.get("connect-timeout-millis", "")
    if not all_digits(text, 9):
        return -1
    return min(int(text), CONNECT_TIMEOUT_MAX_MS) or -1
