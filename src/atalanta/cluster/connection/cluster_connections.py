"""Cluster connections of a node. Each one has its own cluster, topology, peers and acceptors.

An acceptor serves the cluster connection that it names (`clusterConnection=`), else the first one, as in
RemotingServiceImpl of Artemis. Keys of dials and timers are "cluster.<number of the connection>.<rest>".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.config import ClusterSettings
from atalanta.cluster.connection.alternate_routes import TIMER as ALTERNATE_ROUTES_TIMER
from atalanta.cluster.connection.alternate_routes import AlternateRoutes
from atalanta.cluster.connection.cluster_connection import ClusterConnection
from atalanta.cluster.connection.connection_removal import TIMER as REMOVAL_TIMER
from atalanta.cluster.connection.connection_removal import ConnectionRemoval
from atalanta.cluster.connection.management import ClusterConnectionControl
from atalanta.cluster.connection.redistribution import TIMER as REDISTRIBUTE_TIMER
from atalanta.cluster.connection.redistribution import Redistribution
from atalanta.cluster.connection.remote_bindings import RemoteBindings, RouteListener
from atalanta.cluster.connection.remote_routes import RemoteRoutes
from atalanta.cluster.discovery.discovery import Discovery
from atalanta.cluster.links.proven_peers import ProvenPeers
from atalanta.cluster.native_config import OwnSettings
from atalanta.cluster.part import Part
from atalanta.cluster.topology.members import FQQN
from atalanta.kernel.publish.scale_down_target import ForwardQueues
from atalanta.wire.connection import ClientConnection, TransportConnection
from atalanta.wire.server import ClusterHooks

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterConnectionConfig
    from atalanta.cluster.connection.colocation_seat import BackupCalls
    from atalanta.kernel.broker.notifications import Notifications
    from atalanta.kernel.ports import Links
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.bindings import RemoteBinding
    from atalanta.management.resources.registry import ResourceRegistry
    from atalanta.wire.core.packets.cluster import NodeAnnounce, ScaleDownAnnouncement
    from atalanta.wire.core.transport import TransportConfiguration
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.server import WireServer

PREFIX: Final = "cluster."
RESTART: Final = "the change counts after a restart: members know the node by it, and have bindings and queues by it"
EMPTY_FIRST: Final = (
    "they go when the members are linked, or back to other consumers after parked-message-timeout. Then read the"
    " configuration again"
)


class ClusterConnections(Part, RouteListener):
    """The cluster connections in the order of broker.xml. The first one serves acceptors that name none."""

    wants_turn = True

    def __init__(
        self,
        settings: ClusterSettings,
        notifications: Notifications,
        resources: ResourceRegistry,
        host: WireServer,
        links: Links,
        discovery: Discovery,
        own: OwnSettings,
    ) -> None:
        broker = host.broker
        self.settings = settings
        self.broker = broker
        self.notifications = notifications
        self.host = host
        self.links = links
        self.discovery = discovery
        self.own = own
        self.redistribution = Redistribution(
            broker.mover, broker.queue_registry, broker.settings, broker.timers
        )
        self.alternate_routes = AlternateRoutes(broker.timers, broker.trace, self.peer_bindings)
        routes = RemoteRoutes(
            broker.config, broker.router, broker.address_registry, broker.bindings, notifications
        )
        self.proven_peers = ProvenPeers(broker.values, settings, own.cluster_remember_logins)
        self.routes = routes
        self.connections: list[ClusterConnection] = []
        self.by_name: dict[str, ClusterConnection] = {}
        self.by_number: dict[str, ClusterConnection] = {}
        self.retired: dict[str, ClusterConnection] = {}  # that a reload has removed, by name
        self.made = 0
        self.removal = ConnectionRemoval(broker.queue_registry, broker.timers)
        for config in settings.cluster_connections:
            self._make(config)
        self.backup_address: str = ""  # host:port of the backup that is connected, "" without one
        self.colocation: BackupCalls | None = None
        host.cluster = AcceptorHooks(self)
        control = ClusterConnectionControl(self.by_name, notifications)
        resources.register_control("clusterconnection", control)
        resources.extend_broker(control.broker_attributes, control.broker_operations)

    def _make(self, config: ClusterConnectionConfig) -> ClusterConnection:
        made = ClusterConnection(
            config, self.made, self.settings, self.own, self.host, self.links, self.discovery, self.routes, self,
            self.proven_peers,
        )  # fmt: skip
        self.connections.append(made)
        self.by_name[config.name] = made
        self.by_number[str(self.made)] = made
        self.made += 1
        return made

    # -- life -----------------------------------------------------------------------------------
    def start(self, now: int) -> None:
        self.broker.observers.append(self.redistribution)
        self.broker.scale_down_target.start(MemberForwardQueues(self))
        if self.settings.has_default_password:
            what = "everybody knows the password: give all members the same own cluster-user and cluster-password"
            self.broker.trace.event(
                "cluster_default_password", {"node": self.broker.node_id, "why": what}
            )
        self.proven_peers.start(now)
        for cluster in self.connections:
            cluster.start(now)

    def stop(self, now: int) -> None:
        self.redistribution.stopping = True
        for cluster in self.connections:
            cluster.stop(now)

    def reload(self, now: int, fresh: list[ClusterConnectionConfig]) -> None:
        """Adds, changes and removes cluster connections, as far as that needs no restart (config/restart.py)."""
        names = [config.name for config in fresh]
        for cluster in list(self.connections):
            if cluster.config.name not in names:
                self._remove(now, cluster)
        for config in fresh:
            known = self.by_name.get(config.name)
            if known is None:
                self._add(now, config)
            elif known.config.fixed() == config.fixed():
                known.reload(now, config)
            else:
                self._keep(known, RESTART)

    def _add(self, now: int, config: ClusterConnectionConfig) -> None:
        """Adds a cluster connection. In a pair or group the other members know nothing of it: they announce no backup
        for it."""
        if self.settings.backed_up:
            return
        self.settings.cluster_connections = [*self.settings.cluster_connections, config]
        self._make(config).start(now)
        retired = self.retired.pop(config.name, None)
        if retired is not None:
            for conn in retired.dial_back.announced:
                self.host.close(conn, "the cluster connection is there again")
        self.broker.trace.event("cluster_connection_added", {"name": config.name})

    def _remove(self, now: int, cluster: ClusterConnection) -> None:
        """Removes a cluster connection whose store-and-forward queues are empty. Who has come in for it stays apart:
        members of one cluster are not to hear of another's."""
        name = cluster.config.name
        scale_down = self.settings.scale_down
        if (
            cluster is self.connections[0] or self.settings.backed_up
            or (scale_down is not None and scale_down.cluster_name == name)
        ):  # fmt: skip
            self._keep(cluster, RESTART)
            return
        waiting = self.removal.waiting(cluster)
        if waiting:
            self._keep(cluster, f"messages wait in {', '.join(waiting)}: {EMPTY_FIRST}")
            return
        cluster.end(now)
        self.connections.remove(cluster)
        del self.by_name[name]
        self.by_number = {number: each for number, each in self.by_number.items() if each is not cluster}
        self.settings.cluster_connections = [
            each for each in self.settings.cluster_connections if each is not cluster.config
        ]
        self.retired[name] = cluster
        self.removal.add(now, cluster)
        self.broker.trace.event("cluster_connection_removed", {"name": name})

    def _keep(self, cluster: ClusterConnection, why: str) -> None:
        self.broker.trace.event("cluster_connection_kept", {"name": cluster.config.name, "why": why})

    def flush(self, now: int) -> None:
        for cluster in self.connections:
            cluster.flush(now)

    # -- routes ---------------------------------------------------------------------------------
    def peer_bindings(self) -> list[RemoteBindings]:
        """Returns the bindings of all peers of all cluster connections."""
        return [
            record.bindings
            for cluster in self.connections
            for record in cluster.peers.values()
        ]

    def routes_changed(self, now: int) -> None:
        self.alternate_routes.routes_changed(now)

    def consumers_added(self, now: int, remote: RemoteBinding) -> None:
        """Moves messages to the new consumers: those parked for absent members, and those of local queues."""
        for cluster in self.connections:
            cluster.parked.scan_again(now)
        self.redistribution.remote_consumer(now, remote)

    def trusts(self, now: int, node_id: str, connector: TransportConfiguration) -> bool:
        """Returns whether a node that discovery names has proven that it knows the cluster's password."""
        return any(cluster.trusts(now, node_id, connector) for cluster in self.connections)

    # -- look-up --------------------------------------------------------------------------------
    def of_key(self, key: str) -> ClusterConnection | None:
        number = key[len(PREFIX) :].partition(".")[0]
        return self.by_number.get(number)

    def of_acceptor(self, connection: ClientConnection) -> ClusterConnection:
        return self.serving(connection.acceptor)

    def serving(self, acceptor: AcceptorConfig | None) -> ClusterConnection:
        """Returns the cluster connection that an acceptor serves."""
        name = None if acceptor is None else acceptor.cluster_connection
        found = None if name is None else self.by_name.get(name) or self.retired.get(name)
        return self.connections[0] if found is None else found

    # -- inputs ---------------------------------------------------------------------------------
    def on_dialed(self, now: int, conn: int, key: str) -> TransportConnection | None:
        cluster = self.of_key(key)
        return None if cluster is None else cluster.on_dialed(now, conn, key)

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        cluster = self.of_key(key)
        if cluster is not None:
            cluster.on_dial_failed(now, key, why)

    def on_backups(self, now: int, backups: dict[str, TransportConfiguration]) -> None:
        """Announces the backup of this node: its connector for each cluster connection, by name."""
        self.backup_address = next((each.address for each in backups.values()), "")
        for cluster in self.connections:
            cluster.set_backup(now, backups.get(cluster.config.name))

    def on_timer(self, now: int, key: str) -> None:
        if key.startswith(REDISTRIBUTE_TIMER):
            self.redistribution.on_timer(now, key)
            return
        if key == ALTERNATE_ROUTES_TIMER:
            self.alternate_routes.on_timer(now)
            return
        if key == REMOVAL_TIMER:
            self.removal.on_timer(now)
            return
        cluster = self.of_key(key)
        if cluster is not None:
            cluster.on_timer(now, key)


