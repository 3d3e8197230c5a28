"""Creates the parts of a node from its configuration and connects them.

The modules of parts that many nodes do without are imported where the part is created: a node that is alone starts
faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.cluster.config import ClusterSettings
from atalanta.cluster.core_bridges.bridges import CoreBridges
from atalanta.cluster.discovery.discovery import Discovery
from atalanta.cluster.discovery.management import register_groups
from atalanta.cluster.grouping.config import LOCAL, GroupingHandlerConfig
from atalanta.cluster.networks.settings import NetworkSettings
from atalanta.cluster.part import Part
from atalanta.kernel.broker.notifications import Notifications
from atalanta.management.resources.registry import ResourceRegistry
from atalanta.node.acceptors import NodeAcceptors
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.openwire.server.protocol import OpenWireProtocol
from atalanta.wire.server import WireServer

if TYPE_CHECKING:
    from atalanta.cluster.balancing.balancers import Balancers
    from atalanta.cluster.connection.cluster_connections import ClusterConnections
    from atalanta.cluster.connection.colocation_seat import ColocationSeat
    from atalanta.cluster.connection_routers.routers import Routers
    from atalanta.cluster.discovery.dns import DnsDiscovery
    from atalanta.cluster.discovery.multicast_agent import MulticastAgents
    from atalanta.cluster.grouping.handler import ClusterGrouping
    from atalanta.cluster.networks.networks import Networks
    from atalanta.cluster.replication.active.replicator import Replicator
    from atalanta.cluster.scale_down.scale_down import ScaleDown
    from atalanta.node.config import NodeConfig, Ports


def registered_resources(config: NodeConfig) -> ResourceRegistry:
    """Returns the resources that management shows, with the configured connectors."""
    resources = ResourceRegistry()
    connectors = {} if config.cluster is None else config.cluster.connectors
    for name, connector in connectors.items():
        resources.register_connector(name, connector.transport_params())
    return resources


class Parts:
    """The parts of a node.

    `by_name` holds all parts in start order, by the first segment of their keys. `resources` are those that management
    shows, with what the parts add. `replicator`: the active side of the node's group.
    """

    def __init__(
        self,
        config: NodeConfig,
        ports: Ports,
        host: WireServer,
        notifications: Notifications,
        replicator: Replicator | None,
    ) -> None:
        self.config = config
        self.host = host
        self.notifications = notifications
        self.resources = registered_resources(config)
        self.links = ports.links
        self.process = ports.process
        self.doors = NodeAcceptors(config.acceptors, config.cluster, host, self.resources, ports.process)
        self.acceptors = self.doors.by_name
        self.by_name: dict[str, Part] = {}
        self.clusters: ClusterConnections | None = None
        self.scale_down: ScaleDown | None = None
        self.balancers: Balancers | None = None
        self.dns: DnsDiscovery | None = None
        self.grouping: ClusterGrouping | None = None
        if config.cluster is not None and config.grouping is not None:
            self.keep_groups(config.grouping, config.cluster)
        broker = host.broker
        discovery = Discovery(
            config.cluster or config.bridges.discovery(), self.links, broker.node_id, broker.ids, broker.timers,
            broker.trace, host.wire, host.close,
        )  # fmt: skip
        self.discovery = discovery
        self.by_name["discovery"] = discovery
        register_groups(discovery, self.resources)
        if config.cluster is not None:
            self._join(config.cluster, discovery)
        # Every node has these parts: management may create bridges that are not configured.
        self.bridges = CoreBridges(
            config.bridges, notifications, self.resources, host, self.links, discovery
        )
        self.by_name["bridges"] = self.bridges
        agents: MulticastAgents | None = None
        heard = config.networks.multicast_uris()
        if heard or any(each.options(OpenWireAcceptor).discovery_uri for each in config.acceptors):
            from atalanta.cluster.discovery.multicast_agent import MulticastAgents
            from atalanta.wire.openwire.multicast_discovery import parse_group

            agents = MulticastAgents(self.links, broker.timers)
            agents.publish(config.acceptors)
            for uri in heard:
                agents.agent_of(parse_group(uri))
            self.by_name["agents"] = agents
        self.agents = agents
        self.networks: Networks | None = None
        self.routers: Routers | None = None
        if config.routers is not None:
            from atalanta.cluster.connection_routers.routers import Routers

            self.routers = Routers(
                config.routers, host, self.resources, self.links, self.clusters, discovery
            )
            self.by_name["routers"] = self.routers
        self.doors.introduce()
        if config.networks.connectors:
            self.join_networks(config.networks)
        rebalances = any(each.options(OpenWireAcceptor).rebalance_cluster_clients for each in config.acceptors)
        if config.cluster is None and rebalances:
            self._move_clients()
        if replicator is not None:
            self.by_name["replication"] = replicator
        if ports.colocation is not None:
            self._host_backups(ports.colocation)

    def _host_backups(self, seat: ColocationSeat) -> None:
        """Creates the part of a cluster member that hosts backups of others."""
        from atalanta.cluster.connection.colocation import Colocation

        if self.clusters is not None:
            self.by_name["colocation"] = Colocation(seat, self.clusters)

    def _move_clients(self) -> None:
        """Creates the part that sends clients to neighbours of a network, in a node without a cluster."""
        from atalanta.cluster.balancing.neighbour_moves import NeighbourMoves

        patience_ns = self.config.own.rebalance_patience_ms * 1_000_000
        for protocol in self.host.protocols:
            if isinstance(protocol, OpenWireProtocol):
                clients = protocol.node_clients.cluster_clients
                self.by_name["moves"] = NeighbourMoves(self.host, self.host.connections, clients, patience_ns)

    def join_networks(self, settings: NetworkSettings) -> Networks | None:
        """Creates the part of a node with network connectors; None without the protocol of ActiveMQ Classic."""
        from atalanta.cluster.networks.networks import Networks

        for protocol in self.host.protocols:
            if isinstance(protocol, OpenWireProtocol):
                self.networks = Networks(
                    settings, self.host, self.resources, self.links, protocol.node_clients, self.agents
                )
                self.by_name["networks"] = self.networks
        return self.networks

    def _join(self, cluster: ClusterSettings, discovery: Discovery) -> None:
        """Creates the parts of a cluster member."""
        from atalanta.cluster.balancing.balancers import Balancers
        from atalanta.cluster.balancing.management import BalanceOperations
        from atalanta.cluster.connection.cluster_connections import ClusterConnections
        from atalanta.cluster.discovery.dns import DnsDiscovery
        from atalanta.cluster.scale_down.management import ScaleDownOperations
        from atalanta.cluster.scale_down.scale_down import ScaleDown

        own = self.config.own
        host = self.host
        clusters = ClusterConnections(
            cluster, self.notifications, self.resources, host, self.links, discovery, own
        )
        self.clusters = clusters
        self.by_name["cluster"] = clusters
        if own.dns_texts():
            self.dns = self.by_name["dns"] = DnsDiscovery(own, clusters)
        scale_down = ScaleDown(clusters, host.connections, self.process, self.by_name)
        self.scale_down = scale_down
        self.by_name["scaledown"] = scale_down
        self.resources.extend_broker({}, ScaleDownOperations(scale_down).operations)
        leaving = scale_down.under_way
        self.balancers = balancers = Balancers(own, clusters, host.connections, self.acceptors, leaving)
        self.by_name["rebalance"] = balancers
        balance = BalanceOperations(balancers)
        self.resources.extend_broker(balance.attributes, balance.operations)

    def follow_connections(self) -> None:
        """Takes the cluster connections that a reload has added and removed."""
        if self.dns is not None:
            self.dns.follow()
        if self.grouping is not None and self.clusters is not None:
            self.grouping.cover(self.clusters.settings)

    def keep_groups(self, config: GroupingHandlerConfig, cluster: ClusterSettings) -> ClusterGrouping:
        """Creates the grouping handler, before the cluster starts, so that the handler sees every queue."""
        from atalanta.cluster.grouping.local import LocalGrouping
        from atalanta.cluster.grouping.remote import RemoteGrouping

        kind: type[ClusterGrouping] = LocalGrouping if config.type == LOCAL else RemoteGrouping
        broker = self.host.broker
        grouping = kind(
            config, cluster, broker.queue_registry, broker.values, broker.timers, self.notifications
        )
        broker.router.grouping = grouping
        self.grouping = self.by_name["grouping"] = grouping
        return grouping
