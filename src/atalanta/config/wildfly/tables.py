"""Names of the messaging-activemq subsystem and their names in broker.xml (WildFly's schema 17.0)."""

from __future__ import annotations

from typing import Final

from atalanta.kernel import IN_PROCESS, STORE_LAYOUT

SUBSYSTEM: Final = "urn:jboss:domain:messaging-activemq:"
JGROUPS: Final = "urn:jboss:domain:jgroups:"
UNDERTOW: Final = "urn:jboss:domain:undertow:"
JGROUPS_GROUP: Final = ("jgroups-cluster", "jgroups-channel", "jgroups-stack")

# Attributes of <server> and the name of the element of <core>.
SERVER: Final = (
    "persistence-enabled",
    "persist-id-cache",
    "persist-delivery-count-before-delivery",
    "id-cache-size",
    "page-max-concurrent-io",
    "scheduled-thread-pool-max-size",
    "thread-pool-max-size",
    "wild-card-routing-enabled",
    "connection-ttl-override",
    "async-connection-execution-enabled",
    "address-queue-scan-period",
)

# Child of <server> -> its attribute -> element of <core>.
GROUPS: Final[dict[str, dict[str, str]]] = {
    "security": {
        "enabled": "security-enabled",
        "invalidation-interval": "security-invalidation-interval",
    },
    "cluster": {"user": "cluster-user", "password": "cluster-password"},
    "management": {
        "address": "management-address",
        "notification-address": "management-notification-address",
        "jmx-enabled": "jmx-management-enabled",
        "jmx-domain": "jmx-domain",
    },
    "journal": {
        "type": "journal-type",
        "buffer-timeout": "journal-buffer-timeout",
        "buffer-size": "journal-buffer-size",
        "sync-transactional": "journal-sync-transactional",
        "sync-non-transactional": "journal-sync-non-transactional",
        "log-write-rate": "log-journal-write-rate",
        "file-size": "journal-file-size",
        "min-files": "journal-min-files",
        "pool-files": "journal-pool-files",
        "file-open-timeout": "journal-file-open-timeout",
        "compact-percentage": "journal-compact-percentage",
        "compact-min-files": "journal-compact-min-files",
        "max-io": "journal-max-io",
        "create-bindings-dir": "create-bindings-dir",
        "create-journal-dir": "create-journal-dir",
        "global-max-memory-size": "global-max-size",
        "global-max-disk-usage": "max-disk-usage",
        "disk-scan-period": "disk-scan-period",
        "max-attic-files": "journal-max-attic-files",
    },
    "statistics": {
        "enabled": "message-counter-enabled",
        "message-counter-sample-period": "message-counter-sample-period",
        "message-counter-max-day-history": "message-counter-max-day-history",
    },
    "transaction": {"timeout": "transaction-timeout", "scan-period": "transaction-timeout-scan-period"},
    "message-expiry": {
        "scan-period": "message-expiry-scan-period",
        "thread-priority": "message-expiry-thread-priority",
    },
    "debug": {
        "perf-blast-pages": "perf-blast-pages",
        "run-sync-speed-test": "run-sync-speed-test",
        "server-dump-interval": "server-dump-interval",
        "memory-measure-interval": "memory-measure-interval",
        "memory-warning-threshold": "memory-warning-threshold",
    },
    "network-isolation": {
        "network-check-nic": "network-check-NIC",
        "network-check-period": "network-check-period",
        "network-check-timeout": "network-check-timeout",
        "network-check-list": "network-check-list",
        "network-check-url-list": "network-check-URL-list",
        "network-check-ping-command": "network-check-ping-command",
        "network-check-ping6-command": "network-check-ping6-command",
    },
    "critical-analyzer": {
        "enabled": "critical-analyzer",
        "check-period": "critical-analyzer-check-period",
        "timeout": "critical-analyzer-timeout",
        "policy": "critical-analyzer-policy",
    },
}

# Attributes of GROUPS without effect in this broker that no client sees, with the reason: "group attribute" -> why.
GROUPS_WITHOUT_EFFECT: Final[dict[str, str]] = {
    "security override-in-vm-security": IN_PROCESS,
    **{
        f"journal {name}": STORE_LAYOUT  # parts of the database that `datasource` names
        for name in (
            "database", "messages-table", "bindings-table", "jms-bindings-table",
            "large-messages-table", "node-manager-store-table", "page-store-table",
            "jdbc-lock-expiration", "jdbc-lock-renew-period", "jdbc-network-timeout",
        )
    },
}  # fmt: skip
_OTHER_USERS: Final = (
    "users and roles of that domain are not read, and cannot log in: they come from artemis-users.properties and"
    " artemis-roles.properties beside the file"
)
GROUPS_LOST: Final[dict[str, str]] = {
    "security domain": _OTHER_USERS,
    "security elytron-domain": _OTHER_USERS,
    "journal datasource": "messages are kept in the journal's files, not in that database: what is in it is not read",
}