class MemberForwardQueues(ForwardQueues):
    """Store-and-forward queues for messages that a leaving node hands over for other members.

    The messages wait here even if this node does not know the member yet.
    """

    def __init__(self, clusters: ClusterConnections) -> None:
        self.clusters = clusters

    def forward_queue(self, now: int, node_id: str, make: bool) -> Queue | None:
        if not node_id or FQQN in node_id or node_id == self.clusters.broker.node_id:
            return None
        known = [
            cluster
            for cluster in self.clusters.connections
            if cluster.forward_name(node_id) in self.clusters.broker.queues
        ]
        if not known and not make:
            return None
        cluster = (known or self.clusters.connections)[0]
        return cluster.expect(now, node_id)


class AcceptorHooks(ClusterHooks):
    """Passes the requests of a connection to the cluster connection of its acceptor."""

    def __init__(self, clusters: ClusterConnections) -> None:
        super().__init__(clusters.broker.node_id)
        self.clusters = clusters

    def subscribe(self, now: int, connection: ClientConnection, is_cluster: bool) -> None:
        self.clusters.of_acceptor(connection).subscribe(connection, is_cluster)

    def logged_in(self, now: int, connection: ClientConnection) -> None:
        self.clusters.of_acceptor(connection).subscribers.logged_in(connection)

    def unsubscribe(self, connection: ClientConnection) -> None:
        self.clusters.of_acceptor(connection).unsubscribe(connection)

    def announced(self, now: int, connection: ClientConnection, packet: NodeAnnounce) -> None:
        self.clusters.of_acceptor(connection).announced(now, connection, packet)

    def primary_of(
        self, connection: ClientConnection, node_id: str
    ) -> TransportConfiguration | None:
        member = self.clusters.of_acceptor(connection).topology.members.get(node_id)
        return None if member is None else member.primary

    def may_fail_over(self, node_id: str | None) -> bool:
        """Answers CHECK_FOR_FAILOVER as ActiveMQPacketHandler.handleCheckForFailover does.

        A node with scale-down configured answers no until it has taken over that node's messages.
        """
        clusters = self.clusters
        if node_id is None or node_id == clusters.broker.node_id:
            return True
        scaled_down = clusters.broker.scale_down_target.nodes
        return clusters.settings.scale_down is None or node_id in scaled_down

    def backup_call(self, body: bytes) -> bytes:
        colocation = self.clusters.colocation
        return b"" if colocation is None else colocation.answer(body)

    def backup_answer(self, now: int, node_id: str, body: bytes) -> None:
        colocation = self.clusters.colocation
        if colocation is not None:
            colocation.on_answer(now, node_id, body)

    def leads_here(self, target: str) -> bool:
        return target in self.clusters.settings.announced_addresses()

    def scaled_down(self, now: int, packet: ScaleDownAnnouncement) -> None:
        broker = self.clusters.broker
        if packet.target_node_id == broker.node_id:
            broker.scale_down_target.add(packet.scaled_down_node_id)
            broker.trace.event("node_absorbed", {"node": packet.scaled_down_node_id})
