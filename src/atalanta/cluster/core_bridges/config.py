"""Core bridges in `broker.xml` (defaults of BridgeConfiguration, Artemis 2.44)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from atalanta.cluster.config import BroadcastGroupConfig, ClusterSettings, DiscoveryGroupConfig
from atalanta.cluster.native_config import OwnBridge
from atalanta.kernel.option import OptionGroup, ignored, option
from atalanta.kernel.routing.divert_config import PASS, ROUTING_TYPES
from atalanta.kernel.security.security import (
    DEFAULT_CLUSTER_PASSWORD,
    DEFAULT_CLUSTER_USER,
    is_public_password,
)
from atalanta.kernel.unseen_options import UNREAD
from atalanta.message.message import Message
from atalanta.wire.endpoint import ConnectorConfig

# Limits of the packets that carry these values.
INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
# Gets a copy that it may change. Returns the copy, another message, or None for the copy.
Transform = Callable[[Message], Message | None]


@dataclass(eq=False, repr=False)
class CoreBridgeConfig(OptionGroup):
    """A core bridge: the messages of a local queue are sent to an address of another broker."""

    name: str = option("", "name", "unique in the broker", attribute=True)
    queue_name: str = option("", "queue-name", "the local queue that is emptied")
    forwarding_address: str | None = option(
        None, "forwarding-address", "where messages go; the address they have if absent"
    )
    ha: bool = option(
        False, "ha", "connect to any member of the target's cluster, not to those named alone"
    )
    min_large_message_bytes: int = option(
        100 * 1024,
        "min-large-message-size",
        "bodies above it travel in chunks of this size",
        unit="bytes",
        minimum=1,
        maximum=INT_MAX,
    )
    check_period_ms: int = option(
        30_000, "check-period", "period of the check for a silent target", unit="ms", minimum=1
    )
    connection_ttl_ms: int = option(
        60_000,
        "connection-ttl",
        "silence after which the target is gone",
        unit="ms",
        minimum=1,
        maximum=LONG_MAX,
    )
    retry_interval_ms: int = option(
        2_000, "retry-interval", "pause before the next attempt", unit="ms", minimum=1
    )
    retry_interval_multiplier: float = option(
        1.0, "retry-interval-multiplier", "growth of that pause, above 0", above=0
    )
    max_retry_interval_ms: int = option(
        2_000, "max-retry-interval", "longest pause", unit="ms", minimum=1
    )
    initial_connect_attempts: int = option(
        -1,
        "initial-connect-attempts",
        "further attempts at the first connection, -1 for ever; then the bridge stops",
        unit="count",
        minimum=-1,
    )
    reconnect_attempts: int = option(
        -1,
        "reconnect-attempts",
        "attempts at a lost one, -1 for ever; then the bridge stops",
        unit="count",
        minimum=-1,
    )
    reconnect_attempts_same_node: int = option(
        10,
        "reconnect-attempts-same-node",
        "of these, the attempts at the node it was connected to, -1 all of them",
        unit="count",
        minimum=-1,
    )
    failover_on_server_shutdown: bool = ignored(
        False, "failover-on-server-shutdown", UNREAD
    )
    use_duplicate_detection: bool = option(
        True,
        "use-duplicate-detection",
        "a repeated message is dropped by the target; without, messages go one at a time",
    )
    confirmation_window_bytes: int = option(
        10 * 1024 * 1024,
        "confirmation-window-size",
        "bytes on their way before the target has answered for them, -1 is 1M",
        unit="bytes",
        minimum=-1,
        maximum=INT_MAX,
    )
    producer_window_bytes: int = option(
        1024 * 1024,
        "producer-window-size",
        "bytes sent ahead of the target's credit, -1 any",
        unit="bytes",
        minimum=-1,
        maximum=INT_MAX,
    )
    user: str = option(DEFAULT_CLUSTER_USER, "user", "user for the login at the target")
    password: str = option(DEFAULT_CLUSTER_PASSWORD, "password", "password of that user")
    routing_type: int = option(
        PASS, "routing-type", "routing type of what is forwarded", choices=ROUTING_TYPES
    )
    concurrency: int = option(
        1,
        "concurrency",
        "number of connections, named NAME-0, NAME-1 …; with more than 1 the order is not kept",
        unit="count",
        minimum=1,
        maximum=1_000,
    )
    pending_ack_timeout_ms: int = option(
        60_000,
        "pending-ack-timeout",
        "longest wait for the target's answers when the bridge is stopped",
        unit="ms",
        minimum=1,
    )
    call_timeout_ms: int = option(
        30_000,
        "call-timeout",
        "a connection that is not open by then is tried anew (WildFly's, not in Artemis' schema)",
        unit="ms",
        minimum=1,
    )
    client_id: str | None = option(None, "client-id", "name shown at the target")
    filter_text: str | None = None
    transformer_class: str | None = None
    transformer_properties: dict[str, str] = field(default_factory=dict)
    static_connectors: list[str] = field(default_factory=list)  # names
    discovery_group: str | None = None

    @property
    def has_default_user(self) -> bool:
        """Returns whether the bridge logs in with the cluster user and password that everybody knows."""
        return self.user == DEFAULT_CLUSTER_USER and is_public_password(self.password)


@dataclass(eq=False, repr=False)
class CoreBridgeSettings(OptionGroup):
    """Settings of all bridges of one node. `transforms` are Python functions by the name of the bridge."""

    bridges: list[CoreBridgeConfig] = field(default_factory=list)
    connectors: dict[str, ConnectorConfig] = field(default_factory=dict)
    discovery_groups: dict[str, DiscoveryGroupConfig] = field(default_factory=dict)
    own: dict[str, OwnBridge] = field(default_factory=dict)
    transforms: dict[str, Transform] = field(default_factory=dict)
    broadcast_groups: list[BroadcastGroupConfig] = field(default_factory=list)

    def discovery(self) -> ClusterSettings:
        """Returns the settings for discovery in a node without a cluster connection: clients, pools of connection
        routers and bridges find it by its broadcast groups, as in Artemis."""
        return ClusterSettings(
            connectors=self.connectors,
            broadcast_groups=self.broadcast_groups,
            discovery_groups=self.discovery_groups,
        )
