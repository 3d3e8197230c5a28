"""Attributes and operations of the broker: resource `broker` (ActiveMQServerControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.journal import records
from atalanta.management.controls.address import bound
from atalanta.management.controls.control import Control, no_work, refuse
from atalanta.management.operations.destinations import address_text, binding_text
from atalanta.management.operations.queue_definition import definition_of, routing_name
from atalanta.management.request.call import (
    LATER,
    Attributes,
    Call,
    Operations,
    Parameters,
    merged,
    optional_text,
    text_of,
)
from atalanta.management.request.json_text import encode_json
from atalanta.management.request.times import uptime_text
from atalanta.message.message import short_duplicate_id

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.broker.notifications import Notifications
    from atalanta.kernel.ports import Process
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.management.controls.lists import ListOperations
    from atalanta.management.operations.destinations import DestinationOperations
    from atalanta.management.operations.roles import Roles
    from atalanta.management.request.replies import Replies
    from atalanta.management.resources.registry import ResourceRegistry
    from atalanta.management.status import HaStatus, NodeStatus

CONNECTOR_FACTORY: Final = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyConnectorFactory"
NO_REPLICA: Final = "this broker has no replica"
REPLAY: Final = "this broker keeps no retention journal (journal-retention-directory): nothing to replay"
NO_CLUSTER: Final = "this broker has no cluster-connection: no other node can take its messages"
NO_REDIRECT: Final = "this node has no cluster-connection: it cannot redirect clients"
WEB: Final = "the web server is enabled by `atalanta run --web` and runs as long as the broker"


class BrokerControl(Control):
    """The control of the broker. `more_attributes` and `more_operations` are those of management/operations.

    Those of `resources` come last: they replace the answers of a node without a cluster.
    """

    def __init__(
        self,
        broker: Broker,
        notifications: Notifications,
        status: NodeStatus,
        resources: ResourceRegistry,
        process: Process,
        replies: Replies,
        lists: ListOperations,
        destinations: DestinationOperations,
        roles: Roles,
        more_attributes: Attributes,
        more_operations: list[Operations],
    ) -> None:
        self.broker = broker
        self.notifications = notifications
        self.status = status
        self.resources = resources
        self.process = process
        self.replies = replies
        self.lists = lists
        self.destinations = destinations
        self.roles = roles
        super().__init__(
            self._attributes(more_attributes) | resources.attributes,
            merged(self._operations(), *more_operations) | resources.operations,
        )

    def _attributes(self, more_attributes: Attributes) -> Attributes:
        return {
            "NodeID": lambda call: self.broker.node_id,
            "Name": lambda call: self.broker.config.name,
            "Version": lambda call: self.status.version,
            "Status": self.server_status,
            "Started": lambda call: not self.broker.stopping,
            "Active": lambda call: not self.broker.stopping,
            "Backup": lambda call: False,
            "SharedStore": lambda call: self.status.ha.shared_store,
            "ReplicaSync": lambda call: self.status.ha.replica_sync,
            "HAPolicy": lambda call: self.status.ha.policy,
            "ActivationSequence": lambda call: self.status.ha.epoch,
            "ReplicationAsJSON": self.replication_as_json,
            "WaitingBackups": self.waiting_backups,
            "ClusterConnectionNames": lambda call: [],
            "DefaultClusterPassword": lambda call: self.broker.security.has_default_password,
            "Clustered": lambda call: False,
            "ClientBalance": lambda call: refuse(NO_REDIRECT)(call, []),
            "Uptime": lambda call: uptime_text(self.status.uptime_ms(call.now)),
            "UptimeMillis": lambda call: self.status.uptime_ms(call.now),
            "CurrentTimeMillis": lambda call: call.now // 1_000_000,
            "QueueNames": lambda call: list(self.broker.queues),
            "QueueCount": lambda call: len(self.broker.queues),
            "AddressNames": lambda call: [address.name for address in self.lists.shown_addresses()],
            "AddressCount": lambda call: len(self.lists.shown_addresses()),
            "ConnectionCount": lambda call: len(self.broker.clients.connected),
            "TotalConnectionCount": lambda call: self.broker.clients.connections_total,
            "SessionCount": lambda call: self.broker.clients.session_count(),
            "TotalSessionCount": lambda call: self.broker.clients.sessions_total,
            "TotalMessageCount": lambda call: sum(q.message_count for q in self.broker.queues.values()),
            "TotalMessagesAdded": lambda call: sum(q.added for q in self.broker.queues.values()),
            "TotalMessagesAcknowledged": lambda call: sum(
                q.acknowledged for q in self.broker.queues.values()
            ),
            "TotalConsumerCount": self.total_consumers,
            "AddressMemoryUsage": lambda call: self.broker.memory.used_bytes,
            "AddressMemoryUsagePercentage": self.memory_percentage,
            "GlobalMaxSize": lambda call: self.broker.memory.limit_bytes,
            "DiskStoreUsage": self.disk_usage,
            "AuthenticationSuccessCount": lambda call: self.broker.clients.logins_total,
            "AuthenticationFailureCount": lambda call: self.broker.clients.logins_refused,
            "AuthorizationSuccessCount": lambda call: self.broker.permissions.granted,
            "AuthorizationFailureCount": lambda call: self.broker.permissions.refused,
            **configured(self.broker.config),
            **more_attributes,
            "DivertNames": lambda call: list(self.broker.diverts.by_name),
            "BridgeNames": lambda call: [],
            "NetworkConnectorNames": lambda call: [],
            "ConnectorServices": lambda call: [],
            "AcceptorsAsJSON": self.acceptors_as_json,
            "ConnectorsAsJSON": self.connectors_as_json,
            "FailoverOnServerShutdown": lambda call: self.status.ha.failover_on_shutdown,
            "IncomingInterceptorClassNames": lambda call: [],
            "OutgoingInterceptorClassNames": lambda call: [],
            "BrokerPluginClassNames": lambda call: [],
            "EmbeddedWebServerStarted": lambda call: self.status.web_started,
        }

    def _operations(self) -> Operations:
        return {
            "getQueueNames": [("S", self.queue_names)],
            "getAddressInfo": [("s", self.address_info)],
            "listBindingsForAddress": [("s", self.bindings_for_address)],
            "getQueueConfigurationAsJSON": [("s", self.queue_configuration)],
            "getRoles": [("s", self.roles_of)],
            "getRolesAsJSON": [("s", self.roles_as_json)],
            "sendQueueInfoToQueue": [("ss", self.send_queue_info)],
            "updateDuplicateIdCache": [("sa", self.update_duplicates)],
            "rebuildPageCounters": [("", no_work)],
            "clearAuthenticationCache": [("", self.clear_authentication_cache)],
            "clearAuthorizationCache": [("", no_work)],
            "forceFailover": [("", self.force_failover)],
            "scaleDown": [("S", refuse(NO_CLUSTER))],
            "scaleDownProgress": [("", lambda call, given: encode_json({"phase": "none"}))],
            "listNetworkTopology": [("", empty_list)],
            "freezeReplication": [("", refuse(NO_REPLICA))],
            "reloadConfigurationFile": [("", self.reload_configuration)],
            "listBrokerConnections": [("", empty_list)],
            "listLockCoordinatorsAsJSON": [("", empty_list)],
            "stopEmbeddedWebServer": [("", refuse(WEB))],
            "startEmbeddedWebServer": [("", refuse(WEB))],
            "restartEmbeddedWebServer": [("", refuse(WEB)), ("l", refuse(WEB))],
            "replay": [("ssS", refuse(REPLAY)), ("ssssS", refuse(REPLAY))],
            "rebalance": [("b", refuse(NO_REDIRECT))],
        }

    def clear_authentication_cache(self, call: Call, given: Parameters) -> object:
        """Has every login from now on checked again, by the directories too."""
        self.broker.security.clear_login_cache()
        return None

    def force_failover(self, call: Call, given: Parameters) -> object:
        """Gives the shared store to another process of the pair, soon after the answer."""
        self.process.fail_over()
        return None

    def select(self, call: Call) -> bool:
        """Selects the broker, whose resource has no name."""
        return not call.name and call.resource == "broker"

    def memory_percentage(self, call: Call) -> object:
        memory = self.broker.memory
        return 0 if memory.limit_bytes <= 0 else 100 * memory.used_bytes // memory.limit_bytes

    def disk_usage(self, call: Call) -> object:
        usage = self.status.disk_used
        if usage < 0:
            raise BrokerError(ILLEGAL_STATE, "the disk of this broker is not measured")
        return usage

    def server_status(self, call: Call) -> object:
        broker = self.broker
        return encode_json(
            {
                "server": {
                    "version": self.status.version,
                    "nodeId": broker.node_id,
                    "identity": broker.config.name,
                    "uptime": uptime_text(self.status.uptime_ms(call.now)),
                    "state": "STOPPING" if broker.stopping else "STARTED",
                }
            }
        )

    def total_consumers(self, call: Call) -> object:
        return sum(queue.consumer_count() for queue in self.broker.queues.values())

    def queue_names(self, call: Call, given: Parameters) -> object:
        """Returns the queue names of one routing type; null or an empty text means all."""
        wanted = (optional_text(given, 0) or "").upper()
        return [
            queue.name
            for queue in self.broker.queues.values()
            if not wanted or routing_name(queue.spec.routing_type) == wanted
        ]

    def address_info(self, call: Call, given: Parameters) -> object:
        return address_text(self.destinations.find_address(text_of(given, 0)))

    def bindings_for_address(self, call: Call, given: Parameters) -> object:
        """Returns the bindings of queues here and at members and of diverts as text, empty for an unknown address."""
        address = self.broker.addresses.get(text_of(given, 0))
        if address is None:
            return ""
        found = [binding_text(queue) for one in bound(address) for queue in one.queues()]
        found += [
            f"RemoteQueueBindingImpl [address={one.name}, storeAndForwardQueue="
            f"{remote.forward.name}, remoteQueueID={remote.remote_id}]"
            for one in bound(address)
            for remote in one.remotes()
        ]
        found += [f"DivertBinding [id={one.name}]" for one in self.broker.diverts.of(address.name)]
        return ",".join(found)

    def queue_configuration(self, call: Call, given: Parameters) -> object:
        return encode_json(definition_of(self.broker.queue_registry.find(text_of(given, 0))))

    def send_queue_info(self, call: Call, given: Parameters) -> object:
        target = self.broker.queue_registry.find(text_of(given, 0))
        self.notifications.send_queue_info(call.now, target, text_of(given, 1))
        return None

    def update_duplicates(self, call: Call, given: Parameters) -> object:
        """Adds duplicate ids that a node handed over as texts during scale-down. Non-UTF-8 ids use lone surrogates."""
        broker = self.broker
        address = text_of(given, 0)
        ids = given[1]
        if not isinstance(ids, list):
            raise BrokerError(
                ILLEGAL_STATE, "updateDuplicateIdCache takes an address and a list of ids"
            )
        handed_over = [short_duplicate_id(bytes_of_id(str(item))) for item in ids]
        call.command.begin_change()
        cache = broker.caches.cache_of(address)
        for raw in handed_over:
            if cache.lsn_of(raw) < 0:
                payload = records.encode_duplicates(address, broker.store.take_message_id(), [raw])
                cache.add(raw, broker.journal.append(records.DUPLICATES, payload))
        return None

    def roles_of(self, call: Call, given: Parameters) -> object:
        return self.roles.as_arrays(text_of(given, 0))

    def roles_as_json(self, call: Call, given: Parameters) -> object:
        return self.roles.as_json(text_of(given, 0))

    def reload_configuration(self, call: Call, given: Parameters) -> object:
        """Reloads the configuration files like SIGHUP, outside the event loop; replies when they are applied."""

        def done(now: int, problem: str) -> None:
            if problem:
                self.replies.refuse(now, call, problem)
            else:
                self.replies.send(now, call, None, True, False)

        self.process.reload("management", done)
        return LATER

    def acceptors_as_json(self, call: Call) -> object:
        return encode_json([one.described() for one in self.resources.acceptors.values()])

    def replication_as_json(self, call: Call) -> object:
        """Returns the members that follow this node; "" for a node without a replicated group."""
        ha = self.status.ha
        return encode_json(_replication(ha)) if ha.policy.startswith("Replication") else ""

    def waiting_backups(self, call: Call) -> object:
        """Returns host:port of each process that waits for the shared store; null if that is not known."""
        waiting = self.status.ha.waiting
        return None if waiting is None else list(waiting)

    def connectors_as_json(self, call: Call) -> object:
        """Returns the connectors with the parameters that the node announces; key store parameters are left out."""
        found: list[dict[str, object]] = []
        for name, parameters in self.resources.connectors.items():
            found.append({"name": name, "factoryClassName": CONNECTOR_FACTORY, "params": parameters})
        return encode_json(found)


def _replication(ha: HaStatus) -> dict[str, object]:
    """Returns the state of a replicated group as its active member knows it."""
    replicas: list[dict[str, object]] = [
        {
            "member": each.member,
            "inSync": each.in_sync,
            "asynchronous": each.asynchronous,
            "behind": each.behind,
            "behindMillis": int(each.behind_s * 1_000),
            "connected": each.member in ha.connected,
            "address": each.place,
        }
        for each in ha.replicas
    ]
    return {
        "epoch": ha.epoch,
        "minInSync": ha.min_in_sync,
        "registerProblem": ha.register_problem,
        "onlyVoter": ha.only_voter,
        "silentVoters": dict(ha.silent_voters),
        "replicas": replicas,
    }


def configured(config: BrokerConfig) -> Attributes:
    """Returns the attributes with the values of broker.xml."""
    return {
        "PersistDeliveryCountBeforeDelivery": lambda call: config.persist_delivery_count_before_delivery,
        "MaxDiskUsage": lambda call: config.max_disk_usage,
        "DiskScanPeriod": lambda call: config.disk_scan_period_ms,
        "PersistenceEnabled": lambda call: config.persistence_enabled,
        "SecurityEnabled": lambda call: config.security_enabled,
        "SecurityInvalidationInterval": lambda call: config.security_invalidation_interval_ms,
        "ConnectionTTLOverride": lambda call: config.connection_ttl_override_ms,
        "IDCacheSize": lambda call: config.id_cache_size,
        "PersistIDCache": lambda call: config.persist_id_cache,
        "ManagementAddress": lambda call: config.management_address,
        "ManagementNotificationAddress": lambda call: config.management_notification_address,
        "MessageExpiryScanPeriod": lambda call: config.message_expiry_scan_period_ms,
        "TransactionTimeout": lambda call: config.transaction_timeout_ms,
        "TransactionTimeoutScanPeriod": lambda call: config.transaction_timeout_scan_period_ms,
        "WildcardRoutingEnabled": lambda call: config.wildcard.routing_enabled,
    }


def bytes_of_id(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def empty_list(call: Call, given: Parameters) -> object:
    """Returns an empty list for a feature that this broker does not have."""
    return "[]"
