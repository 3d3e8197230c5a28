"""Cluster connection of a node: a link to each member, and the bindings of the members.

The node finds members by static connectors or a discovery group, with a Locator for each. It learns further members
from topologies (cluster/topology/members.py). Each member gets a PeerRecord with a durable store-and-forward
queue and a ClusterBridge. A peer that crashes keeps its queue and its bindings, which attract no messages while it is
away. A peer that sends DISCONNECT keeps the queue only, unless it has a backup that may take over.

A peer is tried at its primary's and its backup's connector in turn (BridgeImpl.nodeUP). After a failover it has the
same node id, so its queue and its bindings go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.config import OFF_WITH_REDISTRIBUTION as OFF_WITH_REDISTRIBUTION_NAME
from atalanta.cluster.config import STRICT as STRICT_NAME
from atalanta.cluster.connection.bridge import ClusterBridge, ClusterBridgeListener
from atalanta.cluster.connection.dial_back import DIAL_BACK, DialBack
from atalanta.cluster.connection.dialer import MemberDialer
from atalanta.cluster.connection.peer import PeerRecord
from atalanta.cluster.connection.remote_bindings import RemoteBindings
from atalanta.cluster.connection.scanner import LOCATE, Scanner
from atalanta.cluster.links.retry import Attempts
from atalanta.cluster.store_and_forward.departures import DEPARTURE, Departures
from atalanta.cluster.store_and_forward.parked_messages import MARK, PARKED, ParkedMessages
from atalanta.cluster.topology.local_node import LocalNode
from atalanta.cluster.topology.members import ANNOUNCE, MemberListener, Members
from atalanta.cluster.topology.subscribers import TopologySubscribers
from atalanta.cluster.topology.topology import Member, Topology
from atalanta.kernel.queue.spec import MULTICAST, QueueSpec
from atalanta.kernel.routing.bindings import OFF, OFF_WITH_REDISTRIBUTION, ON_DEMAND, STRICT
from atalanta.wire.connection import ClientConnection, TransportConnection
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings
    from atalanta.cluster.connection.remote_bindings import RouteListener
    from atalanta.cluster.connection.remote_routes import RemoteRoutes
    from atalanta.cluster.discovery.discovery import Discovery
    from atalanta.cluster.links.proven_peers import ProvenPeers
    from atalanta.cluster.native_config import OwnSettings
    from atalanta.kernel.ports import Links
    from atalanta.kernel.queue.queue import Queue
    from atalanta.wire.core.packets.cluster import NodeAnnounce
    from atalanta.wire.server import WireServer

BRIDGE: Final = "bridge."
HALTED: Final = "the cluster connection was stopped"
LOGINS: Final = "logins"
LOGINS_NS: Final = 86_400 * 10**9  # how often it is recorded who is logged in


class ClusterConnection(MemberListener, ClusterBridgeListener):
    """The state of a cluster connection: `mode` as in bindings.py, `peers` by node id.

    `routes` and `route_listener` are those of the node. `number` counts the cluster connections of the node.
    """

    def __init__(
        self,
        config: ClusterConnectionConfig,
        number: int,
        settings: ClusterSettings,
        own: OwnSettings,
        host: WireServer,
        links: Links,
        discovery: Discovery,
        routes: RemoteRoutes,
        route_listener: RouteListener,
        proven_peers: ProvenPeers,
    ) -> None:
        broker = host.broker
        self.config = config
        self.settings = settings
        self.discovery = discovery
        self.routes = routes
        self.route_listener = route_listener
        self.proven_peers = proven_peers
        self.addresses = broker.addresses
        self.queues = broker.queue_registry
        self.local = LocalNode(
            config, settings, number, host, own.cluster_plain_password
        )
        self.mode = load_balancing(config)
        self.has_names = own.dns_text(config.name, number) is not None
        self.peers: dict[str, PeerRecord] = {}
        self.stopping: bool = False
        self.halted: bool = False  # by an operator, until it is started or the node starts again
        self.topology = Topology()
        self.subscribers = TopologySubscribers(self.local, self.topology)
        self.members = Members(self.local, self.topology, self.subscribers, self)
        self.attempts = Attempts(config)
        self.dialer = MemberDialer(config, settings, links)
        self.scanner = Scanner(self.members, self.attempts, self.dialer, self.trusts)
        self.parked = ParkedMessages(
            self.local,
            broker.mover,
            broker.router,
            self.queues,
            broker.values,
            own.parked_message_timeout_ms,
        )
        self.departures = Departures(
            self.local,
            broker.mover,
            self.queues,
            broker.caches,
            self.peers,
            routes.active,
            self.parked,
        )
        self.dial_back = DialBack(self.local)

    # -- life -----------------------------------------------------------------------------------
    def start(self, now: int) -> None:
        self.members.start(now)
        self.local.set_timer(LOGINS, now + LOGINS_NS)
        self.parked.start(now)
        for name in self.config.static_connectors:
            self.scanner.find(now, name, self.settings.transport(name))
        self._listen(now)

    def stop(self, now: int) -> None:
        """Stops dialing. Each link sends its own DISCONNECT (ClusterLink.stop)."""
        self.stopping = True
        self.scanner.stopping = True

    def halt(self, now: int) -> None:
        """Closes all links. What is routed to the members waits for them, as while they are away (parked_messages.py).

        Unlike in Artemis their bindings stay: durable subscriptions there miss nothing.
        """
        if self.halted:
            return
        self.halted = True
        self.scanner.halt(HALTED)
        for record in self.peers.values():
            self.local.cancel_timer(BRIDGE + record.node_id)
            record.dialing = False
            bridge = record.bridge
            if bridge is not None:
                record.bridge = None
                self._away(now, record, HALTED)
                bridge.close(HALTED)

    def resume(self, now: int) -> None:
        """Opens the links again, to the members that are known now."""
        if not self.halted:
            return
        self.halted = False
        self.scanner.resume(now)
        for member in list(self.topology.members.values()):
            if member.node_id != self.local.node_id:
                self.member_changed(now, member)
        for node_id in list(self.peers):
            self.attempts.forget(node_id)
            self._dial_bridge(now, node_id)

    def end(self, now: int) -> None:
        """Ends for good: links and bindings go, and members are forgotten."""
        self.halt(now)
        self.stop(now)
        if self.config.discovery_group is not None:
            self.discovery.unlisten(self.config.discovery_group, self.scanner)
        for record in list(self.peers.values()):
            self._drop(now, record)

    def reload(self, now: int, fresh: ClusterConnectionConfig) -> None:
        """Takes changed settings: all links are closed, and opened again with them. Messages wait meanwhile."""
        config = self.config
        if not config.differs(fresh):
            return
        stopped = self.halted
        self.halt(now)
        before, group = config.static_connectors, config.discovery_group
        config.take(fresh)
        self.mode = load_balancing(config)
        for record in self.peers.values():
            record.bindings.change_mode(self.mode)
        for name in before:
            if name not in config.static_connectors:
                self.scanner.forget(name)
        for name in config.static_connectors:
            self.scanner.find(now, name, self.settings.transport(name))
        if group != config.discovery_group:
            if group is not None:
                self.discovery.unlisten(group, self.scanner)
                self.scanner.forget_discovered(now)
            self._listen(now)
        self.local.trace.event("cluster_connection_changed", {"name": config.name})
        if not stopped:
            self.resume(now)

    def _listen(self, now: int) -> None:
        if self.config.discovery_group is not None:
            user = f"cluster-connection {self.config.name}"
            self.discovery.listen(now, self.config.discovery_group, self.scanner, user)

    def set_backup(self, now: int, backup: TransportConfiguration | None) -> None:
        """Announces the pair of this node and its backup, with a new event id, to all clients and members.

        The connector of a backup that has left (None) stays announced until another replaces it. Artemis members and
        clients keep it too (Topology.updateMember), and a backup that returns is found by those who wait for the pair.
        """
        known = self.local.backup
        if self.stopping or backup is None or (known is not None and known == backup):
            return
        self.members.set_backup(now, backup)
        self.announce_pair()

    def announce_pair(self) -> None:
        """Announces this node and its backup over the open links."""
        for record in self.peers.values():
            if record.bridge is not None and record.bridge.ready:
                record.bridge.announce_pair()

    # -- subscribers of the topology ------------------------------------------------------------
    def subscribe(self, connection: ClientConnection, is_cluster: bool) -> None:
        self.dial_back.on_subscribe(connection.conn, is_cluster)
        self.subscribers.add(connection)

    def unsubscribe(self, connection: ClientConnection) -> None:
        self.subscribers.remove(connection)
        self.dial_back.on_closed(connection.conn)

    def announced(self, now: int, connection: ClientConnection, packet: NodeAnnounce) -> None:
        """Handles NODE_ANNOUNCE: adds the peer to the topology and notifies all subscribers."""
        self.dial_back.on_announce(connection.conn, packet.node_id)
        if not connection.sent_password:
            self.proven_peers.forget(packet.node_id)
        elif packet.connector is not None and not packet.is_backup:
            secure = self.dialer.is_secure(packet.connector)
            self.proven_peers.logged_in(now, packet.node_id, packet.connector.address, secure)
        member = Member(
            packet.node_id,
            packet.event_id,
            None if packet.is_backup else packet.connector,
            packet.backup_connector if not packet.is_backup else packet.connector,
            packet.backup_group,
            packet.scale_down_group,
        )
        self.members.update(now, member)

    # -- peers ----------------------------------------------------------------------------------
    def is_linked(self, node_id: str) -> bool:
        record = self.peers.get(node_id)
        return record is not None and record.linked()

    def trusts(self, now: int, node_id: str, connector: TransportConfiguration) -> bool:
        """Returns whether a node that discovery names has proven that it knows the cluster's password.

        It has logged in here, or there is a link to its address. The way there has to be no less safe than before.
        """
        secure = self.dialer.is_secure(connector)
        if self.proven_peers.has(now, node_id, connector.address, secure):
            return True
        return any(
            record.linked() and record.leads_to(connector) and self._is_no_safer(record, secure)
            for record in self.peers.values()
        )

    def _is_no_safer(self, record: PeerRecord, secure: bool) -> bool:
        """Returns whether the link to a peer is no safer than a way with TLS, or without."""
        return secure or record.target is None or not self.dialer.is_secure(record.target)

    def member_changed(self, now: int, member: Member) -> None:
        """Opens a link to a member that is new or updated, unless this connection only accepts links."""
        if member.primary is None or self.stopping or self.halted or not self._dials(member.primary):
            return
        node_id = member.node_id
        record = self.peers.get(node_id)
        if record is None:
            forward = self._forward_queue(now, node_id)
            if forward is None:
                return
            record = PeerRecord(self._bindings(node_id, forward))
            self.peers[node_id] = record
            self.departures.forget(node_id)
        former = record.changed(member)
        bridge = record.bridge
        if bridge is not None and former is not None and former.followed_by(member):
            if not record.leads_to(member.primary):
                # The other half has taken over. The former one may be silent for a long time, but not closed.
                record.bridge = None
                self._away(now, record, "its backup has taken over")
                bridge.close("its backup has taken over")
        if record.bridge is None and not (record.dialing and record.leads_to(member.primary)):
            self._dial(record, member.primary)

    def _dial(self, record: PeerRecord, target: TransportConfiguration) -> None:
        """Dials a connector of the peer. An attempt that is under way is given up."""
        record.dials(target)
        self.dialer.dial(self.local.key(BRIDGE + record.node_id), target)

    def _bindings(self, node_id: str, forward: Queue) -> RemoteBindings:
        return RemoteBindings(
            node_id, forward, self.mode, self.local, self.routes, self.route_listener
        )

    def _dials(self, transport: TransportConfiguration) -> bool:
        """Returns whether this node opens links to that connector.

        The answer is no if there is nothing to find members by (ClusterConnectionImpl.nodeUP without a locator).
        With `allow-direct-connections-only` it is yes for static connectors only.
        """
        config = self.config
        if config.discovery_group is None and not config.static_connectors and not self.has_names:
            return False
        if not config.allow_direct_connections_only:
            return True
        return any(
            self.settings.transport(name).same_target(transport)
            for name in config.static_connectors
        )

    def forward_name(self, node_id: str) -> str:
        """Returns the name of the store-and-forward queue of a node."""
        return self.local.forward_name(node_id)

    def _forward_queue(self, now: int, node_id: str) -> Queue | None:
        """Returns the store-and-forward queue of a node; creates it durable and internal.

        None if another queue has its name (of an old journal or a configuration). Then there is no link to the node.
        """
        name = self.forward_name(node_id)
        queue = self.queues.by_name.get(name)
        if queue is None:
            spec = QueueSpec(name, name, MULTICAST)
            spec.internal = True
            queue = self.queues.create(now, spec)
        elif not queue.internal or queue.spec.address != name:
            self.local.tell_taken(node_id, name, queue.spec.address)
            return None
        self.addresses[name].internal = True
        return queue

    def expect(self, now: int, node_id: str) -> Queue | None:
        """Returns the store-and-forward queue of a node; None if another queue has its name.

        A node that is not a peer counts as away (cluster/store_and_forward/parked_messages.py).
        """
        queue = self._forward_queue(now, node_id)
        if queue is not None and node_id not in self.peers:
            self.parked.expect(now, node_id)
        return queue

    # -- connections ----------------------------------------------------------------------------
    def on_dialed(self, now: int, conn: int, key: str) -> TransportConnection | None:
        if self.stopping or self.halted:
            return None
        rest = self._rest(key)
        if rest.startswith(LOCATE):
            return self.scanner.dialed(now, conn, rest[len(LOCATE) :])
        if rest.startswith(BRIDGE):
            record = self.peers.get(rest[len(BRIDGE) :])
            if record is None or record.bridge is not None:
                return None
            return self._open_bridge(now, conn, record)
        return None

    def _rest(self, key: str) -> str:
        """Returns the part of a key behind this connection's prefix."""
        return key[len(self.local.prefix) :]

    def _open_bridge(self, now: int, conn: int, record: PeerRecord) -> ClusterBridge:
        mark = self.parked.mark_of(record.node_id, record.forward)
        again = self.attempts.again(record.node_id)
        bridge = ClusterBridge(self.members, self, record, mark, conn, now, again)
        record.opened(bridge)
        bridge.open(now, record.target)
        return bridge

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        rest = self._rest(key)
        if rest.startswith(LOCATE):
            self.scanner.lost(now, rest[len(LOCATE) :], why)
            return
        record = self.peers.get(rest[len(BRIDGE) :])
        if record is not None:
            record.dialing = False
            if record.member is not None:
                self.dial_back.on_unreachable(record.member, why)
            self._retry(now, record)

    def bridge_open(self, now: int, record: PeerRecord) -> None:
        self.attempts.succeeded(record.node_id)
        record.is_news("")
        self.scanner.wake(now)
        self.dial_back.on_link(now, record.node_id)
        self.parked.back(record.node_id)

    def _retry(self, now: int, record: PeerRecord, refused: bool = False) -> None:
        """Sets the timer of the next attempt, or drops the peer if its attempts are used up.

        A dropped peer gets neither link nor messages until the topology has an update of it.
        """
        if self.stopping or self.halted:
            return
        pause_ms = self.attempts.next_pause_ms(record.node_id, refused)
        if pause_ms >= 0:
            self.local.set_timer(BRIDGE + record.node_id, now + pause_ms * 1_000_000)
            return
        self.local.report("cluster_gave_up", record.node_id, "its attempts are used up")
        self._drop(now, record)

    def _drop(self, now: int, record: PeerRecord) -> None:
        record.bindings.remove_all(now)
        self.peers.pop(record.node_id, None)
        self.attempts.forget(record.node_id)
        self.dial_back.forget(record.node_id)

    def bridge_lost(self, now: int, bridge: ClusterBridge, why: str) -> None:
        record = bridge.record
        if record.bridge is not bridge:
            return  # the peer has failed over: its link leads elsewhere
        record.bridge = None
        member = self.topology.members.get(record.node_id)
        if member is not None:
            removal = self.members.left if bridge.said_goodbye else self.members.lost
            removal(record.node_id, member.event_id)
        if not bridge.said_goodbye or (record.has_backup() and not bridge.left_to):
            self._away(now, record, why)
            self._retry(now, record, bridge.refused)
            return
        self._lost(now, record, why)
        if bridge.left_to:
            self.departures.add(now, record, bridge.left_to)
        self._drop(now, record)

    def _lost(self, now: int, record: PeerRecord, why: str) -> None:
        self.parked.lost(now, record)
        if record.is_news(why):
            self.local.report("bridge_lost", record.node_id, why)

    def _away(self, now: int, record: PeerRecord, why: str) -> None:
        """Keeps the bindings of a peer without a link: messages wait for it."""
        self._lost(now, record, why)
        record.bindings.disconnected(now)

    # -- time -------------------------------------------------------------------------------------
    def on_timer(self, now: int, key: str) -> None:
        if self.stopping:
            return
        rest = self._rest(key)
        if rest == ANNOUNCE:
            self.members.announce_again(now)
        elif rest == LOGINS:
            for node_id in self.dial_back.announced.values():
                self.proven_peers.is_still_there(now, node_id)
            self.local.set_timer(LOGINS, now + LOGINS_NS)
        elif rest.startswith(LOCATE):
            self.scanner.dial(now, rest[len(LOCATE) :])
        elif rest.startswith(BRIDGE):
            self._dial_bridge(now, rest[len(BRIDGE) :])
        elif rest.startswith(DIAL_BACK):
            if self.is_linked(rest[len(DIAL_BACK) :]):
                self.dial_back.on_timer(rest[len(DIAL_BACK) :])
        elif rest.startswith(PARKED):
            self.parked.on_timer(now, rest[len(PARKED) :])
        elif rest.startswith(MARK):
            self.parked.on_mark_timer(now, rest[len(MARK) :])
        elif rest.startswith(DEPARTURE):
            self.departures.on_timer(now, rest[len(DEPARTURE) :])

    def _dial_bridge(self, now: int, node_id: str) -> None:
        record = self.peers.get(node_id)
        if record is None or record.bridge is not None or record.dialing or self.halted:
            return
        member = self.topology.members.get(node_id)
        lapsed = member is None and not record.answered
        member = member or record.member
        if member is None or member.primary is None:
            return
        if lapsed and not self.scanner.seeks(member):
            self._drop(now, record)  # it was never reached, and is gone
            return
        connectors = [each for each in member.connectors() if self._dials(each)]
        if connectors:
            self._dial(record, connectors[self.attempts.failures(node_id) % len(connectors)])

    def flush(self, now: int) -> None:
        for record in self.peers.values():
            if record.bridge is not None:
                record.bridge.settle(now)


def load_balancing(config: ClusterConnectionConfig) -> int:
    """Returns the mode of message-load-balancing. config/sections/cluster.py applies forward-when-no-consumers."""
    if config.message_load_balancing == STRICT_NAME:
        return STRICT
    if config.message_load_balancing == OFF_WITH_REDISTRIBUTION_NAME:
        return OFF_WITH_REDISTRIBUTION
    if config.message_load_balancing == "OFF":
        return OFF
    return ON_DEMAND
