"""Management of cluster connections: resource `clusterconnection.NAME` (ClusterConnectionControl)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from atalanta.cluster.store_and_forward.parked_messages import may_have_arrived
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.controls.control import Control
from atalanta.management.request.call import (
    Attribute,
    Attributes,
    Call,
    Operations,
    Parameters,
    text_of,
)
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import ClusterConnection
    from atalanta.cluster.connection.peer import PeerRecord
    from atalanta.kernel.broker.notifications import Notifications
    from atalanta.kernel.queue.queue import Queue

Getter = Callable[["ClusterConnection"], object]

# The counters are summed over all members.
ATTRIBUTES: Final[dict[str, Getter]] = {
    "Name": lambda cluster: cluster.config.name,
    "Address": lambda cluster: cluster.config.address,
    "NodeID": lambda cluster: cluster.local.node_id,
    "DuplicateDetection": lambda cluster: cluster.config.use_duplicate_detection,
    "MessageLoadBalancingType": lambda cluster: cluster.config.message_load_balancing,
    "Topology": lambda cluster: json.dumps(cluster.members.describe()),
    "MaxHops": lambda cluster: cluster.config.max_hops,
    "StaticConnectors": lambda cluster: cluster.config.static_connectors,
    "StaticConnectorsAsJSON": lambda cluster: json.dumps(cluster.config.static_connectors),
    "DiscoveryGroupName": lambda cluster: cluster.config.discovery_group,
    "RetryInterval": lambda cluster: cluster.config.retry_interval_ms,
    "Nodes": lambda cluster: {
        record.node_id: place_of(record) for record in cluster.peers.values() if record.linked()
    },
    "MessagesPendingAcknowledgement": lambda cluster: sum(map(pending_of, cluster.peers.values())),
    "MessagesAcknowledged": lambda cluster: sum(one.confirmed for one in cluster.peers.values()),
    "Metrics": lambda cluster: metrics_of(cluster.peers.values()),
    "ProducerWindowSize": lambda cluster: cluster.config.producer_window_bytes,
    "Started": lambda cluster: not cluster.stopping and not cluster.halted,
    # An addition to Artemis: why connectors fail, by host:port.
    "ConnectorFailures": lambda cluster: cluster.scanner.failures(),
}


class ClusterConnectionControl(Control):
    """The control of the cluster connections. `broker_*` belong to the resource `broker`."""

    def __init__(self, connections: dict[str, ClusterConnection], notifications: Notifications) -> None:
        self.notifications = notifications
        self.connections = connections  # by name
        super().__init__(
            {name: self._attribute(getter) for name, getter in ATTRIBUTES.items()},
            {
                "getBridgeMetrics": [("s", self.bridge_metrics)],
                "listLinks": [("", self.list_links)],
                "giveUpMember": [("s", self.give_up_member)],
                "start": [("", self.start)],
                "stop": [("", self.stop)],
            },
        )
        members = next(iter(connections.values())).members
        self.broker_attributes: Attributes = {
            "ClusterConnectionNames": lambda call: list(self.connections),
            "Clustered": lambda call: bool(members.describe()),
        }
        self.broker_operations: Operations = {
            "listNetworkTopology": [("", lambda call, given: encode_json(members.describe()))]
        }

    def select(self, call: Call) -> bool:
        return call.name in self.connections

    def _attribute(self, getter: Getter) -> Attribute:
        return lambda call: getter(self.connections[call.name])

    def start(self, call: Call, given: Parameters) -> object:
        """Opens the links of a stopped cluster connection again."""
        cluster = self.connections[call.name]
        if cluster.stopping:
            raise BrokerError(ILLEGAL_STATE, "the node leaves or stops: it opens no links any more")
        if cluster.halted:
            call.command.begin_change()
            cluster.resume(call.now)
            cluster.local.trace.event("cluster_connection_started", {"name": call.name})
            self.notifications.publish(call.now, "CLUSTER_CONNECTION_STARTED", {"name": call.name})
        return None

    def stop(self, call: Call, given: Parameters) -> object:
        """Closes the links until the cluster connection is started, or the node starts again. Members keep their links
        to this node."""
        cluster = self.connections[call.name]
        if not cluster.halted and not cluster.stopping:
            call.command.begin_change()
            cluster.halt(call.now)
            cluster.local.trace.event("cluster_connection_stopped", {"name": call.name})
            self.notifications.publish(call.now, "CLUSTER_CONNECTION_STOPPED", {"name": call.name})
        return None

    def bridge_metrics(self, call: Call, given: Parameters) -> object:
        """Returns the metrics of the bridge to one member, null if there is no such bridge."""
        record = self.connections[call.name].peers.get(text_of(given, 0))
        return None if record is None else metrics_of([record])

    def list_links(self, call: Call, given: Parameters) -> object:
        """Returns the messages stored for each member, and how many may have arrived there (an addition to Artemis).

        JSON with a row for each peer, then for each absent node that is not a peer but still has messages here.
        """
        cluster = self.connections[call.name]
        rows = [
            link_of(cluster, record.node_id, record.forward, record)
            for record in cluster.peers.values()
        ]
        for node_id in cluster.parked.absent:
            queue = cluster.queues.by_name.get(cluster.forward_name(node_id))
            if node_id not in cluster.peers and queue is not None and queue.message_count > 0:
                rows.append(link_of(cluster, node_id, queue, None))
        return encode_json(rows)

    def give_up_member(self, call: Call, given: Parameters) -> object:
        """Gives up a lost member: messages that may have arrived there are sent to others (an addition to Artemis).

        Returns their number.
        """
        node_id = text_of(given, 0)
        call.command.begin_change()
        count = self.connections[call.name].parked.give_up(call.now, node_id)
        if count < 0:
            raise BrokerError(
                ILLEGAL_STATE, f"member {node_id} is not away, or nothing is parked for it"
            )
        return count


def link_of(
    cluster: ClusterConnection, node_id: str, queue: Queue, record: PeerRecord | None
) -> dict[str, object]:
    """Returns one row of `listLinks`. `awaySince` is in ms, 0 for a member that is linked."""
    away = cluster.parked.absent.get(node_id)
    bindings = [] if record is None else list(record.bindings.bindings.values())
    mark = cluster.parked.mark_of(node_id, queue)
    linked = record is not None and record.linked()
    return {
        "nodeID": node_id,
        "address": "" if record is None else place_of(record),
        "state": "linked" if linked else "away",
        "awaySince": 0 if away is None or linked else away.since // 1_000_000,
        "waiting": queue.message_count,
        "mayHaveArrived": may_have_arrived(queue, mark.through),
        "forwarded": 0 if record is None else record.forwarded,
        "confirmed": 0 if record is None else record.confirmed,
        "queues": len(bindings),
        "consumers": sum(remote.consumer_count for remote in bindings),
    }


def metrics_of(records: Iterable[PeerRecord]) -> dict[str, object]:
    records = list(records)
    return {
        "messagesPendingAcknowledgement": sum(map(pending_of, records)),
        "messagesAcknowledged": sum(record.confirmed for record in records),
    }


def place_of(record: PeerRecord) -> str:
    member = record.member
    if member is None or member.primary is None:
        return ""
    return member.primary.address


def pending_of(record: PeerRecord) -> int:
    return 0 if record.bridge is None else len(record.bridge.outgoing.unanswered)
