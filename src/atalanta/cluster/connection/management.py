"""Management view of a cluster connection (resource `clusterconnection.NAME`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from atalanta.cluster.store_and_forward.parked_messages import may_have_arrived
from atalanta.management.resources.cluster_connection import ListedClusterConnection

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import ClusterConnection
    from atalanta.cluster.connection.peer import PeerRecord
    from atalanta.kernel.queue.queue import Queue


class ListedCluster(ListedClusterConnection):
    def __init__(self, cluster: ClusterConnection) -> None:
        self.cluster = cluster

    def attribute(self, name: str) -> object:
        """Returns an attribute: from the configuration, or a counter summed over all members."""
        cluster = self.cluster
        config = cluster.config
        records = cluster.peers.values()
        plain: dict[str, object] = {
            "Name": config.name,
            "Address": config.address,
            "NodeID": cluster.local.node_id,
            "DuplicateDetection": config.use_duplicate_detection,
            "MessageLoadBalancingType": config.message_load_balancing,
            "MaxHops": config.max_hops,
            "StaticConnectors": config.static_connectors,
            "StaticConnectorsAsJSON": json.dumps(config.static_connectors),
            "DiscoveryGroupName": config.discovery_group,
            "RetryInterval": config.retry_interval_ms,
            "ProducerWindowSize": config.producer_window_bytes,
            "Started": not cluster.stopping,
        }
        if name in plain:
            return plain[name]
        if name == "Topology":
            return json.dumps(cluster.members.describe())
        if name == "Nodes":
            return {record.node_id: place_of(record) for record in records if record.linked()}
        if name == "ConnectorFailures":
            return cluster.scanner.failures()
        metrics = {
            "messagesPendingAcknowledgement": sum(pending_of(record) for record in records),
            "messagesAcknowledged": sum(record.confirmed for record in records),
        }
        return metrics if name == "Metrics" else metrics[name[0].lower() + name[1:]]

    def metrics_of(self, node_id: str) -> dict[str, object] | None:
        record = self.cluster.peers.get(node_id)
        if record is None:
            return None
        return {
            "messagesPendingAcknowledgement": pending_of(record),
            "messagesAcknowledged": record.confirmed,
        }

    def links(self, now: int) -> list[dict[str, object]]:
        """Returns a row for each peer, then for each absent node that is not a peer but still has messages here."""
        cluster = self.cluster
        rows = [
            self._link(record.node_id, record.forward, record) for record in cluster.peers.values()
        ]
        for node_id in cluster.parked.absent:
            queue = cluster.queues.by_name.get(cluster.forward_name(node_id))
            if node_id not in cluster.peers and queue is not None and queue.message_count > 0:
                rows.append(self._link(node_id, queue, None))
        return rows

    def give_up(self, now: int, node_id: str) -> int:
        return self.cluster.parked.give_up(now, node_id)

    def _link(self, node_id: str, queue: Queue, record: PeerRecord | None) -> dict[str, object]:
        parked = self.cluster.parked
        away = parked.absent.get(node_id)
        bindings = [] if record is None else list(record.bindings.bindings.values())
        mark = parked.mark_of(node_id, queue)
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


def place_of(record: PeerRecord) -> str:
    member = record.member
    if member is None or member.primary is None:
        return ""
    return f"{member.primary.host}:{member.primary.port}"


def pending_of(record: PeerRecord) -> int:
    return 0 if record.bridge is None else len(record.bridge.outgoing.unanswered)
