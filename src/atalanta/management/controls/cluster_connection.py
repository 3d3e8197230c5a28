"""Cluster connections: resource `clusterconnection.NAME` (ClusterConnectionControl), and the state of its bridges.

The kernel does not depend on clusters: `cluster/` provides a ListedClusterConnection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.request.call import Attribute, Call, Operations, Parameters, text_of
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.kernel.settings.repository import AddressSettings

PREFIX: Final = "clusterconnection."


@mypyc_attr(allow_interpreted_subclasses=True)
class ListedClusterConnection:
    """The interface of one cluster connection for management."""

    def attribute(self, name: str) -> object:
        """Returns the value of an attribute under Artemis' name, one of ATTRIBUTES."""
        raise NotImplementedError

    def metrics_of(self, node_id: str) -> dict[str, object] | None:
        """Returns the metrics of the bridge to one member, None if there is no such bridge."""
        raise NotImplementedError

    def give_up(self, now: int, node_id: str) -> int:
        """Gives up a lost member: messages that may have arrived there are sent to others. Returns their number.

        Returns -1 if the member is not away.
        """
        raise NotImplementedError

    def links(self, now: int) -> list[dict[str, object]]:
        """Returns one row per member.

        Keys: nodeID, address, state, awaySince (ms), waiting, mayHaveArrived, forwarded, confirmed, queues,
        consumers.
        """
        raise NotImplementedError


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
)


def listed(call: Call) -> ListedClusterConnection:
    return call.management.clusters[call.resource[len(PREFIX) :]]


def _reader(name: str) -> Attribute:
    def read(call: Call) -> object:
        return listed(call).attribute(name)

    return read


def bridge_metrics(call: Call, given: Parameters) -> object:
    return listed(call).metrics_of(text_of(given, 0))


def list_links(call: Call, given: Parameters) -> object:
    """Returns the messages stored for each member, and how many may have arrived there (an addition to Artemis)."""
    return encode_json(listed(call).links(call.now))


def give_up_member(call: Call, given: Parameters) -> object:
    """Gives up a member, see ListedClusterConnection.give_up (an addition to Artemis)."""
    node_id = text_of(given, 0)
    count = listed(call).give_up(call.now, node_id)
    if count < 0:
        raise BrokerError(
            ILLEGAL_STATE, f"member {node_id} is not away, or nothing is parked for it"
        )
    return count


CLUSTER_ATTRIBUTES: Final[dict[str, Attribute]] = {name: _reader(name) for name in ATTRIBUTES}
CLUSTER_OPERATIONS: Final[Operations] = {
    "getBridgeMetrics": [("s", bridge_metrics)],
    "listLinks": [("", list_links)],
    "giveUpMember": [("s", give_up_member)],
}


# -- address settings -----------------------------------------------------------------------------
SHOWN: Final[dict[str, Callable[[AddressSettings], object]]] = {
    "redistributionDelay": lambda settings: settings.redistribution_delay_ms,
    "deadLetterAddress": lambda settings: settings.dead_letter_address,
    "expiryAddress": lambda settings: settings.expiry_address,
    "maxDeliveryAttempts": lambda settings: settings.max_delivery_attempts,
    "autoCreateQueues": lambda settings: settings.auto_create_queues,
    "autoCreateAddresses": lambda settings: settings.auto_create_addresses,
    "autoDeleteQueues": lambda settings: settings.auto_delete_queues,
    "autoDeleteAddresses": lambda settings: settings.auto_delete_addresses,
    "sendToDLAOnNoRoute": lambda settings: settings.send_to_dla_on_no_route,
}


def address_settings_as_json(call: Call, given: Parameters) -> object:
    """Returns the effective address settings of one address (AddressSettings.toJSON), limited to common fields."""
    settings = call.broker.settings.match(text_of(given, 0))
    return encode_json({name: read(settings) for name, read in SHOWN.items()})
