"""Cluster connections, broadcast and discovery groups as `broker.xml` configures them.

Where Artemis' code and its schema have different defaults, the default is the one of the code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.kernel.option import OptionGroup, ignored, option
from atalanta.kernel.security.security import (
    DEFAULT_CLUSTER_PASSWORD,
    DEFAULT_CLUSTER_USER,
    is_public_password,
)
from atalanta.kernel.unseen_options import UNREAD
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.endpoint import AcceptorConfig, ConnectorConfig
from atalanta.wire.jgroups_discovery import JgroupsStack

OFF: Final = "OFF"
STRICT: Final = "STRICT"
ON_DEMAND: Final = "ON_DEMAND"
OFF_WITH_REDISTRIBUTION: Final = "OFF_WITH_REDISTRIBUTION"
# Fields of a cluster connection that change only with a restart.
FIXED: Final = ("name", "address", "connector", "max_hops", "allow_direct_connections_only")
LOAD_BALANCING: Final = {
    OFF: OFF,
    STRICT: STRICT,
    ON_DEMAND: ON_DEMAND,
    OFF_WITH_REDISTRIBUTION: OFF_WITH_REDISTRIBUTION,
}


@dataclass(eq=False, repr=False)
class DiscoveryConfig(OptionGroup):
    """The channel of a broadcast or discovery group: UDP multicast, or a JGroups stack."""

    name: str = option("", "name", "unique", attribute=True)
    group_address: str | None = option(None, "group-address", "multicast address")
    group_port: int = option(
        -1, "group-port", "multicast port", minimum=-1, maximum=65535, unit="port"
    )
    jgroups_file: str | None = option(
        None, "jgroups-file", "a JGroups stack; nodes find each other with its discovery protocol"
    )
    jgroups_channel: str | None = option(
        None, "jgroups-channel", "distinguishes clusters that use the same stack"
    )
    stack: JgroupsStack | None = None  # read from the JGroups stack file

    @property
    def place(self) -> str:
        """Returns where the group sends or hears, for logs and management."""
        return f"group {self.group_address}:{self.group_port}" if self.stack is None else self.stack.describe()


@dataclass(eq=False, repr=False)
class BroadcastGroupConfig(DiscoveryConfig):
    """A broadcast group: announces the node's connectors by UDP multicast or a JGroups discovery protocol."""

    local_bind_address: str | None = option(
        None, "local-bind-address", "the interface that sends; any if absent"
    )
    local_bind_port: int = option(
        -1,
        "local-bind-port",
        "the port that sends; -1 any, with local-bind-address one of 3000 to 4000",
        minimum=-1,
        maximum=65535,
        unit="port",
    )
    broadcast_period_ms: int = option(
        2000, "broadcast-period", "pause between announcements", unit="ms", minimum=1
    )
    connectors: list[str] = field(default_factory=list)  # names, <connector-ref>


@dataclass(eq=False, repr=False)
class DiscoveryGroupConfig(DiscoveryConfig):
    """A discovery group: receives the announcements of broadcast groups."""

    local_bind_address: str | None = option(
        None, "local-bind-address", "the interface that listens; any if absent"
    )
    local_bind_port: int = ignored(
        -1,
        "local-bind-port",
        UNREAD,
        minimum=-1,
        unit="port",
    )
    refresh_timeout_ms: int = option(
        10_000,
        "refresh-timeout",
        "silence after which a node is no longer listed",
        unit="ms",
        minimum=1,
    )
    initial_wait_timeout_ms: int = option(
        10_000,
        "initial-wait-timeout",
        "time after the start without an announcement until this is reported; the search continues",
        unit="ms",
        minimum=1,
    )

    def same_place(self, other: DiscoveryGroupConfig) -> bool:
        """Returns whether both groups hear at the same place, by the same interface."""
        one = (self.group_address, self.group_port, self.local_bind_address, self.local_bind_port)
        two = (other.group_address, other.group_port, other.local_bind_address, other.local_bind_port)
        return one == two and self.stack == other.stack


