"""Management notifications: ordinary messages on `activemq.notifications` that report changes to peers and tools.

Their properties follow Artemis' ManagementServiceImpl. A cluster peer reads them through a temporary queue with a
filter; `sendQueueInfoToQueue` sends the whole present state to one such queue at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.delivery.plan import RoutingPlan
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.routing.bindings import RemoteBinding
from atalanta.kernel.routing.retroactive_names import is_resource
from atalanta.kernel.routing.router import Route, route
from atalanta.kernel.security.permissions import check_type
from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.kernel.sessions.session_consumer import SessionConsumer
from atalanta.message.internal_headers import BROKER_PATH
from atalanta.message.message import Message
from atalanta.message.properties import Byte, Int, PropertyValue

if TYPE_CHECKING:
    from atalanta.kernel.observer import Observer
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.security.security import Identity
    from atalanta.kernel.sessions.client import Client
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.settings.broker_config import BrokerConfig

LOCAL_QUEUE: Final = 0
REMOTE_QUEUE: Final = 1
# Atalanta's own: the nodes that lead to a queue of another node. Artemis ignores it, and does not forward it.
VIA: Final = "_ATALANTA_Via"
NO_CERTIFICATE: Final = "unavailable"  # Artemis' value for a connection without a client certificate

Properties = dict[str, PropertyValue]


class Notifications(ClientObserver):
    """Turns changes of the broker into notification messages; builds none while the address has no queue."""

    def __init__(
        self,
        config: BrokerConfig,
        node_id: str,
        addresses: AddressRegistry,
        queues: QueueRegistry,
        plans: PlanWriter,
    ) -> None:
        self.config = config
        self.node_id = node_id
        self.addresses = addresses
        self.queues = queues
        self.plans = plans
        self.address: str = config.management_notification_address
        self.options = config.notifications
        self.failures = plans.store.failures
        # What a peer that asks for the present state is told besides queues and consumers: kind, properties, by source.
        self.standing: dict[str, tuple[str, Properties]] = {}

    def start(self) -> None:
        """Watches the queues that exist already."""
        for queue in self.queues.by_name.values():
            self._watch(queue)

    def _watch(self, queue: Queue) -> None:
        """Watches deliveries of a queue, but not of notification queues, whose deliveries would notify without end."""
        if self.options.delivered and not queue.internal and queue.spec.address != self.address:
            queue.watch_deliveries()

    # -- changes of local queues ----------------------------------------------------------------
    def on_queue_added(self, now: int, queue: Queue) -> None:
        """Sends BINDING_ADDED when the queue is durable, because peers store the id of a binding in their messages."""
        self._watch(queue)
        if self._heard() and not self._is_own(queue):
            self.publish(now, "BINDING_ADDED", self._binding_properties(queue), queue.lsn)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        if self._heard() and not self._is_own(queue):
            self.publish(now, "BINDING_REMOVED", self._binding_properties(queue))

    def _is_own(self, queue: Queue) -> bool:
        """Returns True for a queue of which peers need not know.

        These are the rings of retroactive addresses, which each node fills itself, and the subscriptions of topics by
        bridges of networks: another broker that has a bridge to each member would get each message more than once.
        """
        return is_resource(self.config, queue.name) or is_network_subscription(queue.spec)

    def on_consumer_added(self, now: int, consumer: QueueConsumer) -> None:
        self._consumer(now, "CONSUMER_CREATED", consumer)

    def on_consumer_removed(self, now: int, consumer: QueueConsumer) -> None:
        self._consumer(now, "CONSUMER_CLOSED", consumer)

    def on_consumer_slow(self, now: int, consumer: SessionConsumer) -> None:
        """Sends CONSUMER_SLOW, with the properties of QueueImpl."""
        queue = consumer.queue
        session = consumer.session
        client = session.client
        self.publish(
            now,
            "CONSUMER_SLOW",
            {
                "_AMQ_ConsumerCount": Int(queue.consumer_count()),
                "_AMQ_Address": queue.spec.address,
                "_AMQ_RemoteAddress": client.remote,
                "_AMQ_ConnectionName": connection_name(client),
                "_AMQ_ConsumerName": consumer.id,
                "_AMQ_SessionName": session.name,
            },
        )

    def withdraw_consumers(self, now: int) -> None:
        """Sends CONSUMER_CLOSED for every consumer of a node that leaves: its peers route nothing more to it."""
        for queue in self.queues.by_name.values():
            if queue.internal or self._is_own(queue):
                continue
            left = queue.consumer_count()
            for consumer in queue.consumers:
                if not consumer.browse_only:
                    left -= 1
                    self._consumer(now, "CONSUMER_CLOSED", consumer, left)

    def _consumer(self, now: int, kind: str, consumer: QueueConsumer, count: int = -1) -> None:
        """Sends a consumer's notification; `count`: of the queue's consumers, if that is not their number."""
        if not self._heard():
            return
        selector = consumer.selector
        properties = self._consumer_properties(
            consumer.queue, None if selector is None else selector.text
        )
        if count >= 0:
            properties["_AMQ_ConsumerCount"] = Int(count)
        if isinstance(consumer, SessionConsumer):
            session = consumer.session
            properties["_AMQ_User"] = session.identity.user
            if kind == "CONSUMER_CREATED":
                properties["_AMQ_ValidatedUser"] = session.identity.user
                properties["_AMQ_CertSubjectDN"] = session.client.certificate or NO_CERTIFICATE
            properties["_AMQ_RemoteAddress"] = session.client.remote
            properties["_AMQ_SessionName"] = session.name
            if session.client.client_id is not None:
                properties["_AMQ_Client_ID"] = session.client.client_id
            properties["_AMQ_ConsumerName"] = consumer.id
        self.publish(now, kind, properties)

    # -- sessions, connections, addresses -------------------------------------------------------
    def on_session_created(self, now: int, session: Session) -> None:
        self._session(now, "SESSION_CREATED", session)

    def on_session_closed(self, now: int, session: Session) -> None:
        self._session(now, "SESSION_CLOSED", session)

    def _session(self, now: int, kind: str, session: Session) -> None:
        """Sends a session's notification with a distance, because peers forward it; none for nodes and bridges."""
        if self.config.suppress_session_notifications or session.identity.cluster or session.client.bridge:
            return
        properties: Properties = {
            "_AMQ_ConnectionName": connection_name(session.client),
            "_AMQ_User": session.identity.user,
            "_AMQ_SessionName": session.name,
            "_AMQ_Client_ID": session.client.client_id,
            "_AMQ_Protocol_Name": session.client.protocol,
            "_AMQ_Address": self.address,
            "_AMQ_Distance": Int(0),
        }
        self.publish(now, kind, properties)

    def session_elsewhere(self, now: int, notification: Message, distance: int) -> None:
        """Forwards a peer's session notification with a distance of one more (ClusterConnectionImpl.doSessionCreated).

        The notification has no other effect: as in Artemis a client id is unique on its node only.
        """
        if self.config.suppress_session_notifications:
            return
        properties: Properties = {}
        for name in ("_AMQ_ConnectionName", "_AMQ_RemoteAddress", "_AMQ_Client_ID", "_AMQ_Protocol_Name"):
            value = notification.properties.get(name)
            properties[name] = value if isinstance(value, str) else None
        properties["_AMQ_Distance"] = Int(distance + 1)
        self.publish(now, "SESSION_CREATED", properties)

    def on_connection_created(self, now: int, client: Client) -> None:
        self._connection(now, "CONNECTION_CREATED", client)

    def on_connection_destroyed(self, now: int, client: Client) -> None:
        self._connection(now, "CONNECTION_DESTROYED", client)

    def _connection(self, now: int, kind: str, client: Client) -> None:
        if self.options.connections:
            properties: Properties = {"_AMQ_ConnectionName": connection_name(client)}
            properties["_AMQ_CertSubjectDN"] = client.certificate or NO_CERTIFICATE
            properties["_AMQ_RemoteAddress"] = client.remote
            self.publish(now, kind, properties)

    def on_address_added(self, now: int, address: Address) -> None:
        self._address(now, "ADDRESS_ADDED", address)

    def on_address_removed(self, now: int, address: Address) -> None:
        self._address(now, "ADDRESS_REMOVED", address)

    def _address(self, now: int, kind: str, address: Address) -> None:
        if self.options.addresses:
            routing_type = ANYCAST if address.anycast and not address.multicast else MULTICAST
            properties: Properties = {"_AMQ_Address": address.name}
            properties["_AMQ_Routing_Type"] = Byte(routing_type)
            self.publish(now, kind, properties)

    # -- messages, refusals ---------------------------------------------------------------------
    def on_expired(self, now: int, reference: Reference) -> None:
        spec = reference.queue.spec
        if not self.options.expired or spec.address == self.address:
            return
        properties: Properties = {
            "_AMQ_Address": spec.address,
            "_AMQ_Routing_Type": Byte(spec.routing_type),
            "_AMQ_RoutingName": spec.name,
            "_AMQ_Message_ID": int(reference.message.id),
        }
        if reference.consumer is not None:
            properties["_AMQ_ConsumerName"] = reference.consumer.id
        self.publish(now, "MESSAGE_EXPIRED", properties)

    def on_delivered(self, now: int, consumer: QueueConsumer, reference: Reference) -> None:
        """Sends the delivery notification, for browsers too, as in Artemis."""
        spec = consumer.queue.spec
        if not isinstance(consumer, SessionConsumer):
            return  # the consumer is a bridge
        properties: Properties = {
            "_AMQ_Address": spec.address,
            "_AMQ_Routing_Type": Byte(spec.routing_type),
            "_AMQ_RoutingName": spec.name,
            "_AMQ_ConsumerName": consumer.id,
            "_AMQ_Message_ID": int(reference.message.id),
        }
        self.publish(now, "MESSAGE_DELIVERED", properties)

    def on_permission_refused(
        self, now: int, identity: Identity, permission: str, address: str
    ) -> None:
        properties: Properties = {
            "_AMQ_Address": address.split("::", 1)[0],
            "_AMQ_CheckType": check_type(permission),
            "_AMQ_User": identity.user,
        }
        self.publish(now, "SECURITY_PERMISSION_VIOLATION", properties)

    def on_login_refused(self, now: int, user: str, remote: str) -> None:
        properties: Properties = {"_AMQ_User": user, "_AMQ_RemoteAddress": remote}
        properties["_AMQ_CertSubjectDN"] = NO_CERTIFICATE
        self.publish(now, "SECURITY_AUTHENTICATION_VIOLATION", properties)

    # -- changes of remote bindings (chains) ----------------------------------------------------
    def remote_binding(self, now: int, kind: str, remote: RemoteBinding) -> None:
        """Sends BINDING_ADDED or BINDING_REMOVED (`kind`) of a remote binding, one hop further away for peers."""
        self.publish(now, kind, remote_properties(remote))
        tell_of_remote(self.queues.observers, now, remote)

    def remote_consumer(
        self, now: int, kind: str, remote: RemoteBinding, filter_text: str | None, distance: int
    ) -> None:
        """Sends a remote consumer's notification. `distance`: one hop more than the peer's, so that forwarding ends."""
        properties = remote_properties(remote)
        properties["_AMQ_Distance"] = Int(distance)
        properties["_AMQ_ConsumerCount"] = Int(remote.consumer_count)
        properties["_AMQ_FilterString"] = filter_text
        self.publish(now, kind, properties)
        tell_of_remote(self.queues.observers, now, remote)

    # -- sending --------------------------------------------------------------------------------
    def _heard(self) -> bool:
        """Returns whether a queue would get a notification."""
        address = self.addresses.by_name.get(self.address)
        return address is not None and bool(address.groups)

    def publish(self, now: int, kind: str, properties: Properties, after_lsn: int = 0) -> None:
        """Sends a notification to every queue on its address whose filter takes it, when `after_lsn` is durable."""
        address = self.addresses.by_name.get(self.address)
        if address is None or not address.groups:
            return
        message = encoded(self, now, kind, properties, True)  # a durable queue keeps the notifications
        if message is None:
            return
        plan = RoutingPlan(message)
        plan.after_lsn = after_lsn
        plan.routes = route(address, message, -1, "")
        if plan.routes:
            self.plans.commit(plan, None, 0)

    def message(self, now: int, kind: str, properties: Properties) -> Message:
        message = Message.create(self.address, b"", 0, False, now // 1_000_000, 0)
        target = message.properties
        if kind:
            target.put("_AMQ_NotifType", kind)
        target.put("_AMQ_NotifTimestamp", now // 1_000_000)
        for name, value in properties.items():
            target.put(name, value)
        message.properties_changed()
        return message

    def send_queue_info(self, now: int, queue: Queue, address_prefixes: str) -> None:
        """Sends all bindings and consumers to one queue, between RESET and RESET_COMPLETE (sendQueueInfoToQueue)."""
        self._direct(now, queue, "", {"_AMQ_RESET_QUEUE_DATA": True})
        for address in list(self.addresses.by_name.values()):
            if address.internal or is_resource(self.config, address.name):
                continue
            if not covers(address_prefixes, address.name):
                continue
            for group in list(address.groups.values()):
                for local in group.locals:
                    if not is_network_subscription(local.spec):
                        self._local_info(now, queue, local)
                for remote in group.remotes:
                    self._remote_info(now, queue, remote)
        self._direct(now, queue, "", {"_AMQ_RESET_QUEUE_DATA_COMPLETE": True})
        for kind, properties in self.standing.values():
            self._direct(now, queue, kind, properties)

    def _local_info(self, now: int, target: Queue, queue: Queue) -> None:
        properties = self._binding_properties(queue)
        self._direct(now, target, "BINDING_ADDED", properties, queue.lsn)
        for consumer in queue.consumers:
            if not consumer.browse_only and isinstance(consumer, SessionConsumer):
                # A bridge's consumer is not announced, as in Artemis.
                selector = consumer.selector
                properties = self._consumer_properties(
                    queue, None if selector is None else selector.text
                )
                self._direct(now, target, "CONSUMER_CREATED", properties)

    def _remote_info(self, now: int, target: Queue, remote: RemoteBinding) -> None:
        self._direct(now, target, "BINDING_ADDED", remote_properties(remote))
        with_selector = 0
        for text, (_, count) in remote.selectors.items():
            with_selector += count
            for _ in range(count):
                self._remote_consumer_info(now, target, remote, text)
        for _ in range(remote.consumer_count - with_selector):
            self._remote_consumer_info(now, target, remote, None)

    def _remote_consumer_info(
        self, now: int, target: Queue, remote: RemoteBinding, text: str | None
    ) -> None:
        properties = remote_properties(remote)
        properties["_AMQ_ConsumerCount"] = Int(remote.consumer_count)
        properties["_AMQ_FilterString"] = text
        self._direct(now, target, "CONSUMER_CREATED", properties)

    def _direct(
        self, now: int, queue: Queue, kind: str, properties: Properties, after_lsn: int = 0
    ) -> None:
        """Sends to one queue if its filter takes it (the filter limits the hops: _AMQ_Distance < max-hops)."""
        message = encoded(self, now, kind, properties, False)
        if message is None:
            return
        if kind and queue.filter is not None and not queue.filter.matches(message):
            return
        plan = RoutingPlan(message)
        plan.after_lsn = after_lsn
        plan.routes = [Route(queue, b"")]
        self.plans.commit(plan, None, 0)

    # -- properties -----------------------------------------------------------------------------
    def _binding_properties(self, queue: Queue) -> Properties:
        return {
            "_AMQ_Binding_Type": Int(LOCAL_QUEUE),
            "_AMQ_Address": queue.spec.address,
            "_AMQ_ClusterName": queue.name + self.node_id,
            "_AMQ_RoutingName": queue.routing_name(),
            "_AMQ_Binding_ID": queue.id,
            "_AMQ_Distance": Int(0),
            "_AMQ_FilterString": None if queue.filter is None else queue.filter.text,
        }

    def _consumer_properties(self, queue: Queue, filter_text: str | None) -> Properties:
        # Artemis has no binding type here. Its bridges before 2.26 ask for `_AMQ_Binding_Type <> 2`, which is unknown
        # without one, so they would learn of no consumer.
        return {
            "_AMQ_Binding_Type": Int(LOCAL_QUEUE),
            "_AMQ_Address": queue.spec.address,
            "_AMQ_ClusterName": queue.name + self.node_id,
            "_AMQ_RoutingName": queue.routing_name(),
            "_AMQ_Distance": Int(0),
            "_AMQ_ConsumerCount": Int(queue.consumer_count()),
            "_AMQ_FilterString": filter_text,
        }


def encoded(
    notifications: Notifications, now: int, kind: str, properties: Properties, durable: bool
) -> Message | None:
    """Returns a notification with its encoding; None for one that cannot be encoded, which is left out."""
    try:
        message = notifications.message(now, kind, properties)
        message.durable = durable
        return message if message.head else None
    except Exception as error:  # nothing was changed, whatever it is
        notifications.failures.left_out(now, "CORE", f"notification {kind}", error)
        return None


def covers(prefixes: str, address: str) -> bool:
    """Returns True if the `address` of a cluster-connection covers the address.

    Prefixes are separated by commas, `!` excludes and wins, an empty text covers all.
    """
    included = False
    any_include = False
    for part in prefixes.split(","):
        prefix = part.strip()
        if prefix.startswith("!"):
            if address.startswith(prefix[1:]):
                return False
        elif prefix:
            any_include = True
            if address.startswith(prefix):
                included = True
    return included or not any_include


def tell_of_remote(observers: list[Observer], now: int, remote: RemoteBinding) -> None:
    for observer in observers:
        observer.on_remote_consumers(now, remote)


def is_network_subscription(spec: QueueSpec) -> bool:
    """Returns True for the queue of a bridge to another broker that consumes a topic: its filter asks for the path."""
    return spec.routing_type == MULTICAST and BROKER_PATH in (spec.filter_text or "")


def connection_name(client: Client) -> str:
    """Returns the connection's name as the lists of management show it."""
    return f"{client.connection:08x}"


def remote_properties(remote: RemoteBinding) -> Properties:
    properties: Properties = {
        "_AMQ_Binding_Type": Int(REMOTE_QUEUE),
        "_AMQ_Address": remote.address,
        "_AMQ_ClusterName": remote.cluster_name,
        "_AMQ_RoutingName": remote.routing_name,
        "_AMQ_Binding_ID": remote.id,
        "_AMQ_Distance": Int(remote.distance),
        "_AMQ_FilterString": remote.filter_text,
    }
    if remote.path:
        properties[VIA] = remote.path
    return properties
