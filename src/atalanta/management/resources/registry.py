"""The resources that the other parts of the node register for management (ManagementServiceImpl.register*)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from atalanta.management.resources.acceptor import ListedAcceptor
from atalanta.management.resources.bridge import BridgeRegistry
from atalanta.management.resources.client_balance import ClientBalance
from atalanta.management.resources.cluster_connection import ListedClusterConnection
from atalanta.management.resources.connection_router import ListedRouter
from atalanta.management.resources.scale_down import ScaleDownRequests

Topology = Callable[[], list[dict[str, object]]]


class ResourceRegistry:
    """The registered resources of a node, by name. The kernel and management depend on no cluster."""

    def __init__(self) -> None:
        self.acceptors: dict[str, ListedAcceptor] = {}
        self.connectors: dict[str, Mapping[str, object]] = {}  # parameters as the node announces them
        self.cluster_connections: dict[str, ListedClusterConnection] = {}
        self.routers: dict[str, ListedRouter] = {}
        self.bridges: BridgeRegistry = BridgeRegistry()
        self.topology: Topology = no_topology
        self.scale_down: ScaleDownRequests = ScaleDownRequests()
        self.client_balance: ClientBalance = ClientBalance()

    def register_acceptor(self, acceptor: ListedAcceptor) -> None:
        """Adds an acceptor."""
        self.acceptors[acceptor.name] = acceptor

    def register_connector(self, name: str, parameters: Mapping[str, object]) -> None:
        """Adds a connector with the parameters that the node announces."""
        self.connectors[name] = parameters

    def register_cluster_connection(self, name: str, connection: ListedClusterConnection) -> None:
        """Adds a cluster connection."""
        self.cluster_connections[name] = connection

    def register_router(self, name: str, router: ListedRouter) -> None:
        """Adds a connection router."""
        self.routers[name] = router

    def register_bridges(self, bridges: BridgeRegistry) -> None:
        """Sets the registry of the node's core bridges."""
        self.bridges = bridges

    def register_topology(self, topology: Topology) -> None:
        """Sets the function that lists the members of the cluster."""
        self.topology = topology

    def register_scale_down(self, scale_down: ScaleDownRequests) -> None:
        """Sets the scale-down of the node."""
        self.scale_down = scale_down

    def register_client_balance(self, balance: ClientBalance) -> None:
        """Sets the client balancing of the node."""
        self.client_balance = balance


def no_topology() -> list[dict[str, object]]:
    """Returns the topology of a node without a cluster-connection."""
    return []
