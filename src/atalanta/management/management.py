"""Management by message: requests on `activemq.management`, answered to their reply address.

A request names a resource (`broker`, `queue.NAME`, `address.NAME`, `acceptor.NAME`) and an attribute or an operation
with a JSON array of parameters in its body; the answer is a JSON array of one value, or null for nothing
(ManagementServiceImpl.handleMessage, ManagementHelper). Errors are answers; an exception behind the begin of a change
(kernel/command.py) ends the node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.security.resource_limits import check_name
from atalanta.kernel.security.security import EDIT, MANAGE, VIEW
from atalanta.management.controls.acceptor import AcceptorControl
from atalanta.management.controls.address import AddressControl
from atalanta.management.controls.broker import BrokerControl
from atalanta.management.controls.divert import DivertControl
from atalanta.management.controls.lists import ListOperations
from atalanta.management.controls.queue import QueueControl
from atalanta.management.message_counters import MessageCounters
from atalanta.management.metrics import Metrics
from atalanta.management.operations.alarms import AlarmOperations
from atalanta.management.operations.changing_calls import ChangingCalls
from atalanta.management.operations.configuration import ConfigurationOperations
from atalanta.management.operations.connections import ConnectionOperations
from atalanta.management.operations.counters import CounterOperations
from atalanta.management.operations.destinations import DestinationOperations
from atalanta.management.operations.leases import LeaseOperations
from atalanta.management.operations.message_changes import MessageChangeOperations
from atalanta.management.operations.message_lists import MessageListOperations
from atalanta.management.operations.message_sender import MessageSender
from atalanta.management.operations.permissions import PermissionOperations
from atalanta.management.operations.prepared_transactions import PreparedTransactionOperations
from atalanta.management.operations.queue_consumers import QueueConsumerOperations
from atalanta.management.operations.roles import Roles
from atalanta.management.operations.scheduled_messages import ScheduledMessageOperations
from atalanta.management.operations.settings import SettingsOperations
from atalanta.management.operations.users import UserOperations
from atalanta.management.pauses import Pauses
from atalanta.management.request.call import (
    LATER,
    Call,
    Operation,
    Parameters,
    find_operation,
    no_attribute,
    no_operation,
    no_resource,
)
from atalanta.management.request.jobs import Jobs
from atalanta.management.request.replies import Replies
from atalanta.management.statistics import StatisticsRequests
from atalanta.message.encoding.buffer import DecodeError, Reader

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.broker.notifications import Notifications
    from atalanta.kernel.ports import Process
    from atalanta.kernel.security.permissions import Permissions
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.management.controls.control import Control
    from atalanta.management.resources.registry import ResourceRegistry
    from atalanta.management.status import NodeStatus
    from atalanta.message.message import Message

BODY_BYTES_MAX: Final = 1 << 20
PARAMETERS_MAX: Final = 10_000


# Attributes whose getter in Artemis begins with "is".
BOOLEANS: Final = (
    "Active", "AutoCreated", "AutoDelete", "Backup", "Clustered", "ConfigurationManaged", "Durable",
    "EmbeddedWebServerStarted", "Enabled", "Exclusive", "GroupRebalance",
    "GroupRebalancePauseDispatch", "Internal", "InternalQueue", "LastValue",
    "MessageCounterEnabled", "NonDestructive", "Paging", "Paused", "PersistIDCache",
    "PersistedPause", "PersistenceEnabled", "PurgeOnNoConsumers", "ReplicaSync",
    "RetroactiveResource", "SecurityEnabled", "SharedStore", "Started", "Temporary",
    "WildcardRoutingEnabled",
)  # fmt: skip


def getter_name(attribute: str) -> str:
    """Returns the getter of an attribute: messageCount -> getMessageCount, Paused -> isPaused."""
    name = attribute[0].upper() + attribute[1:]
    return f"is{name}" if name in BOOLEANS else f"get{name}"


class ManagementPermission:
    """The permission checks of management (ManagementServiceImpl.securityCheck, management-message-rbac).

    The permission `manage` on the management address allows requests. With management-message-rbac every call needs
    `view` or `edit` on an address of its own, PREFIX.RESOURCE.METHOD, such as `mops.queue.orders.removeAllMessages`.
    The method's name decides which of the two (view-permission-method-match-pattern). Raises BrokerError SECURITY if a
    permission is missing.
    """

    def __init__(self, config: BrokerConfig, permissions: Permissions) -> None:
        self.permissions = permissions
        self.address = config.management_address
        self.each_call = config.management_message_rbac
        self.prefix = config.management_rbac_prefix
        self.viewing = re.compile(config.view_permission_pattern)

    def check_request(self, session: Session | None) -> None:
        """Checks `manage`. A session of None is the node itself, which may do everything."""
        if session is not None:
            session.check(MANAGE, self.address)

    def check_call(self, session: Session | None, resource: str, method: str) -> None:
        if session is None or not self.each_call or session.identity.cluster:
            return
        session.check(self.of_method(method), self.address_of(resource, method))

    def allows_call(self, session: Session | None, resource: str, method: str) -> bool:
        """Returns what `check_call` would find. Nothing is counted, and nobody is notified.

        Raises BrokerError for names that are too long: answers about names are kept.
        """
        if session is None or not self.each_call:
            return True
        address = self.address_of(resource, method)
        check_name(address)
        return self.permissions.allows(session.identity, self.of_method(method), address)

    def of_method(self, method: str) -> str:
        """Returns the permission that a call of the method needs."""
        return VIEW if self.viewing.fullmatch(method) else EDIT

    def address_of(self, resource: str, method: str) -> str:
        """Returns the address at which a call needs its permission."""
        return f"{self.prefix}.{resource}.{method}"


class ManagementService:
    """The management service. `resources` are those of the node's other parts, `process` reads the configuration again.

    `controls` holds one control for each kind of resource, by the first segment of the resource's name.
    """

    def __init__(
        self,
        broker: Broker,
        notifications: Notifications,
        resources: ResourceRegistry,
        status: NodeStatus,
        process: Process,
    ) -> None:
        self.broker: Broker = broker
        self.notifications = notifications
        self.resources = resources
        self.status = status
        self.permission: ManagementPermission = ManagementPermission(broker.config, broker.permissions)
        self.replies = Replies(
            broker.journal, broker.publisher, broker.plans, broker.trace, broker.failures
        )
        self.jobs: Jobs = Jobs(broker.timers, self.replies, broker.command)
        self.pauses: Pauses = Pauses(broker.values, broker.dispatches)
        self.counters: MessageCounters = MessageCounters(
            broker.config, broker.queues, broker.timers
        )
        self.settings = SettingsOperations(
            broker.settings, broker.change_stored_settings, process, self.replies
        )
        self._metrics = Metrics(broker, resources, status, self.jobs)
        self.calls: ChangingCalls = ChangingCalls(broker.trace)
        self.users: UserOperations = UserOperations(process, self.replies, broker.trace)
        self.configuration: ConfigurationOperations = ConfigurationOperations(
            process, self.replies, self.permission.allows_call, self.is_started
        )
        self.controls: dict[str, Control] = self._controls(process)
        broker.session_services.request_handlers[broker.config.management_address] = self.handle
        if broker.config.statistics_requests:
            StatisticsRequests(broker)

    def _controls(self, process: Process) -> dict[str, Control]:
        broker = self.broker
        config = broker.config
        resources = self.resources
        counters = CounterOperations(self.counters)
        prepared = PreparedTransactionOperations(broker.branches)
        roles = Roles(broker.security)
        sender = MessageSender(broker.ids, broker.publisher)
        diverts = DivertControl(config, broker.diverts)
        return {
            "broker": self._broker_control(process, roles, counters, prepared, diverts),
            "queue": self._queue_control(sender, counters, prepared),
            "address": AddressControl(
                config,
                broker.addresses,
                broker.memory,
                broker.plans,
                self.pauses,
                self.jobs,
                roles,
                sender,
                broker.diverts,
            ),
            "acceptor": AcceptorControl(resources, lambda: not broker.stopping),
            "divert": diverts,
            **resources.controls,
        }

    def _broker_control(
        self,
        process: Process,
        roles: Roles,
        counters: CounterOperations,
        prepared: PreparedTransactionOperations,
        diverts: DivertControl,
    ) -> BrokerControl:
        broker = self.broker
        lists = ListOperations(
            broker.config,
            broker.queues,
            broker.addresses,
            broker.caches,
            broker.clients,
            self.pauses,
        )
        destinations = DestinationOperations(
            broker.queue_registry, broker.address_registry, broker.settings, broker.plans, self.jobs
        )
        alarms = AlarmOperations(broker, self.status, self.pauses)
        return BrokerControl(
            broker,
            self.notifications,
            self.status,
            self.resources,
            process,
            self.replies,
            lists,
            destinations,
            roles,
            {**counters.broker_attributes, **alarms.attributes},
            [
                lists.operations,
                destinations.operations,
                self.settings.operations,
                ConnectionOperations(broker.clients, broker.security, broker.trace).operations,
                prepared.operations,
                diverts.broker_operations,
                self.users.operations,
                self.configuration.operations,
                PermissionOperations(self.permission.allows_call).operations,
                counters.broker_operations,
                alarms.operations,
                self.calls.operations,
            ],
        )

    def _queue_control(
        self,
        sender: MessageSender,
        counters: CounterOperations,
        prepared: PreparedTransactionOperations,
    ) -> QueueControl:
        broker = self.broker
        lists = MessageListOperations(
            broker.store, broker.settings, broker.clients, broker.branches, self.jobs
        )
        changes = MessageChangeOperations(
            broker.plans,
            broker.queues,
            broker.addresses,
            broker.origins,
            self.jobs,
            broker.expiry,
            broker.dead_letters,
        )
        return QueueControl(
            broker.config,
            broker.queue_registry,
            broker.settings,
            self.pauses,
            sender,
            {**lists.attributes, **prepared.queue_attributes},
            [
                lists.operations,
                changes.operations,
                ScheduledMessageOperations(broker.store, broker.settings).operations,
                QueueConsumerOperations(broker.clients, broker.dispatches).operations,
                LeaseOperations(broker.log_views).operations,
                counters.queue_operations,
            ],
        )

    def follow_resources(self) -> None:
        """Shows the resources of parts that a reload has created."""
        self.controls.update(self.resources.controls)
        self.controls["broker"].attributes.update(self.resources.attributes)

    def start(self, now: int) -> None:
        """Restores the persisted pauses of queues after recovery."""
        broker = self.broker
        self.status.started_at = now
        self.pauses.restore(broker.queues, broker.addresses)
        self.counters.start(now)
        self.notifications.start()
        broker.observers.append(self.pauses)

    def metrics(self) -> Iterator[str]:
        """Yields every metric for Prometheus, in bounded slices."""
        return self._metrics.slices()

    def readiness(self) -> dict[str, object]:
        """Returns whether clients are served, and the reason if they are not."""
        broker = self.broker
        return {
            "ready": self.status.started_at > 0 and not broker.stopping,
            "stopping": broker.stopping,
            "disk_full": broker.memory.disk_full,
            "node_id": broker.node_id,
            "name": broker.config.name,
            "version": self.status.version,
        }

    def on_timer(self, now: int) -> None:
        """Executes one step of the oldest job."""
        self.jobs.step(now)

    def handle(self, now: int, request: Message, session: Session | None = None) -> None:
        """Executes the request and replies to its reply address, if it has one.

        Raises BrokerError SECURITY, without a reply, if the session may not use management at all.
        """
        self.permission.check_request(session)
        call = Call(now, request, session, self.broker.command)
        before = self.broker.journal.last
        try:
            result = self._call(call)
        except BrokerError as error:
            self.replies.refuse(now, call, error.text)
        except DecodeError as damage:  # a separate name: mypyc gives each name one type
            self.replies.refuse(now, call, f"management request cannot be read: {damage}")
        except Exception as failure:
            # Without a reply address nobody would hear of it: a bridge would wait for the queues of this node for ever.
            if self.broker.command.changing or not self.replies.is_awaited(call):
                raise
            self.replies.report_failure(now, call, failure)
        else:
            if result is not LATER:
                changed = self.broker.journal.last > before
                self.replies.send(now, call, result, True, changed)

    def _call(self, call: Call) -> object:
        properties = call.request.properties
        resource = properties.get("_AMQ_ResourceName")
        operation = properties.get("_AMQ_OperationName")
        attribute = properties.get("_AMQ_Attribute")
        if not isinstance(resource, str):
            raise no_resource("null")
        if isinstance(operation, str):
            call.operation = operation
            return self._operate(call, self.select(call, resource), operation)
        if not isinstance(attribute, str) or not attribute:
            raise BrokerError(
                ILLEGAL_STATE, "management request names neither an attribute nor an operation"
            )
        call.operation = getter_name(attribute)
        control = self.select(call, resource)
        reader = control.attributes.get(attribute[0].upper() + attribute[1:])
        if reader is None:
            raise no_attribute(attribute)
        self.permission.check_call(call.session, resource, getter_name(attribute))
        return reader(call)

    def select(self, call: Call, resource: str) -> Control:
        """Selects the resource for the call and returns its control. Raises BrokerError if it does not exist."""
        kind, _, name = resource.partition(".")
        call.resource = resource
        call.name = name
        control = self.controls.get(kind)
        if control is None or not control.select(call):
            raise no_resource(resource)
        return control

    def is_started(self, asked: Call, resource: str) -> bool | None:
        """Returns whether a resource is started, or runs as long as it is there; None for one that does not exist."""
        call = Call(asked.now, asked.request, None, asked.command)
        try:
            reader = self.select(call, resource).attributes.get("Started")
        except BrokerError:
            return None
        return reader is None or reader(call) is True

    def _operate(self, call: Call, control: Control, name: str) -> object:
        """Executes an operation. Getters of attributes are operations as well, like in Java."""
        given = parameters(call.request)
        operation = find_operation(control.operations, name, given)
        if operation is not None:
            if self.permission.of_method(name) == EDIT:
                return self._change(call, operation, given, name)
            self.permission.check_call(call.session, call.resource, name)
            return operation(call, given)
        if not given:
            getter = (
                name[3:] if name.startswith("get") else name[2:] if name.startswith("is") else ""
            )
            reader = control.attributes.get(getter)
            if reader is not None:
                self.permission.check_call(call.session, call.resource, name)
                return reader(call)
        raise no_operation(name, given)


    def _change(self, call: Call, operation: Operation, given: Parameters, name: str) -> object:
        """Executes an operation that may change something, and records who has called it."""
        noted = list(given)
        try:
            self.permission.check_call(call.session, call.resource, name)
            result = operation(call, given)
        except BrokerError as error:
            self.calls.note(call, noted, error.text)
            raise
        self.calls.note(call, noted, "")
        return result


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
