"""Management notifications: ordinary messages on `activemq.notifications` that tell peers and tools what changed.

Properties follow the fact sheet ("Notification messages"). A cluster peer reads them through a temporary queue with a
filter; `sendQueueInfoToQueue` puts the whole present state into one such queue in one go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.bindings import RemoteBinding
from atalanta.kernel.message import Message
from atalanta.kernel.observer import Observer
from atalanta.kernel.plan import Plan
from atalanta.kernel.properties import Int, PropertyValue
from atalanta.kernel.router import Route, route

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.consumer import Consumer
    from atalanta.kernel.queue import Queue
    from atalanta.kernel.session import Session

LOCAL_QUEUE: Final = 0
REMOTE_QUEUE: Final = 1

Properties = dict[str, PropertyValue]


class Notifications(Observer):
    """Turns changes of the broker into notification messages; nothing is built while nobody listens."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.address = broker.config.management_notification_address

    # -- changes of local queues ----------------------------------------------------------------
    def on_queue_added(self, now: int, queue: Queue) -> None:
        """Peers put the id of a binding into messages they store: so they hear of a queue only once it is durable."""
        self.publish(now, "BINDING_ADDED", binding_properties(self.broker, queue), queue.lsn)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        self.publish(now, "BINDING_REMOVED", binding_properties(self.broker, queue))

    def on_consumer_added(self, now: int, consumer: Consumer) -> None:
        self._consumer(now, "CONSUMER_CREATED", consumer)

    def on_consumer_removed(self, now: int, consumer: Consumer) -> None:
        self._consumer(now, "CONSUMER_CLOSED", consumer)

    def on_consumer_slow(self, now: int, consumer: Consumer, session: Session) -> None:
        """CONSUMER_SLOW, with the properties QueueImpl gives it."""
        queue = consumer.queue
        client = session.client
        self.publish(
            now,
            "CONSUMER_SLOW",
            {
                "_AMQ_ConsumerCount": Int(queue.consumer_count()),
                "_AMQ_Address": queue.spec.address,
                "_AMQ_RemoteAddress": client.remote,
                "_AMQ_ConnectionName": f"{client.connection:08x}",  # as in management's lists
                "_AMQ_ConsumerName": consumer.id,
                "_AMQ_SessionName": session.name,
            },
        )

    def _consumer(self, now: int, kind: str, consumer: Consumer) -> None:
        selector = consumer.selector
        self.publish(
            now,
            kind,
            consumer_properties(
                self.broker, consumer.queue, None if selector is None else selector.text
            ),
        )

    # -- changes of remote bindings (chains) ----------------------------------------------------
    def remote_binding(self, now: int, kind: str, remote: RemoteBinding) -> None:
        """kind BINDING_ADDED or BINDING_REMOVED; peers see it one hop further away."""
        self.publish(now, kind, remote_properties(remote))

    def remote_consumer(
        self, now: int, kind: str, remote: RemoteBinding, filter_text: str | None
    ) -> None:
        properties = remote_properties(remote)
        properties["_AMQ_ConsumerCount"] = Int(remote.consumer_count)
        properties["_AMQ_FilterString"] = filter_text
        self.publish(now, kind, properties)

    # -- sending --------------------------------------------------------------------------------
    def publish(self, now: int, kind: str, properties: Properties, after_lsn: int = 0) -> None:
        """To every queue on the notification address that wants it, when `after_lsn` is durable."""
        address = self.broker.addresses.get(self.address)
        if address is None or not address.groups:
            return
        message = self.message(now, kind, properties)
        plan = Plan(message)
        plan.after_lsn = after_lsn
        plan.routes = route(address, message, -1, "")
        if plan.routes:
            self.broker.commit_plan(now, plan, None, 0)

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
        """All bindings and consumers, to one queue, between RESET and RESET_COMPLETE (sendQueueInfoToQueue)."""
        self._direct(now, queue, "", {"_AMQ_RESET_QUEUE_DATA": True})
        for address in list(self.broker.addresses.values()):
            if address.internal or not covers(address_prefixes, address.name):
                continue
            for group in list(address.groups.values()):
                for local in group.locals:
                    self._local_info(now, queue, local)
                for remote in group.remotes:
                    self._remote_info(now, queue, remote)
        self._direct(now, queue, "", {"_AMQ_RESET_QUEUE_DATA_COMPLETE": True})

    def _local_info(self, now: int, target: Queue, queue: Queue) -> None:
        properties = binding_properties(self.broker, queue)
        self._direct(now, target, "BINDING_ADDED", properties, queue.lsn)
        for consumer in queue.consumers:
            if not consumer.browse_only:
                selector = consumer.selector
                properties = consumer_properties(
                    self.broker, queue, None if selector is None else selector.text
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
        """To this one queue if its filter takes it (hops are counted by the filter: _AMQ_Distance < max-hops)."""
        message = self.message(now, kind, properties)
        if kind and queue.filter is not None and not queue.filter.matches(message):
            return
        plan = Plan(message)
        plan.after_lsn = after_lsn
        plan.routes = [Route(queue, b"")]
        self.broker.commit_plan(now, plan, None, 0)


def covers(prefixes: str, address: str) -> bool:
    """The `address` of a cluster-connection: comma separated prefixes, `!` excludes and wins, empty covers all."""
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


def binding_properties(broker: Broker, queue: Queue) -> Properties:
    return {
        "_AMQ_Binding_Type": Int(LOCAL_QUEUE),
        "_AMQ_Address": queue.spec.address,
        "_AMQ_ClusterName": queue.name + broker.node_id,
        "_AMQ_RoutingName": queue.routing_name(),
        "_AMQ_Binding_ID": queue.id,
        "_AMQ_Distance": Int(0),
        "_AMQ_FilterString": None if queue.filter is None else queue.filter.text,
    }


def consumer_properties(broker: Broker, queue: Queue, filter_text: str | None) -> Properties:
    return {
        "_AMQ_Address": queue.spec.address,
        "_AMQ_ClusterName": queue.name + broker.node_id,
        "_AMQ_RoutingName": queue.routing_name(),
        "_AMQ_Distance": Int(0),
        "_AMQ_ConsumerCount": Int(queue.consumer_count()),
        "_AMQ_FilterString": filter_text,
    }


def remote_properties(remote: RemoteBinding) -> Properties:
    return {
        "_AMQ_Binding_Type": Int(REMOTE_QUEUE),
        "_AMQ_Address": remote.address,
        "_AMQ_ClusterName": remote.cluster_name,
        "_AMQ_RoutingName": remote.routing_name,
        "_AMQ_Binding_ID": remote.id,
        "_AMQ_Distance": Int(remote.distance),
        "_AMQ_FilterString": remote.filter_text,
    }
