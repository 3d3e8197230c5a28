"""Remote bindings of one peer, made from its notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.topology.distance import distance_of
from atalanta.kernel.broker.notifications import VIA
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.registry.queues import parse_filter
from atalanta.kernel.routing.bindings import RemoteBinding
from atalanta.message.message import Message

if TYPE_CHECKING:
    from atalanta.cluster.connection.remote_routes import RemoteRoutes
    from atalanta.cluster.topology.local_node import LocalNode
    from atalanta.kernel.queue.queue import Queue

GROUPING_KINDS: Final = ("PROPOSAL", "PROPOSAL_RESPONSE", "UNPROPOSAL")


class RouteListener:
    """The listener for changes of the routes to other nodes."""

    def routes_changed(self, now: int) -> None:
        """Handles a change after which a spare route may be the better one."""
        raise NotImplementedError

    def consumers_added(self, now: int, remote: RemoteBinding) -> None:
        """Handles that the queue of a binding has consumers that it had not before."""
        raise NotImplementedError


class RemoteBindings:
    """The bindings of a peer, by cluster name (queue name + id of the owning node).

    Between RESET and RESET_COMPLETE the peer sends all its bindings. Those that it does not send again are removed.
    """

    def __init__(
        self,
        node_id: str,
        forward: Queue,
        mode: int,
        local: LocalNode,
        routes: RemoteRoutes,
        listener: RouteListener,
    ) -> None:
        self.node_id = node_id
        self.forward = forward
        self.mode = mode
        self.local = local
        self.routes = routes
        self.notifications = routes.notifications
        self.listener = listener
        self.bindings: dict[str, RemoteBinding] = {}
        # Spare routes: another peer reaches the queue as well and has the active binding (alternate_routes.py).
        self.spares: dict[str, RemoteBinding] = {}
        self.complete: bool = False
        self.started: bool = False
        self.announced: dict[str, bool] = {}  # since RESET

    def change_mode(self, mode: int) -> None:
        """Changes the message-load-balancing of all bindings of the peer."""
        self.mode = mode
        for remote in [*self.bindings.values(), *self.spares.values()]:
            remote.mode = mode

    def on_notification(self, now: int, message: Message) -> None:
        properties = message.properties
        if "_AMQ_RESET_QUEUE_DATA" in properties:
            self.started = True
            self.complete = False
            self.announced = {}
            self._forget_consumers(now)
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
            self.spares.pop(self._text(message, "_AMQ_ClusterName"), None)
            self.remove(now, self._text(message, "_AMQ_ClusterName"))
        elif kind == "BINDING_UPDATED":
            self._binding_updated(message)
        elif kind == "CONSUMER_CREATED":
            self._consumer(now, message, True)
        elif kind == "CONSUMER_CLOSED":
            self._consumer(now, message, False)
        elif kind == "SESSION_CREATED":
            distance = distance_of(message.properties)
            if distance is not None:
                self.notifications.session_elsewhere(now, message, distance)
        elif kind in GROUPING_KINDS:
            grouping = self.routes.grouping
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
        distance = distance_of(properties)
        if (
            not cluster_name
            or not address_name
            or not isinstance(binding_id, int)
            or distance is None
        ):
            self.local.report(
                "notification_incomplete", self.node_id, "BINDING_ADDED without its properties"
            )
            return
        self.announced[cluster_name] = True
        if cluster_name.endswith(self.local.node_id):
            return
        if self.routes.is_local_only(address_name):
            return  # a real Artemis announces them; with STRICT neither node would keep all messages
        path = self._path(properties.get(VIA), distance)
        if self.local.node_id in path.split(","):
            self.spares.pop(cluster_name, None)
            self._lose(now, cluster_name)  # the peer's route leads through this node
            return
        known = self.bindings.get(cluster_name) or self.spares.get(cluster_name)
        if known is not None and known.remote_id == binding_id:
            known.connected = True
            if known.path != path or known.distance != distance + 1:
                self._moved(now, known, distance + 1, path)
            return
        if cluster_name in self.bindings:
            self.remove(now, cluster_name)
        remote = RemoteBinding(
            0,
            address_name,
            routing_name,
            cluster_name,
            binding_id,
            distance + 1,
            self.forward,
            self.mode,
        )
        remote.path = path
        self._set_filter(remote, properties.get("_AMQ_FilterString"))
        if cluster_name not in self.routes.active:
            self.spares.pop(cluster_name, None)
            self._enter(now, remote)
            return
        if not self.spares:
            self.local.report(
                "binding_known_elsewhere",
                self.node_id,
                f"{cluster_name} and maybe others: several ways, or max-hops is higher than needed",
            )
        self.spares[cluster_name] = remote

    def _path(self, via: object, distance: int) -> str:
        if distance == 0:
            return self.node_id
        return f"{self.node_id},{via}" if isinstance(via, str) and via else ""

    def _moved(self, now: int, remote: RemoteBinding, distance: int, path: str) -> None:
        """Handles a changed route from the peer to the queue."""
        if remote.cluster_name not in self.bindings:
            remote.distance = distance
            remote.path = path
            self.listener.routes_changed(now)
            return
        self._notify_consumers(now, remote, "CONSUMER_CLOSED")
        before = remote.distance
        remote.distance = distance
        remote.path = path
        self._notify_again(now, remote, before)
        self.listener.routes_changed(now)

    def _notify_again(self, now: int, remote: RemoteBinding, before: int) -> None:
        """Announces a binding with a new route to nodes further away, after its consumers were closed for them."""
        notifications = self.notifications
        if remote.distance < self.local.config.max_hops:
            notifications.remote_binding(now, "BINDING_ADDED", remote)
            self._notify_consumers(now, remote, "CONSUMER_CREATED")
        elif before < self.local.config.max_hops:
            # The binding is beyond max-hops now. BINDING_REMOVED goes as far as its BINDING_ADDED went.
            distance = remote.distance
            remote.distance = before
            notifications.remote_binding(now, "BINDING_REMOVED", remote)
            remote.distance = distance

    def _enter(self, now: int, remote: RemoteBinding) -> None:
        """Makes the binding active: messages are routed to it from now on."""
        self.bindings[remote.cluster_name] = remote
        self.routes.add(now, remote)

    def use_spare(self, now: int, cluster_name: str) -> None:
        """Makes a spare route active after the one in use was lost for good."""
        remote = self.spares.pop(cluster_name)
        self._enter(now, remote)
        self._notify_consumers(now, remote, "CONSUMER_CREATED")
        self.listener.consumers_added(now, remote)

    def swap(self, now: int, cluster_name: str, other: RemoteBindings) -> None:
        """Makes this peer's route a spare, and that of `other` active under the same binding id."""
        mine = self.bindings.pop(cluster_name)
        theirs = other.spares.pop(cluster_name)
        self._notify_consumers(now, mine, "CONSUMER_CLOSED")
        self.routes.replace(mine, theirs)
        self.spares[cluster_name] = mine
        other.bindings[cluster_name] = theirs
        other._notify_again(now, theirs, mine.distance)
        self.listener.consumers_added(now, theirs)

    def _notify_consumers(self, now: int, remote: RemoteBinding, kind: str) -> None:
        """Publishes one notification for each consumer to the nodes further away."""
        notifications = self.notifications
        with_selector = 0
        for text, (_, count) in remote.selectors.items():
            with_selector += count
            for _ in range(count):
                notifications.remote_consumer(now, kind, remote, text, remote.distance)
        for _ in range(remote.consumer_count - with_selector):
            notifications.remote_consumer(now, kind, remote, None, remote.distance)

    def _forget_consumers(self, now: int) -> None:
        """Removes the peer's consumers, also at nodes further away, which must not count them twice.

        The peer sends them again when it is connected.
        """
        for remote in self.bindings.values():
            self._notify_consumers(now, remote, "CONSUMER_CLOSED")
            remote.clear_consumers()
        for remote in self.spares.values():
            remote.clear_consumers()

    def _binding_updated(self, message: Message) -> None:
        """Handles a changed filter of the queue (ClusterConnectionImpl.doBindingUpdated)."""
        cluster_name = self._text(message, "_AMQ_ClusterName")
        remote = self.bindings.get(cluster_name) or self.spares.get(cluster_name)
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
                self.local.report("remote_filter_unreadable", self.node_id, error.text)

    def _consumer(self, now: int, message: Message, created: bool) -> None:
        cluster_name = self._text(message, "_AMQ_ClusterName")
        spare = self.spares.get(cluster_name)
        remote = spare or self.bindings.get(cluster_name)
        if remote is None:
            return
        text = message.properties.get("_AMQ_FilterString")
        filter_text = text if isinstance(text, str) and text else None
        try:
            selector = parse_filter(filter_text)
        except BrokerError as error:
            self.local.report("remote_filter_unreadable", self.node_id, error.text)
            return
        hops = distance_of(message.properties)
        distance = remote.distance if hops is None else hops + 1
        if spare is not None:
            if created:
                spare.add_consumer(filter_text, selector)
            else:
                spare.remove_consumer(filter_text)
            self.listener.routes_changed(now)
        elif created:
            remote.add_consumer(filter_text, selector)
            self.notifications.remote_consumer(now, "CONSUMER_CREATED", remote, filter_text, distance)
            if self.complete:
                self.listener.consumers_added(now, remote)
        else:
            remote.remove_consumer(filter_text)
            self.notifications.remote_consumer(now, "CONSUMER_CLOSED", remote, filter_text, distance)
            if remote.consumer_count == 0:
                self.listener.routes_changed(now)

    def _complete(self, now: int) -> None:
        for cluster_name in [*self.bindings, *self.spares]:
            if cluster_name not in self.announced:
                self.spares.pop(cluster_name, None)
                self._lose(now, cluster_name)
        self.complete = True
        for spare in self.spares.values():
            spare.connected = True
        self.listener.routes_changed(now)
        for remote in list(self.bindings.values()):
            remote.connected = True
            if remote.consumer_count > 0:
                self.listener.consumers_added(now, remote)
        grouping = self.routes.grouping
        if grouping is not None:
            grouping.peer_complete(now, self.node_id)

    # -- end of the link ------------------------------------------------------------------------
    def disconnected(self, now: int) -> None:
        """Keeps the bindings of a peer that is away, perhaps for a short time. They attract no messages."""
        self.started = False
        self.complete = False
        self._forget_consumers(now)
        for remote in [*self.bindings.values(), *self.spares.values()]:
            remote.connected = False
        self.listener.routes_changed(now)
        grouping = self.routes.grouping
        if grouping is not None:
            grouping.peer_lost(now, self.node_id)

    def _lose(self, now: int, cluster_name: str) -> None:
        """Removes a route. The queue itself may still exist."""
        remote = self.bindings.get(cluster_name)
        if remote is not None:
            self.routes.bindings.add_lost(remote)
        self.remove(now, cluster_name)

    def remove(self, now: int, cluster_name: str) -> None:
        remote = self.bindings.pop(cluster_name, None)
        if remote is None:
            return
        self.routes.remove(now, remote)
        self.listener.routes_changed(now)
        grouping = self.routes.grouping
        if grouping is not None:
            grouping.remote_removed(now, cluster_name)

    def remove_all(self, now: int) -> None:
        """Removes all bindings of a peer that left for good."""
        self.spares.clear()
        for cluster_name in list(self.bindings):
            self._lose(now, cluster_name)
        grouping = self.routes.grouping
        if grouping is not None:
            grouping.peer_lost(now, self.node_id)
