"""Cluster connections: resource `clusterconnection.NAME` (ClusterConnectionControl), and the state of its bridges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.controls.control import Control
from atalanta.management.request.call import Attribute, Call, Parameters, text_of
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.management.resources.cluster_connection import ListedClusterConnection

ATTRIBUTES: Final = (
    "Name",
    "Address",
    "NodeID",
    "DuplicateDetection",
    "MessageLoadBalancingType",
    "Topology",
    "MaxHops",
    "StaticConnectors",
    "StaticConnectorsAsJSON",
    "DiscoveryGroupName",
    "RetryInterval",
    "Nodes",
    "MessagesPendingAcknowledgement",
    "MessagesAcknowledged",
    "Metrics",
    "ProducerWindowSize",
    "Started",
    "ConnectorFailures",  # an addition to Artemis: why connectors fail, by host:port
)


class ClusterConnectionControl(Control):
    """The control of the cluster connections."""

    def __init__(self, connections: dict[str, ListedClusterConnection]) -> None:
        self.connections = connections
        super().__init__(
            {name: self._reader(name) for name in ATTRIBUTES},
            {
                "getBridgeMetrics": [("s", self.bridge_metrics)],
                "listLinks": [("", self.list_links)],
                "giveUpMember": [("s", self.give_up_member)],
            },
        )

    def select(self, call: Call) -> bool:
        return call.name in self.connections

    def _reader(self, attribute: str) -> Attribute:
        return lambda call: self.connections[call.name].attribute(attribute)

    def bridge_metrics(self, call: Call, given: Parameters) -> object:
        return self.connections[call.name].metrics_of(text_of(given, 0))

    def list_links(self, call: Call, given: Parameters) -> object:
        """Returns the messages stored for each member, and how many may have arrived there (an addition to Artemis)."""
        return encode_json(self.connections[call.name].links(call.now))

    def give_up_member(self, call: Call, given: Parameters) -> object:
        """Gives up a member, see ListedClusterConnection.give_up (an addition to Artemis)."""
        node_id = text_of(given, 0)
        count = self.connections[call.name].give_up(call.now, node_id)
        if count < 0:
            raise BrokerError(
                ILLEGAL_STATE, f"member {node_id} is not away, or nothing is parked for it"
            )
        return count
