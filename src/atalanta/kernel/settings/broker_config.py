"""The configuration of the broker itself: its name, addresses, limits and scan periods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.kernel.option import OptionGroup, ignored, option, unbuilt
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.kernel.routing.virtual_topics import CLASSIC
from atalanta.kernel.routing.wildcard import WildcardConfiguration
from atalanta.kernel.security.resource_limits import ResourceLimit
from atalanta.kernel.security.security import (
    DEFAULT_CLUSTER_PASSWORD,
    DEFAULT_CLUSTER_USER,
    SecurityRule,
)
from atalanta.kernel.settings.notification_options import NotificationOptions
from atalanta.kernel.settings.repository import SettingValue
from atalanta.kernel.unseen_options import CACHES

# The work of one step of a large transaction: messages, their routes and their KiB. The compiled build takes less than
# 10 ms for it.
STEP_WORK_MAX: Final = 20_000
CRITICAL_POLICIES: Final = {"LOG": "LOG", "HALT": "HALT", "SHUTDOWN": "SHUTDOWN"}


@dataclass(eq=False, repr=False)
class QueueConfig(OptionGroup):
    """A `<queue>` of an address (or of the old `<queues>` section)."""

    name: str = option("", "name", "unique in the broker", attribute=True)
    address: str = option(
        "", "address", "only in the old <queues> section; else the enclosing address"
    )
    routing_type: int = MULTICAST
    filter_text: str | None = option(None, "filter", "takes only messages that match")
    durable: bool = option(True, "durable", "survives a restart")
    user: str | None = option(None, "user", "recorded as the creator")
    max_consumers: int | None = option(
        None,
        "max-consumers",
        "consumers allowed at once, -1 any (the address setting if absent)",
        unit="count",
        minimum=-1,
        maximum=(1 << 31) - 1,
        attribute=True,
    )
    purge_on_no_consumers: bool | None = option(
        None,
        "purge-on-no-consumers",
        "drop messages when the last consumer leaves",
        attribute=True,
        kind="bool",
    )
    exclusive: bool | None = option(
        None,
        "exclusive",
        "one consumer gets all messages",
        attribute=True,
        kind="bool",
    )
    last_value: bool | None = option(
        None,
        "last-value",
        "keeps the last message of a key",
        attribute=True,
        kind="bool",
    )
    last_value_key: str | None = option(None, "last-value-key", "that key", attribute=True)
    non_destructive: bool | None = option(
        None,
        "non-destructive",
        "consuming removes nothing",
        attribute=True,
        kind="bool",
    )
    consumers_before_dispatch: int | None = option(
        None,
        "consumers-before-dispatch",
        "consumers waited for",
        unit="count",
        minimum=0,
        maximum=(1 << 31) - 1,
        attribute=True,
    )
    delay_before_dispatch_ms: int | None = option(
        None,
        "delay-before-dispatch",
        "longest wait for them",
        unit="ms",
        minimum=-1,
        attribute=True,
    )
    group_rebalance: bool | None = option(
        None,
        "group-rebalance",
        "share groups anew when a consumer comes",
        attribute=True,
        kind="bool",
    )
    group_rebalance_pause_dispatch: bool | None = option(
        None,
        "group-rebalance-pause-dispatch",
        "wait for what is in flight",
        attribute=True,
        kind="bool",
    )
    group_buckets: int | None = option(
        None,
        "group-buckets",
        "buckets of groups",
        unit="count",
        minimum=-1,
        maximum=(1 << 31) - 1,
        attribute=True,
    )
    group_first_key: str | None = option(
        None,
        "group-first-key",
        "property of a group's first message",
        attribute=True,
    )
    ring_size: int | None = option(
        None, "ring-size", "messages kept", unit="count", minimum=-1, attribute=True
    )
    enabled: bool | None = option(
        None, "enabled", "messages are routed to it", attribute=True, kind="bool"
    )

    def spec(self) -> QueueSpec:
        """Returns the definition with which the kernel creates the queue."""
        spec = QueueSpec(self.name, self.address, self.routing_type)
        spec.filter_text = self.filter_text
        spec.durable = self.durable
        spec.user = self.user
        spec.configuration_managed = True
        self.changes().create(spec)
        return spec

    def changes(self) -> QueueChanges:
        """Returns the attributes that the file sets; the address settings decide the rest."""
        changes = QueueChanges()
        changes.max_consumers = self.max_consumers
        changes.purge_on_no_consumers = self.purge_on_no_consumers
        changes.exclusive = self.exclusive
        changes.last_value = self.last_value
        changes.last_value_key = self.last_value_key
        changes.non_destructive = self.non_destructive
        changes.consumers_before_dispatch = self.consumers_before_dispatch
        changes.delay_before_dispatch_ms = self.delay_before_dispatch_ms
        changes.group_rebalance = self.group_rebalance
        changes.group_rebalance_pause_dispatch = self.group_rebalance_pause_dispatch
        changes.group_buckets = self.group_buckets
        changes.group_first_key = self.group_first_key
        changes.ring_size = self.ring_size
        changes.enabled = self.enabled
        return changes


@dataclass(eq=False, repr=False)
class AddressConfig(OptionGroup):
    """An `<address>` with its routing types and queues."""

    name: str
    anycast: bool = False
    multicast: bool = False
    queues: list[QueueConfig] = field(default_factory=list)

    def add(self, queue: QueueConfig) -> None:
        """Adds a queue, and its routing type to the address."""
        if queue.routing_type == ANYCAST:
            self.anycast = True
        else:
            self.multicast = True
        self.queues.append(queue)


@dataclass(eq=False, repr=False)
class AddressSetting(OptionGroup):
    """An `<address-setting>`: attribute names of AddressSettings -> values, without unset ones."""

    match: str
    values: dict[str, SettingValue] = field(default_factory=dict)


@dataclass(eq=False, repr=False)
class StoredSettings(OptionGroup):
    """The settings that management operations made; one replaces that of broker.xml with the same match."""

    address_settings: list[AddressSetting] = field(default_factory=list)
    security_rules: list[SecurityRule] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class BrokerConfig(OptionGroup):
    """The broker's own options; sizes in bytes, times in milliseconds."""

    name: str = option(
        "localhost", "name", "shown to peers and in consoles; distinguishes the nodes of a host"
    )
    persistence_enabled: bool = option(
        True, "persistence-enabled", "false keeps everything in memory"
    )
    security_enabled: bool = option(
        True, "security-enabled", "false: every client is accepted (logs a warning)"
    )
    populate_validated_user: bool = option(
        False, "populate-validated-user", "messages get the name of the user who sent them (JMSXUserID)"
    )
    reject_empty_validated_user: bool = option(
        False, "reject-empty-validated-user", "messages without that name are refused"
    )
    configuration_file_refresh_period_ms: int = option(
        5000,
        "configuration-file-refresh-period",
        "period of the check of the files for changes, -1 never; SIGHUP reads them at once",
        unit="ms",
        minimum=-1,
    )
    security_invalidation_interval_ms: int = option(
        10_000,
        "security-invalidation-interval",
        "how long a verified password is cached, 0 not at "
        "all; changed permissions count at once",
        unit="ms",
        minimum=0,
    )
    authentication_cache_size: int = option(
        1000,
        "authentication-cache-size",
        "verified credentials that are cached at once, 0 none",
        unit="count",
        minimum=0,
    )
    authorization_cache_size: int = ignored(
        1000,
        "authorization-cache-size",
        CACHES,
        unit="count",
    )
    cluster_user: str = option(
        DEFAULT_CLUSTER_USER, "cluster-user", "user with which the nodes of a cluster log in at each other"
    )
    cluster_password: str = option(
        DEFAULT_CLUSTER_PASSWORD,
        "cluster-password",
        "the same on all nodes; the default causes a warning, and without a cluster connection lets in nobody",
    )
    management_address: str = option(
        "activemq.management", "management-address", "the address of management requests"
    )
    management_notification_address: str = option(
        "activemq.notifications", "management-notification-address", "the address of notifications"
    )
    management_message_rbac: bool = option(
        False,
        "management-message-rbac",
        "each management call needs the permission view or edit on an address of its own",
    )
    management_rbac_prefix: str = option(
        "mops", "management-rbac-prefix", "begins the addresses of those permissions"
    )
    view_permission_pattern: str = option(
        "^(get|is|count|list|browse|query).*$",
        "view-permission-method-match-pattern",
        "methods that need view; all others need edit",
        kind="pattern",
    )
    internal_naming_prefix: str = option(
        "$.artemis.internal.",
        "internal-naming-prefix",
        "begins the names of store-and-forward queues",
    )
    suppress_session_notifications: bool = option(
        False, "suppress-session-notifications", "no notification of sessions"
    )
    connection_ttl_override_ms: int = option(
        -1, "connection-ttl-override", "replaces the clients' own time to live, -1 not", unit="ms"
    )
    connection_ttl_check_interval_ms: int = option(
        2000,
        "connection-ttl-check-interval",
        "period of the check for silent clients",
        unit="ms",
        minimum=1,
    )
    transaction_timeout_ms: int = option(
        300_000,
        "transaction-timeout",
        "distributed transactions that are not prepared by then are rolled back",
        unit="ms",
        minimum=1,
    )
    transaction_timeout_scan_period_ms: int = option(
        1000,
        "transaction-timeout-scan-period",
        "period of the scan for them",
        unit="ms",
        minimum=1,
    )
    message_expiry_scan_period_ms: int = option(
        30_000,
        "message-expiry-scan-period",
        "period of the scan for expired messages, -1 never",
        unit="ms",
    )
    address_queue_scan_period_ms: int = option(
        30_000,
        "address-queue-scan-period",
        "how often unused addresses and queues are deleted, -1 never",
        unit="ms",
    )
    id_cache_size: int = option(
        20_000,
        "id-cache-size",
        "duplicate ids remembered for each address",
        unit="count",
        minimum=0,
    )
    persist_id_cache: bool = option(True, "persist-id-cache", "duplicate ids survive a restart")
    # Artemis uses half of the JVM's heap. A Python process has no such limit: 512 MiB fits small
    # machines with Spark, and a full broker slows its senders down instead of failing.
    global_max_size_bytes: int = option(
        512 * 1024 * 1024,
        "global-max-size",
        "memory for messages; above it senders get no credit",
        unit="bytes",
    )
    global_max_size_percent: int = unbuilt(
        50,
        "global-max-size-percent-of-jvm-max-memory",
        "there is no JVM: memory for messages is global-max-size, 512M without it, and senders wait beyond",
        minimum=1,
        maximum=100,
    )
    global_max_messages: int = option(
        -1, "global-max-messages", "messages in memory, -1 any", unit="count"
    )
    max_redelivery_records: int = ignored(
        10,
        "max-redelivery-records",
        "every counted delivery is on disk: after a restart a message has its whole delivery count",
        unit="count",
    )
    message_counter_enabled: bool = option(
        False, "message-counter-enabled", "the messages of each queue are counted by the hour"
    )
    message_counter_sample_period_ms: int = option(
        10_000,
        "message-counter-sample-period",
        "period of that count",
        unit="ms",
        minimum=1,
    )
    message_counter_max_day_history: int = option(
        10, "message-counter-max-day-history", "days those counts are kept", unit="count", minimum=1
    )
    graceful_shutdown_enabled: bool = option(
        False, "graceful-shutdown-enabled", "a stop waits until the clients have left"
    )
    graceful_shutdown_timeout_ms: int = option(
        -1, "graceful-shutdown-timeout", "longest such wait, -1 for ever", unit="ms"
    )
    critical_analyzer: bool = option(
        True, "critical-analyzer", "a thread checks that the event loop and the disk make progress"
    )
    critical_analyzer_timeout_ms: int = option(
        120_000,
        "critical-analyzer-timeout",
        "how long one of them may make no progress; after 5 s this is reported",
        unit="ms",
        minimum=1,
    )
    critical_analyzer_check_period_ms: int = option(
        -1,
        "critical-analyzer-check-period",
        "period of the check; -1, and anything above a second: every second",
        unit="ms",
    )
    critical_analyzer_policy: str = option(
        "LOG",
        "critical-analyzer-policy",
        "what follows then: another report, a stop of the node, or the end of its process at once",
        choices=CRITICAL_POLICIES,
    )
    literal_match_markers: str | None = option(
        None, "literal-match-markers", "two characters around matches meant literally"
    )
    temporary_queue_namespace: str = option(
        "", "temporary-queue-namespace", "the older name of uuid-namespace"
    )
    uuid_namespace: str = option(
        "",
        "uuid-namespace",
        "settings and permissions of temporary destinations are those of this name and theirs; settings also of "
        "other addresses named by a UUID",
    )
    persist_delivery_count_before_delivery: bool = option(
        False,
        "persist-delivery-count-before-delivery",
        "a durable message is handed out when the journal knows of the delivery, so that a crash "
        "meanwhile counts as one; else deliveries are counted when they fail",
    )
    statistics_requests: bool = option(
        False,
        "statistics-requests",
        "messages to `ActiveMQ.Statistics.…` are answered with figures, as by Classic's statisticsBrokerPlugin",
    )
    max_disk_usage: int = option(
        90, "max-disk-usage", "percent of the disk above which senders are blocked"
    )
    min_disk_free_bytes: int = option(-1, "min-disk-free", "the same limit in free bytes", unit="bytes")
    disk_scan_period_ms: int = option(
        5000, "disk-scan-period", "period of the measurement of the disk", unit="ms", minimum=1
    )
    wildcard: WildcardConfiguration = field(default_factory=WildcardConfiguration)
    virtual_topic_forms: str = CLASSIC  # of all acceptors
    virtual_demand: bool = False  # consumers behind virtual destinations are demand for these
    virtual_demand_of_queues: bool = False  # so are queues without consumers
    addresses: list[AddressConfig] = field(default_factory=list)
    diverts: list[DivertConfig] = field(default_factory=list)
    notifications: NotificationOptions = field(default_factory=NotificationOptions)
    address_settings: list[AddressSetting] = field(default_factory=list)
    security_rules: list[SecurityRule] = field(default_factory=list)
    stored: StoredSettings = field(default_factory=StoredSettings)
    resource_limits: list[ResourceLimit] = field(default_factory=list)
    step_work_max: int = STEP_WORK_MAX
