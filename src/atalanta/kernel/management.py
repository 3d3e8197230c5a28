"""Management by message: requests on `activemq.management`, answered to their reply address.

A request names a resource (`broker`, `queue.NAME`, `address.NAME`) and an attribute or an operation with a JSON array
of parameters in its body, as Artemis' ManagementServiceImpl reads them. Only what stands in the tables below can be
called: nothing is looked up by name in objects.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel import catalogue
from atalanta.kernel.buffer import DecodeError, Reader, Writer
from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, ILLEGAL_STATE, BrokerError
from atalanta.kernel.message import Message
from atalanta.kernel.queue import Queue

if TYPE_CHECKING:
    from atalanta.kernel.address import Address
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.notifications import Notifications

BODY_BYTES_MAX: Final = 1 << 20
PARAMETERS_MAX: Final = 10_000
TEXT: Final = 3

QueueAttribute = Callable[[Queue], object]

QUEUE_ATTRIBUTES: Final[dict[str, QueueAttribute]] = {
    "ID": lambda queue: queue.id,
    "Name": lambda queue: queue.name,
    "Address": lambda queue: queue.spec.address,
    "Filter": lambda queue: queue.spec.filter_text,
    "Durable": lambda queue: queue.durable,
    "Temporary": lambda queue: queue.spec.temporary,
    "RoutingType": lambda queue: "ANYCAST" if queue.spec.routing_type == 1 else "MULTICAST",
    "MessageCount": lambda queue: queue.message_count,
    "DeliveringCount": lambda queue: queue.delivering_count,
    "ScheduledCount": lambda queue: queue.scheduled_count,
    "ConsumerCount": lambda queue: queue.consumer_count(),
    "MessagesAdded": lambda queue: queue.added,
    "MessagesAcknowledged": lambda queue: queue.acknowledged,
    "MessagesExpired": lambda queue: queue.expired,
    "MessagesKilled": lambda queue: queue.killed,
    "PersistentSize": lambda queue: queue.bytes,
}


class Management:
    """Answers requests; `topology` gives the members for listNetworkTopology (set by whoever knows the cluster)."""

    def __init__(self, broker: Broker, notifications: Notifications, version: str) -> None:
        self.broker = broker
        self.notifications = notifications
        self.version = version
        self.topology: Callable[[], list[dict[str, object]]] = no_topology

    def handle(self, now: int, request: Message) -> None:
        """Carry the request out; answer to its reply address if it has one. Errors are answers, never exceptions."""
        try:
            result = self._call(now, request)
            succeeded = True
        except BrokerError as error:
            result = error.text
            succeeded = False
        except DecodeError as error:
            result = f"management request cannot be read: {error}"
            succeeded = False
        if not succeeded:
            self.broker.trace.event("management_refused", {"why": str(result)})
        reply_to = request.properties.get("JMSReplyTo")
        if isinstance(reply_to, str):
            self._reply(now, request, strip_scheme(reply_to), result, succeeded)

    def _call(self, now: int, request: Message) -> object:
        properties = request.properties
        resource = properties.get("_AMQ_ResourceName")
        attribute = properties.get("_AMQ_Attribute")
        operation = properties.get("_AMQ_OperationName")
        if not isinstance(resource, str):
            raise BrokerError(ILLEGAL_STATE, "management request without _AMQ_ResourceName")
        if isinstance(attribute, str):
            return self._attribute(resource, attribute)
        if not isinstance(operation, str):
            raise BrokerError(
                ILLEGAL_STATE, "management request names neither an attribute nor an operation"
            )
        return self._operation(now, resource, operation, parameters(request))

    # -- attributes -----------------------------------------------------------------------------
    def _attribute(self, resource: str, attribute: str) -> object:
        broker = self.broker
        if resource.startswith("queue."):
            reader = QUEUE_ATTRIBUTES.get(attribute)
            if reader is not None:
                return reader(catalogue.find_queue(broker, resource[6:]))
        elif resource.startswith("address."):
            address = broker.addresses.get(resource[8:])
            if address is None:
                raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"address {resource[8:]} does not exist")
            if attribute in ADDRESS_ATTRIBUTES:
                return ADDRESS_ATTRIBUTES[attribute](address)
        elif resource == "broker":
            values = self._broker_attributes()
            if attribute in values:
                return values[attribute]
        raise BrokerError(ILLEGAL_STATE, f"no attribute {attribute} on {resource}")

    def _broker_attributes(self) -> dict[str, object]:
        broker = self.broker
        return {
            "NodeID": broker.node_id,
            "Name": broker.config.name,
            "Version": self.version,
            "Started": not broker.stopping,
            "QueueNames": sorted(broker.queues),
            "AddressNames": sorted(broker.addresses),
            "AddressMemoryUsage": broker.memory.used_bytes,
            "TotalMessageCount": sum(queue.message_count for queue in broker.queues.values()),
            "TotalConsumerCount": sum(queue.consumer_count() for queue in broker.queues.values()),
            "TotalMessagesAdded": sum(queue.added for queue in broker.queues.values()),
            "TotalMessagesAcknowledged": sum(
                queue.acknowledged for queue in broker.queues.values()
            ),
        }

    # -- operations -----------------------------------------------------------------------------
    def _operation(self, now: int, resource: str, operation: str, given: list[object]) -> object:
        broker = self.broker
        if resource == "broker":
            if operation == "sendQueueInfoToQueue":
                target = catalogue.find_queue(broker, text(given, 0, operation))
                self.notifications.send_queue_info(now, target, text(given, 1, operation))
                return None
            if operation == "updateDuplicateIdCache":
                return self._update_duplicates(given)
            if operation == "listNetworkTopology":
                return json.dumps(self.topology())
            if operation in ("getQueueNames", "getAddressNames"):
                return self._broker_attributes()[operation[3:]]
        elif resource.startswith("queue."):
            queue = catalogue.find_queue(broker, resource[6:])
            if operation in ("countMessages", "getMessageCount"):
                return queue.message_count
            if operation == "pause":
                queue.paused = True
                return None
            if operation == "resume":
                queue.paused = False
                broker.mark_dirty(queue)
                return None
        raise BrokerError(ILLEGAL_STATE, f"no operation {operation} on {resource}")

    def _update_duplicates(self, given: list[object]) -> object:
        """Ids a leaving node hands over: hex strings, as scale-down sends them (fact sheet A1.f)."""
        from atalanta.kernel import records

        address = text(given, 0, "updateDuplicateIdCache")
        if len(given) < 2 or not isinstance(given[1], list):
            raise BrokerError(
                ILLEGAL_STATE, "updateDuplicateIdCache takes an address and a list of ids"
            )
        cache = self.broker.duplicate_cache(address)
        for item in given[1]:
            raw = str(item).encode()
            if cache.lsn_of(raw) < 0:
                cache.add(
                    raw,
                    self.broker.journal.append(
                        records.DUPLICATES,
                        records.encode_duplicates(address, self.broker.take_message_id(), [raw]),
                    ),
                )
        return None

    # -- answering ------------------------------------------------------------------------------
    def _reply(
        self, now: int, request: Message, address: str, result: object, succeeded: bool
    ) -> None:
        writer = Writer()
        writer.nullable_simple_string(json.dumps([result] if result is not None else []))
        reply = Message.create(address, writer.getvalue(), TEXT, False, now // 1_000_000, 4)
        properties = reply.properties
        properties.put("_AMQ_OperationSucceeded", succeeded)
        correlation = request.properties.get("JMSCorrelationID")
        if correlation is not None:
            properties.put("JMSCorrelationID", correlation)
        reply.properties_changed()
        try:
            self.broker.publish(now, reply, None, 0)
        except BrokerError as error:
            self.broker.trace.event("management_reply_lost", {"to": address, "why": error.text})


ADDRESS_ATTRIBUTES: Final[dict[str, Callable[[Address], object]]] = {
    "Address": lambda address: address.name,
    "QueueNames": lambda address: [queue.name for queue in address.queues()],
    "RoutingTypes": lambda address: [
        name
        for name, has in (("MULTICAST", address.multicast), ("ANYCAST", address.anycast))
        if has
    ],
    "RoutedMessageCount": lambda address: address.routed,
    "UnRoutedMessageCount": lambda address: address.unrouted,
    "MessageCount": lambda address: sum(queue.message_count for queue in address.queues()),
    "RemoteQueueNames": lambda address: [remote.cluster_name for remote in address.remotes()],
}


def no_topology() -> list[dict[str, object]]:
    return []


def strip_scheme(address: str) -> str:
    """JMS clients write reply addresses as `queue://name` and the like; the core name is what follows."""
    for scheme in ("queue://", "topic://", "temp-queue://", "temp-topic://"):
        if address.startswith(scheme):
            return address[len(scheme) :]
    return address


def parameters(request: Message) -> list[object]:
    """The JSON array in the body (nullable SimpleString); empty when there is none. Size and count are limited."""
    if len(request.body) > BODY_BYTES_MAX:
        raise BrokerError(
            ILLEGAL_STATE, f"management request is larger than {BODY_BYTES_MAX} bytes"
        )
    if len(request.body) == 0 or request.body == b"\0\0\0\0":
        return []
    body = Reader(request.body).nullable_simple_string("management.body")
    if body is None or not body.strip():
        return []
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BrokerError(ILLEGAL_STATE, f"management parameters are not JSON: {error}") from error
    if not isinstance(value, list) or len(value) > PARAMETERS_MAX:
        raise BrokerError(ILLEGAL_STATE, "management parameters must be a JSON array")
    return value


def text(given: list[object], index: int, operation: str) -> str:
    if index >= len(given) or not isinstance(given[index], str):
        raise BrokerError(ILLEGAL_STATE, f"{operation} takes text as parameter {index + 1}")
    value = given[index]
    assert isinstance(value, str)
    return value