@dataclass(eq=False, repr=False)
class ClusterConnectionConfig(OptionGroup):
    """A cluster connection of this node. Members come from `static_connectors` or `discovery_group`."""

    name: str = option("", "name", "part of the names of store-and-forward queues", attribute=True)
    address: str = option(
        "",
        "address",
        "prefixes of the addresses that are shared, '!' before those that are not; empty: all",
    )
    connector: str = option("", "connector-ref", "the connector that is announced to others")
    check_period_ms: int = option(
        30_000,
        "check-period",
        "period of the check for a silent peer",
        unit="ms",
        minimum=1,
    )
    connection_ttl_ms: int = option(
        60_000, "connection-ttl", "silence after which a peer is gone", unit="ms", minimum=1
    )
    min_large_message_bytes: int = option(
        100 * 1024,
        "min-large-message-size",
        "bodies above it travel in chunks",
        unit="bytes",
        minimum=1,
    )
    call_timeout_ms: int = option(
        30_000, "call-timeout", "a link that is not open by then is tried anew", unit="ms", minimum=1
    )
    call_failover_timeout_ms: int = option(
        -1,
        "call-failover-timeout",
        "the same for a link that was lost, -1 for ever",
        unit="ms",
        minimum=-1,
    )
    retry_interval_ms: int = option(
        500, "retry-interval", "pause before the next attempt", unit="ms", minimum=1
    )
    retry_interval_multiplier: float = option(
        1.0, "retry-interval-multiplier", "growth of that pause, above 0", above=0
    )
    max_retry_interval_ms: int = option(
        2000, "max-retry-interval", "longest pause", unit="ms", minimum=1
    )
    initial_connect_attempts: int = option(
        -1,
        "initial-connect-attempts",
        "attempts at a member's first connection, -1 for ever",
        unit="count",
        minimum=-1,
    )
    reconnect_attempts: int = option(
        -1,
        "reconnect-attempts",
        "attempts at a lost one before the member is out, -1 for ever",
        unit="count",
        minimum=-1,
    )
    use_duplicate_detection: bool = option(
        True, "use-duplicate-detection", "a repeated message is dropped by the peer"
    )
    forward_when_no_consumers: bool | None = option(
        None, "forward-when-no-consumers", "old form: true is STRICT, false ON_DEMAND", kind="bool"
    )
    message_load_balancing: str = option(
        ON_DEMAND, "message-load-balancing", "which node gets a message", choices=LOAD_BALANCING
    )
    max_hops: int = option(
        1,
        "max-hops",
        "over how many hops bindings are announced; 0 takes none from others",
        unit="count",
        minimum=0,
    )
    # Artemis' schema says 1 MiB; its code, and observed connections, use 10 MiB.
    confirmation_window_bytes: int = option(
        10 * 1024 * 1024,
        "confirmation-window-size",
        "bytes before the peer confirms",
        unit="bytes",
        minimum=1,
    )
    producer_window_bytes: int = option(
        1024 * 1024,
        "producer-window-size",
        "bytes sent ahead of the peer's credit, -1 any",
        unit="bytes",
        minimum=-1,
    )
    notification_interval_ms: int = option(
        1000,
        "notification-interval",
        "pause between announcements of this node",
        unit="ms",
        minimum=1,
    )
    notification_attempts: int = option(
        2, "notification-attempts", "number of announcements of this node", unit="count", minimum=1
    )
    topology_scanner_attempts: int = option(
        30,
        "topology-scanner-attempts",
        "attempts at further connectors while one is reached, -1 for ever",
        unit="count",
        minimum=-1,
    )
    client_id: str | None = option(None, "client-id", "name shown at the peer")
    scale_down_connector: str | None = ignored(
        None, "scale-down-connector", UNREAD
    )
    static_connectors: list[str] = field(default_factory=list)  # names
    static: bool = False  # `<static-connectors>` is present; if it is empty, the node only accepts links
    allow_direct_connections_only: bool = False
    discovery_group: str | None = None

    def fixed(self) -> dict[str, object]:
        """Returns what changes only with a restart: others know this node by it, or have bindings by it."""
        return {name: getattr(self, name) for name in FIXED}

    def differs(self, fresh: ClusterConnectionConfig) -> bool:
        """Returns whether a reload changes something else."""
        return any(value != getattr(fresh, name) for name, value in vars(self).items() if name not in FIXED)

    def take(self, fresh: ClusterConnectionConfig) -> None:
        """Takes what a reload changes. All parts of the cluster connection share this object."""
        for name, value in vars(fresh).items():
            if name not in FIXED:
                setattr(self, name, value)


