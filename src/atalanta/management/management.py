"""Management by message: requests on `activemq.management`, answered to their reply address.

A request names a resource (`broker`, `queue.NAME`, `address.NAME`, `acceptor.NAME`) and an attribute or an operation
with a JSON array of parameters in its body; the answer is a JSON array of one value, or null for nothing
(ManagementServiceImpl.handleMessage, ManagementHelper). Errors are answers, never exceptions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.controls.acceptor import (
    ACCEPTOR_ATTRIBUTES,
    ACCEPTOR_OPERATIONS,
    ListedAcceptor,
)
from atalanta.management.controls.address import ADDRESS_ATTRIBUTES, ADDRESS_OPERATIONS
from atalanta.management.controls.bridge import BRIDGE_ATTRIBUTES, BRIDGE_OPERATIONS, BridgeRegistry
from atalanta.management.controls.broker import BROKER_ATTRIBUTES, BROKER_OPERATIONS
from atalanta.management.controls.cluster_connection import (
    CLUSTER_ATTRIBUTES,
    CLUSTER_OPERATIONS,
    ListedClusterConnection,
)
from atalanta.management.controls.connection_router import (
    ROUTER_ATTRIBUTES,
    ROUTER_OPERATIONS,
    ListedRouter,
)
from atalanta.management.controls.divert import DIVERT_ATTRIBUTES, DIVERT_OPERATIONS
from atalanta.management.controls.queue import QUEUE_ATTRIBUTES, QUEUE_OPERATIONS
from atalanta.management.message_counters import MessageCounters
from atalanta.management.metrics import metric_slices
from atalanta.management.pauses import Pauses
from atalanta.management.permission import ManagementPermission, getter_name
from atalanta.management.request.call import (
    LATER,
    Attribute,
    Call,
    Operations,
    find_operation,
    no_attribute,
    no_operation,
    no_resource,
)
from atalanta.management.request.jobs import Jobs
from atalanta.management.request.json_text import encode_json, uuid_text
from atalanta.management.scale_down import Departure
from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.message.message import Message

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.broker.notifications import Notifications
    from atalanta.kernel.sessions.session import Session
    from atalanta.management.controls.balance import Balance

BODY_BYTES_MAX: Final = 1 << 20
PARAMETERS_MAX: Final = 10_000
REPLY_BYTES_MAX: Final = 64 << 20
TEXT: Final = 3


class Management:
    """The management service. `topology` lists the members, `disk_used` is the used part of the data folder's disk.

    `counters` are those of the trace port. The owners of these values set them. A `disk_used` below 0 means unknown.
    """

    def __init__(self, broker: Broker, notifications: Notifications, version: str) -> None:
        self.broker: Broker = broker
        self.notifications = notifications
        self.version: str = version
        self.started_at: int = 0
        self.topology: Callable[[], list[dict[str, object]]] = no_topology
        self.disk_used: float = -1.0
        self.counters: dict[str, int] = {}
        self.acceptors: dict[str, ListedAcceptor] = {}
        self.connectors: dict[str, Mapping[str, object]] = {}  # parameters as the node announces them
        self.reload: Callable[[str], None] = cannot_reload
        self.cluster_connections: list[str] = []
        self.clusters: dict[str, ListedClusterConnection] = {}
        self.bridges: BridgeRegistry = BridgeRegistry()
        self.routers: dict[str, ListedRouter] = {}
        self.permission: ManagementPermission = ManagementPermission(broker.config)
        self.balance: Balance | None = None
        self.web_started: bool = False
        self.departure: Departure = Departure()
        self.jobs: Jobs = Jobs(self)
        self.pauses: Pauses = Pauses(broker)
        self.counted: MessageCounters = MessageCounters(broker)
        broker.services[broker.config.management_address] = self.handle

    def start(self, now: int) -> None:
        """Restores the persisted pauses of queues after recovery."""
        self.started_at = now
        self.pauses.restore()
        self.counted.start(now)
        self.notifications.start()
        self.broker.observers.append(self.pauses)

    def metrics(self) -> Iterator[str]:
        """Yields every metric for Prometheus, in bounded slices."""
        return metric_slices(self)

    def readiness(self) -> dict[str, object]:
        """Returns whether clients are served, and the reason if they are not."""
        broker = self.broker
        return {
            "ready": self.started_at > 0 and not broker.stopping,
            "stopping": broker.stopping,
            "disk_full": broker.memory.disk_full,
            "node_id": broker.node_id,
            "name": broker.config.name,
            "version": self.version,
        }

    def on_timer(self, now: int) -> None:
        self.jobs.step(now)

    def handle(self, now: int, request: Message, session: Session | None = None) -> None:
        """Executes the request and replies to its reply address, if it has one.

        Raises BrokerError SECURITY, without a reply, if the session may not use management at all.
        """
        self.permission.check_request(session)
        call = Call(self, now, request, session)
        before = self.broker.journal.last
        try:
            result = self._call(call)
        except BrokerError as error:
            self.refuse(call, error.text)
        except DecodeError as damage:  # a separate name: mypyc gives each name one type
            self.refuse(call, f"management request cannot be read: {damage}")
        else:
            if result is not LATER:
                changed = self.broker.journal.last > before
                self.reply(now, call, result, True, changed)

    def _call(self, call: Call) -> object:
        properties = call.request.properties
        resource = properties.get("_AMQ_ResourceName")
        operation = properties.get("_AMQ_OperationName")
        attribute = properties.get("_AMQ_Attribute")
        if not isinstance(resource, str):
            raise no_resource("null")
        if isinstance(operation, str):
            attributes, operations = self._resource(call, resource)
            return _operate(call, attributes, operations, operation)
        if not isinstance(attribute, str) or not attribute:
            raise BrokerError(
                ILLEGAL_STATE, "management request names neither an attribute nor an operation"
            )
        attributes, _ = self._resource(call, resource)
        reader = attributes.get(attribute[0].upper() + attribute[1:])
        if reader is None:
            raise no_attribute(attribute)
        self.permission.check_call(call.session, resource, getter_name(attribute))
        return reader(call)

    def _resource(self, call: Call, name: str) -> tuple[dict[str, Attribute], Operations]:
        """Returns the attributes and operations of the resource. Raises BrokerError if the name is unknown."""
        call.resource = name
        broker = self.broker
        if name == "broker":
            return BROKER_ATTRIBUTES, BROKER_OPERATIONS
        if name.startswith("queue."):
            called = name[6:]
            at = called.find("::")
            queue = broker.queues.get(called if at < 0 else called[at + 2 :])
            if queue is not None and (at < 0 or queue.spec.address == called[:at]):
                call.given_queue = queue
                return QUEUE_ATTRIBUTES, QUEUE_OPERATIONS
        elif name.startswith("acceptor."):
            if name[9:] in self.acceptors:
                return ACCEPTOR_ATTRIBUTES, ACCEPTOR_OPERATIONS
        elif name.startswith("divert."):
            call.given_divert = broker.diverts.by_name.get(name[7:])
            if call.given_divert is not None:
                return DIVERT_ATTRIBUTES, DIVERT_OPERATIONS
        elif name.startswith("clusterconnection."):
            if name[18:] in self.clusters:
                return CLUSTER_ATTRIBUTES, CLUSTER_OPERATIONS
        elif name.startswith("bridge."):
            if self.bridges.find(name[7:]) is not None:
                return BRIDGE_ATTRIBUTES, BRIDGE_OPERATIONS
        elif name.startswith("connectionrouter."):
            if name[17:] in self.routers:
                return ROUTER_ATTRIBUTES, ROUTER_OPERATIONS
        elif name.startswith("address."):
            address = broker.addresses.get(name[8:])
            if address is not None:
                call.given_address = address
                return ADDRESS_ATTRIBUTES, ADDRESS_OPERATIONS
        raise no_resource(name)

    # -- replies --------------------------------------------------------------------------------
    def refuse(self, call: Call, why: str) -> None:
        self.broker.trace.event("management_refused", {"resource": call.resource, "why": why})
        self.reply(call.now, call, why, False, False)

    def reply(self, now: int, call: Call, result: object, succeeded: bool, changed: bool) -> None:
        """Sends the reply to the request's reply address. If `changed`, the change is on disk before."""
        reply_to = call.request.properties.get("JMSReplyTo")
        if not isinstance(reply_to, str):
            return
        encoded = None if result is None else encode_json([result])
        if encoded is not None and len(encoded) > REPLY_BYTES_MAX:
            succeeded = False
            encoded = encode_json([f"the answer is larger than {REPLY_BYTES_MAX} characters"])
        writer = Writer()
        writer.nullable_simple_string(encoded)
        address = strip_scheme(reply_to)
        reply = Message.create(address, writer.getvalue(), TEXT, False, now // 1_000_000, 4)
        reply.properties.put("_AMQ_OperationSucceeded", succeeded)
        reply.properties.put("JMSCorrelationID", correlation(call.request))
        reply.properties_changed()
        broker = self.broker
        try:
            plan = broker.publisher.prepare(now, reply)
        except BrokerError as error:
            broker.trace.event("management_reply_lost", {"to": address, "why": error.text})
            return
        if changed:
            plan.after_lsn = broker.journal.last
        broker.plans.commit(plan, None, 0)


def _operate(
    call: Call, attributes: dict[str, Attribute], operations: Operations, name: str
) -> object:
    """Executes an operation of the table. Getters of attributes are operations as well, like in Java."""
    given = parameters(call.request)
    permission = call.management.permission
    operation = find_operation(operations, name, given)
    if operation is not None:
        permission.check_call(call.session, call.resource, name)
        return operation(call, given)
    if not given:
        getter = name[3:] if name.startswith("get") else name[2:] if name.startswith("is") else ""
        reader = attributes.get(getter)
        if reader is not None:
            permission.check_call(call.session, call.resource, name)
            return reader(call)
    raise no_operation(name, given)


def correlation(request: Message) -> str | bytes:
    """Returns the request's correlation id, else its message id (ManagementServiceImpl.getCorrelationIdentity)."""
    given = request.properties.get("JMSCorrelationID")
    if isinstance(given, str | bytes):
        return given
    native = request.properties.get("NATIVE_MESSAGE_ID")
    if isinstance(native, str):
        return native
    user_id = request.user_id
    return "null" if user_id is None else uuid_text(user_id)


def cannot_reload(why: str) -> None:
    raise BrokerError(ILLEGAL_STATE, "this node has no configuration files to reload")


def no_topology() -> list[dict[str, object]]:
    return []


def strip_scheme(address: str) -> str:
    """Returns the core name of a reply address. JMS clients write it as `queue://name` and the like."""
    for scheme in ("queue://", "topic://", "temp-queue://", "temp-topic://"):
        if address.startswith(scheme):
            return address[len(scheme) :]
    return address


def parameters(request: Message) -> list[object]:
    """Returns the JSON array in the body (nullable SimpleString), empty without a body. Size and count are limited."""
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
