"""What one peer holds: its notifications become remote bindings of this node's addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.address import Address
from atalanta.kernel.bindings import RemoteBinding
from atalanta.kernel.catalogue import enter, leave, parse_filter
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.message import Message
from atalanta.kernel.queue import Queue

if TYPE_CHECKING:
    from atalanta.cluster.cluster import Cluster


GROUPING_KINDS: Final = ("PROPOSAL", "PROPOSAL_RESPONSE", "UNPROPOSAL")


class RemoteBindings:
    """By cluster name (queue name + id of the owning node). Between RESET and RESET_COMPLETE the peer says all it has;
    what it does not say again is dropped."""

    def __init__(self, cluster: Cluster, node_id: str, forward: Queue) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.forward = forward
        self.bindings: dict[str, RemoteBinding] = {}
        self.complete: bool = False
        self.started: bool = False
        self.said: dict[str, bool] = {}

    def on_notification(self, now: int, message: Message) -> None:
        properties = message.properties
        if "_AMQ_RESET_QUEUE_DATA" in properties:
            self.started = True
            self.complete = False
            self.said = {}
            for remote in self.bindings.values():
                remote.clear_consumers()
            return
        if not self.started:
            return
        if "_AMQ_RESET_QUEUE_DATA_COMPLETE" in properties:
            self._complete(now)
            return
        kind = properties.get("_AMQ_NotifType")
        if kind == "BINDING_ADDED":
            self._binding_added(now, message)
        elif kind == "BINDING_REMOVED":
            self.remove(now, self._text(message, "_AMQ_ClusterName"))
        elif kind == "BINDING_UPDATED":
            self._binding_updated(message)
        elif kind == "CONSUMER_CREATED":
            self._consumer(now, message, True)
        elif kind == "CONSUMER_CLOSED":
            self._consumer(now, message, False)
        elif kind in GROUPING_KINDS:
            grouping = self.cluster.broker.grouping
            if grouping is not None:
                grouping.on_notification(now, self.node_id, kind, message)

    def _text(self, message: Message, name: str) -> str:
        value = message.properties.get(name)
        return value if isinstance(value, str) else ""

    def _binding_added(self, now: int, message: Message) -> None:
        properties = message.properties
        cluster_name = self._text(message, "_AMQ_ClusterName")
        address_name = self._text(message, "_AMQ_Address")
        routing_name = self._text(message, "_AMQ_RoutingName")
        binding_id = properties.get("_AMQ_Binding_ID")
        distance = properties.get("_AMQ_Distance")
        if (
            not cluster_name
            or not address_name
            or not isinstance(binding_id, int)
            or not isinstance(distance, int)
        ):
            self.cluster.told(
                "notification_incomplete", self.node_id, "BINDING_ADDED without its properties"
            )
            return
        self.said[cluster_name] = True
        if cluster_name.endswith(self.cluster.node_id):
            return
        known = self.bindings.get(cluster_name)
        if known is not None and known.remote_id == binding_id:
            known.connected = True
            return
        if known is not None:
            self.remove(now, cluster_name)
        if self.cluster.clusters.holder_of(cluster_name) is not None:
            self.cluster.told(
                "binding_known_elsewhere", self.node_id, f"{cluster_name}: max-hops too high?"
            )
            return
        remote = RemoteBinding(
            self.cluster.broker.take_binding_id(),
            address_name,
            routing_name,
            cluster_name,
            binding_id,
            distance + 1,
            self.forward,
            self.cluster.mode,
        )
        self._set_filter(remote, properties.get("_AMQ_FilterString"))
        self.bindings[cluster_name] = remote
        self._address(address_name).add_remote(remote)
        self.cluster.broker.remotes_by_id[remote.id] = remote
        self.cluster.notifications.remote_binding(now, "BINDING_ADDED", remote)
        grouping = self.cluster.broker.grouping
        if grouping is not None:
            grouping.remote_added(now, cluster_name)

    def _binding_updated(self, message: Message) -> None:
        """The queue's filter has changed (ClusterConnectionImpl.doBindingUpdated)."""
        remote = self.bindings.get(self._text(message, "_AMQ_ClusterName"))
        if remote is not None:
            remote.filter = None
            remote.filter_text = None
            self._set_filter(remote, message.properties.get("_AMQ_FilterString"))

    def _set_filter(self, remote: RemoteBinding, text: object) -> None:
        if isinstance(text, str):
            try:
                remote.filter = parse_filter(text)
                remote.filter_text = text
            except BrokerError as error:
                self.cluster.told("remote_filter_unreadable", self.node_id, error.text)

    def _address(self, name: str) -> Address:
        address = self.cluster.broker.addresses.get(name)
        if address is None:
            address = Address(name, True, True, True)
            enter(self.cluster.broker, address)
        return address

    def _consumer(self, now: int, message: Message, created: bool) -> None:
        remote = self.bindings.get(self._text(message, "_AMQ_ClusterName"))
        if remote is None:
            return
        text = message.properties.get("_AMQ_FilterString")
        filter_text = text if isinstance(text, str) and text else None
        try:
            selector = parse_filter(filter_text)
        except BrokerError as error:
            self.cluster.told("remote_filter_unreadable", self.node_id, error.text)
            return
        if created:
            remote.add_consumer(filter_text, selector)
            self.cluster.notifications.remote_consumer(now, "CONSUMER_CREATED", remote, filter_text)
            if self.complete:
                self.cluster.clusters.redistribution.remote_consumer(now, remote)
        else:
            remote.remove_consumer(filter_text)
            self.cluster.notifications.remote_consumer(now, "CONSUMER_CLOSED", remote, filter_text)

    def _complete(self, now: int) -> None:
        for cluster_name in list(self.bindings):
            if cluster_name not in self.said:
                self.remove(now, cluster_name)
        self.complete = True
        for remote in list(self.bindings.values()):
            remote.connected = True
            if remote.consumer_count > 0:
                self.cluster.clusters.redistribution.remote_consumer(now, remote)
        grouping = self.cluster.broker.grouping
        if grouping is not None:
            grouping.peer_complete(now, self.node_id)

    # -- the peer goes --------------------------------------------------------------------------
    def disconnected(self) -> None:
        """The peer is away, perhaps for a moment: its bindings stay, but attract nothing."""
        self.started = False
        self.complete = False
        for remote in self.bindings.values():
            remote.connected = False
        grouping = self.cluster.broker.grouping
        if grouping is not None:
            grouping.peer_lost(self.cluster.broker.now, self.node_id)

    def remove(self, now: int, cluster_name: str) -> None:
        remote = self.bindings.pop(cluster_name, None)
        if remote is None:
            return
        broker = self.cluster.broker
        broker.remotes_by_id.pop(remote.id, None)
        address = broker.addresses.get(remote.address)
        if address is not None:
            address.remove_remote(remote)
            if (
                not address.groups
                and address.lsn == 0
                and address.auto_created
                and not address.internal
            ):
                leave(broker, address)
        self.cluster.notifications.remote_binding(now, "BINDING_REMOVED", remote)
        grouping = broker.grouping
        if grouping is not None:
            grouping.remote_removed(now, cluster_name)

    def remove_all(self, now: int) -> None:
        """The peer left for good."""
        for cluster_name in list(self.bindings):
            self.remove(now, cluster_name)
        grouping = self.cluster.broker.grouping
        if grouping is not None:
            grouping.peer_lost(now, self.node_id)
