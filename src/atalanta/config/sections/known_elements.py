"""Names in Artemis' `<core>` that this version knows but does not support (XSD of 2.56)."""

from __future__ import annotations

from typing import Final

_NO_JVM: Final = "there is no JVM"
_NO_THREADS: Final = "this broker has one loop"
_NO_JMX: Final = "there is no JMX"
_NO_PLUGINS: Final = "Java classes cannot be loaded"
_LATER: Final = "not supported yet"
_METRICS: Final = "has no effect here: see `atalanta run --web` and docs/reference/management.md"

CORE: Final[dict[str, str]] = {
    "system-property-prefix": "broker properties are not read",
    "amqp-use-core-subscription-naming": _LATER,
    "resolve-protocols": "protocols are built in",
    "scheduled-thread-pool-max-size": _NO_THREADS,
    "thread-pool-max-size": _NO_THREADS,
    "async-connection-execution-enabled": _NO_THREADS,
    "message-expiry-thread-priority": _NO_THREADS,
    "log-delegate-factory-class-name": _NO_PLUGINS,
    "jmx-management-enabled": _NO_JMX,
    "jmx-domain": _NO_JMX,
    "jmx-notification-enabled": _NO_JMX,
    "jmx-use-broker-name": _NO_JMX,
    "remoting-incoming-interceptors": _NO_PLUGINS,
    "remoting-outgoing-interceptors": _NO_PLUGINS,
    "mqtt-session-scan-interval": "MQTT is not supported yet",
    "mqtt-session-state-persistence-timeout": "MQTT is not supported yet",
    "mqtt-subscription-persistence-enabled": "MQTT is not supported yet",
    "federations": "federation is not supported yet",
    "broker-connections": "AMQP broker connections are not supported yet",
    "journal-lock-monitor-timeout": "the lease of a shared store has its own times: see <ha-policy>",
    "journal-lock-monitor-max-retries": "the lease of a shared store has its own times: see <ha-policy>",
    "lock-coordinators": "they only matter to an acceptor that names one, which is not opened",
    "journal-retention-directory": "the journal is not retained",
    "server-dump-interval": _METRICS,
    "memory-warning-threshold": _NO_JVM,
    "memory-measure-interval": _NO_JVM,
    "store": "messages are kept in the journal's files",
    "mirror-ack-manager-queue-attempts": "mirrors are not supported yet",
    "mirror-ack-manager-page-attempts": "mirrors are not supported yet",
    "mirror-ack-manager-retry-delay": "mirrors are not supported yet",
    "mirror-ack-manager-warn-unacked": "mirrors are not supported yet",
    "mirror-page-transaction": "mirrors are not supported yet",
    "metrics-plugin": _NO_PLUGINS,
    "metrics": _METRICS,
    "connector-services": _NO_PLUGINS,
    # Removed from Artemis' schema, but still found in files of Artemis 1 and HornetQ.
    "clustered": "see <cluster-connections>",
    "backup": "see <ha-policy>",
    "shared-store": "see <ha-policy>",
    "allow-failback": "see <ha-policy>",
    "failover-on-shutdown": "see <ha-policy>",
    "perf-blast-pages": "removed from Artemis",
    "run-sync-speed-test": "removed from Artemis",
}

# Services that the file asks for, and that this node does not give. The other names are harmless.
LOST: Final = frozenset(
    {
        "backup",
        "broker-connections",
        "connector-services",
        "federations",
        "journal-retention-directory",
        "remoting-incoming-interceptors",
        "remoting-outgoing-interceptors",
        "security-setting-plugin",
        "store",
    }
)

JGROUPS: Final = ("jgroups-file", "jgroups-channel")
# Elements of UDP groups that JGroups groups do not have.
UDP: Final = ("group-address", "group-port", "local-bind-address", "local-bind-port")