@dataclass(eq=False, repr=False)
class ClusterSettings(OptionGroup):
    """The cluster configuration of one node."""

    cluster_connections: list[ClusterConnectionConfig] = field(default_factory=list)
    connectors: dict[str, ConnectorConfig] = field(default_factory=dict)
    broadcast_groups: list[BroadcastGroupConfig] = field(default_factory=list)
    discovery_groups: dict[str, DiscoveryGroupConfig] = field(default_factory=dict)
    cluster_user: str = DEFAULT_CLUSTER_USER
    cluster_password: str = DEFAULT_CLUSTER_PASSWORD
    internal_naming_prefix: str = "$.artemis.internal."
    scale_down: ScaleDownConfig | None = None
    backed_up: bool = False  # other processes may wait to serve as this node; their ports do not listen
    replicated: bool = False  # the members of a replicated group come in at the connectors of this one
    group_connectors: list[str] = field(default_factory=list)  # names: the other members of a replicated group

    def reload_connectors(self, fresh: dict[str, ConnectorConfig]) -> None:
        """Takes the connectors of a reload. Those of cluster connections and of the group stay as they are: their links
        were made with them, and others know this node by them."""
        kept = {name: self.connectors[name] for name in self.fixed_connectors() if name in self.connectors}
        self.connectors = {**fresh, **kept}

    def fixed_connectors(self) -> list[str]:
        """Returns the names of the connectors that change only with a restart."""
        names = [*self.group_connectors]
        if self.scale_down is not None:
            names += self.scale_down.connectors
        for each in self.cluster_connections:
            names += [each.connector, *each.static_connectors]
        return names

    def serves_group(self, acceptor: AcceptorConfig) -> bool:
        """Returns whether the members of this node's replicated group may come in at an acceptor."""
        own = [self.connectors.get(each.connector) for each in self.cluster_connections]
        return self.replicated and any(each is not None and each.port == acceptor.port for each in own)

    def transport(self, name: str) -> TransportConfiguration:
        """Returns the connector of that name in the form that is announced to other nodes."""
        made = TransportConfiguration(name)
        for key, value in self.connectors[name].transport_params().items():
            made.put(key, value)
        return made

    def announces(self, transport: TransportConfiguration) -> bool:
        """Returns whether a connector leads to this node, by the connectors that its cluster connections announce."""
        return any(
            transport.same_target(self.transport(each.connector))
            for each in self.cluster_connections
        )

    def is_of_group(self, transport: TransportConfiguration) -> bool:
        """Returns whether a connector leads to another member of this node's group, with the same node id."""
        return any(
            transport.same_target(self.transport(name))
            for name in self.group_connectors
            if name in self.connectors
        )

    def announced_addresses(self) -> list[str]:
        """Returns `host:port` of the connectors that cluster connections and broadcast groups announce."""
        names = [each.connector for each in self.cluster_connections]
        for group in self.broadcast_groups:
            names.extend(group.connectors)
        return [self.transport(name).address for name in names]

    @property
    def has_default_password(self) -> bool:
        """Returns whether the cluster password is the default, or empty. Artemis warns then (AMQ222007)."""
        return is_public_password(self.cluster_password)


@dataclass(eq=False, repr=False)
class ScaleDownConfig(OptionGroup):
    """Settings of `<scale-down>`.

    Without `connectors`, `discovery_group` and `group_name`, any member of the cluster is a target. Artemis then
    uses the first in-VM connector, which only a colocated backup has.
    """

    enabled: bool = option(
        True, "enabled", "false: the node only takes over the messages of others of its group"
    )
    group_name: str | None = option(
        None, "group-name", "announced to the others; only a member of the same group is the target"
    )
    commit_interval: int = option(
        -1,
        "commit-interval",
        "messages that may be under way, sent and not yet finished here; -1 as many as the window takes",
        unit="count",
        minimum=-1,
    )
    cluster_name: str | None = None  # scale-down-clustername of 1.4: a cluster-connection
    discovery_group: str | None = None
    connectors: list[str] = field(default_factory=list)  # names, in the order in which they are tried
