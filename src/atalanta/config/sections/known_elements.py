"""Names in Artemis' `<core>` that this version knows but does not support (XSD of 2.56)."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.unseen_options import JMX, LOGS, THREADS, UNREAD, UNSERVED, FixedValue

_NO_PLUGINS: Final = "Java classes cannot be loaded"
_MIRRORS: Final = "concerns mirrors: they come from <broker-connections>, which is named"
_OLD_HA: Final = "no backup takes over, and this node is none: write <ha-policy> (docs/guide/high-availability.md)"
_LEASE: Final = "the lease of a shared store has its own times: a node that lost it stops within that of `lease_ms`"

# No client sees them: each is of a kind of kernel/unseen_options.py, or has a case in tests/config/harmless.
CORE: Final[dict[str, str]] = {
    "amqp-use-core-subscription-naming": UNSERVED,
    "scheduled-thread-pool-max-size": THREADS,
    "thread-pool-max-size": THREADS,
    "async-connection-execution-enabled": THREADS,
    "message-expiry-thread-priority": THREADS,
    "log-delegate-factory-class-name": LOGS,
    "jmx-domain": JMX,
    "jmx-notification-enabled": JMX,
    "jmx-use-broker-name": JMX,
    "mqtt-session-scan-interval": UNSERVED,
    "mqtt-session-state-persistence-timeout": UNSERVED,
    "mqtt-subscription-persistence-enabled": UNSERVED,
    "lock-coordinators": "an acceptor that names one is not opened, and an error says so",
    "server-dump-interval": LOGS,
    "memory-warning-threshold": LOGS,
    "memory-measure-interval": LOGS,
    "mirror-ack-manager-queue-attempts": _MIRRORS,
    "mirror-ack-manager-page-attempts": _MIRRORS,
    "mirror-ack-manager-retry-delay": _MIRRORS,
    "mirror-ack-manager-warn-unacked": _MIRRORS,
    "mirror-page-transaction": _MIRRORS,
    # Removed from Artemis' schema, but still found in files of Artemis 1 and HornetQ.
    "clustered": UNREAD,
    "perf-blast-pages": UNREAD,
    "run-sync-speed-test": UNREAD,
}

# Harmless with one value.
CORE_FIXED: Final[dict[str, FixedValue]] = {
    "resolve-protocols": FixedValue(
        "true", "acceptors serve all their protocols, not CORE alone: write protocols=CORE in each acceptor"
    ),
    "jmx-management-enabled": FixedValue(
        "false", "there is no JMX: what manages the broker by it finds nothing; see docs/reference/management.md"
    ),
    "backup": FixedValue("false", _OLD_HA),
}

# Services that the file asks for, and that this node does not give.
CORE_LOST: Final[dict[str, str]] = {
    "system-property-prefix": "system properties change no setting here: write them in broker.xml",
    "remoting-incoming-interceptors": f"what clients send is neither changed nor refused by them: {_NO_PLUGINS}",
    "remoting-outgoing-interceptors": f"what clients get is neither changed nor withheld by them: {_NO_PLUGINS}",
    "federations": "no message comes from another broker by them: federation is not supported",
    "broker-connections": "no message goes to another broker, or comes from it: AMQP and mirrors are not supported",
    "journal-lock-monitor-timeout": _LEASE,
    "journal-lock-monitor-max-retries": _LEASE,
    "journal-retention-directory": "what was consumed is not kept: the journal is not retained",
    "metrics-plugin": f"nothing is measured by it: {_NO_PLUGINS}; see `atalanta run --web`",
    "metrics": "what is measured does not follow it: see `atalanta run --web` and docs/reference/management.md",
    "connector-services": f"no message comes or goes by them: {_NO_PLUGINS}",
    "shared-store": _OLD_HA,
    "allow-failback": _OLD_HA,
    "failover-on-shutdown": _OLD_HA,
}
# The only child of <store> that is harmless: messages are in files in any case.
FILE_STORE: Final = "file-store"
STORE_WHY: Final = "messages are kept in the journal's files, not in that database: what is in it is not read"

JGROUPS: Final = ("jgroups-file", "jgroups-channel")
# Elements of UDP groups that JGroups groups do not have.
UDP: Final = ("group-address", "group-port", "local-bind-address", "local-bind-port")
