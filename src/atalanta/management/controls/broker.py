"""Attributes and operations of the broker: resource `broker` (ActiveMQServerControl)."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.journal import records
from atalanta.management.controls.acceptor import all_as_json, connectors_as_json
from atalanta.management.controls.balance import BALANCE_OPERATIONS, client_balance
from atalanta.management.controls.bridge import BRIDGES_OPERATIONS
from atalanta.management.controls.cluster_connection import address_settings_as_json
from atalanta.management.controls.divert import MAKING_OPERATIONS
from atalanta.management.controls.lists import LIST_OPERATIONS, shown_addresses
from atalanta.management.controls.queue import flush_executor, refuse
from atalanta.management.operations.connections import CLIENT_OPERATIONS
from atalanta.management.operations.counters import COUNTER_ATTRIBUTES, COUNTER_OPERATIONS
from atalanta.management.operations.create import CREATE_OPERATIONS, address_text, find_address
from atalanta.management.operations.prepared_transactions import TRANSACTION_OPERATIONS
from atalanta.management.operations.queue_definition import definition_of, routing_name
from atalanta.management.operations.roles import roles_as_json, roles_of
from atalanta.management.request.call import (
    Attribute,
    Call,
    Operations,
    Parameters,
    merged,
    optional_text,
    text_of,
)
from atalanta.management.request.json_text import encode_json
from atalanta.management.request.times import duration_text

DUPLICATE_BYTES_MAX: Final = 10_000


def uptime_ms(call: Call) -> int:
    return max(0, call.now - call.management.started_at) // 1_000_000


def memory_percentage(call: Call) -> object:
    memory = call.broker.memory
    return 0 if memory.limit_bytes <= 0 else 100 * memory.used_bytes // memory.limit_bytes


def disk_usage(call: Call) -> object:
    usage = call.management.disk_used
    if usage < 0:
        raise BrokerError(ILLEGAL_STATE, "the disk of this broker is not measured")
    return usage


def status(call: Call) -> object:
    broker = call.broker
    return encode_json(
        {
            "server": {
                "version": call.management.version,
                "nodeId": broker.node_id,
                "identity": broker.config.name,
                "uptime": duration_text(uptime_ms(call)),
                "state": "STOPPING" if broker.stopping else "STARTED",
            }
        }
    )


def total_consumers(call: Call) -> object:
    return sum(queue.consumer_count() for queue in call.broker.queues.values())


BROKER_ATTRIBUTES: Final[dict[str, Attribute]] = {
    "NodeID": lambda call: call.broker.node_id,
    "Name": lambda call: call.broker.config.name,
    "Version": lambda call: call.management.version,
    "Status": status,
    "Started": lambda call: not call.broker.stopping,
    "Active": lambda call: not call.broker.stopping,
    "Backup": lambda call: False,
    "SharedStore": lambda call: False,
    "ReplicaSync": lambda call: False,
    "HAPolicy": lambda call: "Primary Only",
    "ClusterConnectionNames": lambda call: list(call.management.cluster_connections),
    "PersistDeliveryCountBeforeDelivery": lambda call: (
        call.broker.config.persist_delivery_count_before_delivery
    ),
    "Clustered": lambda call: bool(call.management.topology()),
    "ClientBalance": client_balance,
    "Uptime": lambda call: duration_text(uptime_ms(call)),
    "UptimeMillis": uptime_ms,
    "CurrentTimeMillis": lambda call: call.now // 1_000_000,
    "QueueNames": lambda call: list(call.broker.queues),
    "QueueCount": lambda call: len(call.broker.queues),
    "AddressNames": lambda call: [address.name for address in shown_addresses(call)],
    "AddressCount": lambda call: len(shown_addresses(call)),
    "ConnectionCount": lambda call: len(call.broker.clients.connected),
    "TotalConnectionCount": lambda call: call.broker.clients.connections_total,
    "SessionCount": lambda call: call.broker.clients.session_count(),
    "TotalSessionCount": lambda call: call.broker.clients.sessions_total,
    "TotalMessageCount": lambda call: sum(q.message_count for q in call.broker.queues.values()),
    "TotalMessagesAdded": lambda call: sum(q.added for q in call.broker.queues.values()),
    "TotalMessagesAcknowledged": lambda call: sum(
        q.acknowledged for q in call.broker.queues.values()
    ),
    "TotalConsumerCount": total_consumers,
    "AddressMemoryUsage": lambda call: call.broker.memory.used_bytes,
    "AddressMemoryUsagePercentage": memory_percentage,
    "GlobalMaxSize": lambda call: call.broker.memory.limit_bytes,
    "DiskStoreUsage": disk_usage,
    "MaxDiskUsage": lambda call: call.broker.config.max_disk_usage,
    "DiskScanPeriod": lambda call: call.broker.config.disk_scan_period_ms,
    "PersistenceEnabled": lambda call: call.broker.config.persistence_enabled,
    "SecurityEnabled": lambda call: call.broker.config.security_enabled,
    "SecurityInvalidationInterval": lambda call: (
        call.broker.config.security_invalidation_interval_ms
    ),
    "ConnectionTTLOverride": lambda call: call.broker.config.connection_ttl_override_ms,
    "IDCacheSize": lambda call: call.broker.config.id_cache_size,
    "PersistIDCache": lambda call: call.broker.config.persist_id_cache,
    "ManagementAddress": lambda call: call.broker.config.management_address,
    "ManagementNotificationAddress": lambda call: (
        call.broker.config.management_notification_address
    ),
    "MessageExpiryScanPeriod": lambda call: call.broker.config.message_expiry_scan_period_ms,
    "TransactionTimeout": lambda call: call.broker.config.transaction_timeout_ms,
    "TransactionTimeoutScanPeriod": lambda call: (
        call.broker.config.transaction_timeout_scan_period_ms
    ),
    "WildcardRoutingEnabled": lambda call: call.broker.config.wildcard.routing_enabled,
    "AuthenticationSuccessCount": lambda call: call.broker.clients.logins_total,
    "AuthenticationFailureCount": lambda call: call.broker.clients.logins_refused,
    "AuthorizationSuccessCount": lambda call: call.broker.clients.permissions_granted,
    "AuthorizationFailureCount": lambda call: call.broker.clients.permissions_refused,
    **COUNTER_ATTRIBUTES,
    "DivertNames": lambda call: list(call.broker.diverts.by_name),
    "BridgeNames": lambda call: call.management.bridges.names(),
    "ConnectorServices": lambda call: [],
    "AcceptorsAsJSON": all_as_json,
    "ConnectorsAsJSON": connectors_as_json,
    "FailoverOnServerShutdown": lambda call: False,
    "IncomingInterceptorClassNames": lambda call: [],
    "OutgoingInterceptorClassNames": lambda call: [],
    "BrokerPluginClassNames": lambda call: [],
    "EmbeddedWebServerStarted": lambda call: call.management.web_started,
}


def queue_names(call: Call, given: Parameters) -> object:
    """Returns the queue names of one routing type; null or an empty text means all."""
    wanted = (optional_text(given, 0) or "").upper()
    return [
        queue.name
        for queue in call.broker.queues.values()
        if not wanted or routing_name(queue.spec.routing_type) == wanted
    ]


def address_info(call: Call, given: Parameters) -> object:
    return address_text(find_address(call, text_of(given, 0)))


def bindings_for_address(call: Call, given: Parameters) -> object:
    """Returns the local and remote bindings as text, empty for an unknown address."""
    address = call.broker.addresses.get(text_of(given, 0))
    if address is None:
        return ""
    found = [
        f"LocalQueueBinding [address={address.name}, queue="
        f"QueueImpl[name={queue.name}, temp={'true' if queue.spec.temporary else 'false'}]]"
        for queue in address.queues()
    ]
    found += [
        f"RemoteQueueBindingImpl [address={address.name}, storeAndForwardQueue="
        f"{remote.forward.name}, remoteQueueID={remote.remote_id}]"
        for remote in address.remotes()
    ]
    return ",".join(found)


def queue_configuration(call: Call, given: Parameters) -> object:
    return encode_json(definition_of(call.broker.queue_registry.find(text_of(given, 0))))


def send_queue_info(call: Call, given: Parameters) -> object:
    target = call.broker.queue_registry.find(text_of(given, 0))
    call.management.notifications.send_queue_info(call.now, target, text_of(given, 1))
    return None


def update_duplicates(call: Call, given: Parameters) -> object:
    """Adds duplicate ids that a node handed over as texts during scale-down. Non-UTF-8 ids use lone surrogates."""
    broker = call.broker
    address = text_of(given, 0)
    ids = given[1]
    if not isinstance(ids, list):
        raise BrokerError(
            ILLEGAL_STATE, "updateDuplicateIdCache takes an address and a list of ids"
        )
    cache = broker.caches.cache_of(address)
    for item in ids:
        raw = bytes_of_id(str(item))
        if cache.lsn_of(raw) < 0 and len(raw) <= DUPLICATE_BYTES_MAX:
            payload = records.encode_duplicates(address, broker.store.take_message_id(), [raw])
            cache.add(raw, broker.journal.append(records.DUPLICATES, payload))
    return None


def bytes_of_id(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def roles(call: Call, given: Parameters) -> object:
    return roles_of(call, text_of(given, 0))


def roles_json(call: Call, given: Parameters) -> object:
    return roles_as_json(call, text_of(given, 0))


def scale_down(call: Call, given: Parameters) -> object:
    """Starts the scale-down of the node. The answer comes at once; Artemis ends before it answers.

    The caller's connection stays open until the end, for `scaleDownProgress`.
    """
    session = call.session
    asker = -1 if session is None else session.client.connection
    call.management.departure.ask(call.now, optional_text(given, 0), asker)
    return None


def scale_down_progress(call: Call, given: Parameters) -> object:
    """Returns the progress as JSON, see docs/guide/scale-down.md."""
    return encode_json(call.management.departure.progress())


def divert_names(call: Call, given: Parameters) -> object:
    return list(call.broker.diverts.by_name)


def none_as_json(call: Call, given: Parameters) -> object:
    """Returns an empty list for a feature that this broker does not have."""
    return "[]"


def reload_configuration(call: Call, given: Parameters) -> object:
    """Reloads the configuration files like SIGHUP, outside the event loop. Invalid settings are logged."""
    call.management.reload("management")
    return None


USERS: Final = "users are in artemis-users.properties: use `atalanta user`, or edit the file"
FAILOVER: Final = "this broker has no backup to fail over to"
SETTINGS: Final = "settings are in broker.xml: edit the file"
WEB: Final = "the web server is enabled by `atalanta run --web` and runs as long as the broker"

OWN_OPERATIONS: Final[Operations] = {
    "getAddressSettingsAsJSON": [("s", address_settings_as_json)],
    "getQueueNames": [("S", queue_names)],
    "getAddressInfo": [("s", address_info)],
    "listBindingsForAddress": [("s", bindings_for_address)],
    "getQueueConfigurationAsJSON": [("s", queue_configuration)],
    "getRoles": [("s", roles)],
    "getRolesAsJSON": [("s", roles_json)],
    "sendQueueInfoToQueue": [("ss", send_queue_info)],
    "updateDuplicateIdCache": [("sa", update_duplicates)],
    "rebuildPageCounters": [("", flush_executor)],
    "clearAuthenticationCache": [("", flush_executor)],
    "clearAuthorizationCache": [("", flush_executor)],
    "forceFailover": [("", refuse(FAILOVER))],
    "scaleDown": [("S", scale_down)],
    "scaleDownProgress": [("", scale_down_progress)],
    "freezeReplication": [("", refuse(FAILOVER))],
    "addUser": [("SSSb", refuse(USERS))],
    "listUser": [("S", refuse(USERS))],
    "removeUser": [("S", refuse(USERS))],
    "resetUser": [("SSS", refuse(USERS)), ("SSSb", refuse(USERS))],
    "removeAddressSettings": [("S", refuse(SETTINGS))],
    "addAddressSettings": [("SS", refuse(SETTINGS))],
    "removeSecuritySettings": [("S", refuse(SETTINGS))],
    "addSecuritySettings": [("S" * count, refuse(SETTINGS)) for count in (2, 8, 9, 11, 13)],
    "reloadConfigurationFile": [("", reload_configuration)],
    "listDivertNames": [("", divert_names)],
    "listBrokerConnections": [("", none_as_json)],
    "listLockCoordinatorsAsJSON": [("", none_as_json)],
    "stopEmbeddedWebServer": [("", refuse(WEB))],
    "startEmbeddedWebServer": [("", refuse(WEB))],
    "restartEmbeddedWebServer": [("", refuse(WEB)), ("l", refuse(WEB))],
}
BROKER_OPERATIONS: Final[Operations] = merged(
    OWN_OPERATIONS,
    LIST_OPERATIONS,
    CREATE_OPERATIONS,
    CLIENT_OPERATIONS,
    TRANSACTION_OPERATIONS,
    MAKING_OPERATIONS,
    BRIDGES_OPERATIONS,
    BALANCE_OPERATIONS,
    COUNTER_OPERATIONS,
)