DATA_FOLDER: Final = "jboss.server.data.dir"
DIRECTORIES: Final = (
    "bindings-directory",
    "journal-directory",
    "large-messages-directory",
    "paging-directory",
)

# Attribute of a permission -> types of broker.xml. The first is its own type; WildFly adds the others
# (SecurityRoleDefinition.transform).
PERMISSIONS: Final = {
    "send": ("send",),
    "consume": ("consume", "browse"),
    "create-durable-queue": ("createDurableQueue", "createAddress"),
    "delete-durable-queue": ("deleteDurableQueue", "deleteAddress"),
    "create-non-durable-queue": ("createNonDurableQueue", "createAddress"),
    "delete-non-durable-queue": ("deleteNonDurableQueue", "deleteAddress"),
    "manage": ("manage",),
}

# Attribute -> element, if the names differ; all other attributes become elements of the same name.
ADDRESS_SETTING: Final = {"redelivery-multiplier": "redelivery-delay-multiplier"}
CLUSTER_CONNECTION: Final = {
    "connector-name": "connector-ref",
    "message-load-balancing-type": "message-load-balancing",
}
BRIDGE: Final = {"reconnect-attempts-on-same-node": "reconnect-attempts-same-node"}

# Elements whose default in WildFly differs from Artemis' (AddressSettingAdd, ClusterConnectionDefinition,
# BridgeDefinition, ServerDefinition).
DEFAULTS: Final[dict[str, dict[str, str]]] = {
    "address-setting": {"auto-create-queues": "false", "auto-delete-queues": "false"},
    "cluster-connection": {"producer-window-size": "-1"},
    "bridge": {"producer-window-size": "-1"},
}
# <shared-store-primary> and the like: the element's form and role, and the role in broker.xml. master and slave are
# the names of older versions.
HA_ALONE: Final = ("live-only", "primary-only")
HA_FORMS: Final = ("shared-store", "replication")
HA_ROLES: Final = {
    "primary": "primary",
    "master": "primary",
    "secondary": "backup",
    "slave": "backup",
    "colocated": "colocated",
}
HA: Final = {
    "failover-on-server-shutdown": "failover-on-shutdown",
    "max-saved-replicated-journal-size": "max-saved-replicated-journals-size",
}
# HAAttributes: a backup by replication gives back, unlike Artemis'.
HA_DEFAULTS: Final[dict[tuple[str, str], dict[str, str]]] = {
    ("replication", "backup"): {"allow-failback": "true"},
}
CORE_DEFAULTS: Final = {"max-disk-usage": "100"}

# Attributes of links that WildFly lets be -1, without end (InfiniteOrPositiveValidators), and Artemis' broker.xml not.
ENDLESS: Final = ("check-period", "connection-ttl", "confirmation-window-size")
ENDLESS_VALUE: Final = str(2**31 - 1)

# Parts of the subsystem for applications within WildFly.
WITHOUT_EFFECT: Final[dict[str, str]] = {
    "connection-factory": IN_PROCESS,
    "pooled-connection-factory": IN_PROCESS,
    "legacy-connection-factory": IN_PROCESS,
    "external-jms-queue": IN_PROCESS,
    "external-jms-topic": IN_PROCESS,
    "global-client": IN_PROCESS,
}
# Services that the file asks for, and that this node does not give.
LOST: Final[dict[str, str]] = {
    "connector-service": "no message comes or goes by it: Java classes cannot be loaded",
    "incoming-interceptors": "what clients send is neither changed nor refused by them: Java classes cannot be loaded",
    "outgoing-interceptors": "what clients get is neither changed nor withheld by them: Java classes cannot be loaded",
    "jms-bridge": "no message goes over it: JMS bridges are run by WildFly, not by the broker; write a core bridge",
}
# Names that clients outside of WildFly look up there begin so.
EXPORTED: Final = "java:jboss/exported/"
EXPORTED_WHY: Final = "no client can look it up by JNDI here: give it the URL of the broker and the name of the queue"
# The prefix of the core names of WildFly's <jms-queue> and <jms-topic>.
JMS_QUEUE: Final = "jms.queue."
JMS_TOPIC: Final = "jms.topic."

# Parameters that keep their hyphens; for all others WildFly's `batch-delay` is Artemis' `batchDelay`.
HYPHENATED: Final = ("handshake-timeout", "connect-timeout-millis")
