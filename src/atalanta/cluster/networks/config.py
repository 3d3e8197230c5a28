"""The configuration of a network of brokers: the `<networkConnector>` elements of ActiveMQ Classic.

Names and defaults are those of Classic's NetworkBridgeConfiguration, DiscoveryNetworkConnector and
SimpleDiscoveryAgent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.kernel.option import OptionGroup, ignored, option, unbuilt
from atalanta.kernel.unseen_options import JMX, THREADS

STATIC: Final = "static"
MASTERSLAVE: Final = "masterslave"
MULTICAST: Final = "multicast"


@dataclass(frozen=True)
class NetworkTarget:
    """The address of a remote broker. `params` are the options of its URI."""

    scheme: str
    host: str
    port: int
    params: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class NetworkDestination:
    """A destination of a filter; the name may have Classic's wildcards `*` and `>`."""

    queue: bool
    name: str


@dataclass(eq=False, repr=False)
class NetworkRetry(OptionGroup):
    """The options behind `static:(…)` and `masterslave:(…)`: when a lost bridge is dialed again."""

    initial_reconnect_delay_ms: int = option(
        1000, "initialReconnectDelay", "pause before the first new attempt", unit="ms", minimum=0
    )
    max_reconnect_delay_ms: int = option(30_000, "maxReconnectDelay", "longest pause", unit="ms", minimum=0)
    exponential: bool = option(True, "useExponentialBackOff", "the pause grows with each attempt")
    multiplier: float = option(2.0, "backOffMultiplier", "growth of the pause", minimum=1)
    max_reconnect_attempts: int = option(
        0, "maxReconnectAttempts", "attempts before the bridge is given up, 0 any", unit="count", minimum=0
    )
    min_connect_time_ms: int = option(
        5000, "minConnectTime", "a bridge that was up for less counts as a failed attempt", unit="ms", minimum=0
    )


@dataclass
class NetworkWay:
    """The content of a uri. `bridges` has the brokers of each bridge: several are alternatives of one another.

    `group` is that of multicast.
    """

    kind: str = STATIC
    bridges: list[list[NetworkTarget]] = field(default_factory=list)
    group: str = ""
    retry: NetworkRetry = field(default_factory=NetworkRetry)


@dataclass(eq=False, repr=False)
class NetworkConnectorConfig(OptionGroup):
    """A `<networkConnector>`; `way` is its uri, read."""

    name: str = option("NC", "name", "unique in the broker", attribute=True)
    uri: str = option("", "uri", "`static:(…)`, `masterslave:(…)` or `multicast://group`", attribute=True)
    duplex: bool = option(False, "duplex", "the other broker sends over the same connection", attribute=True)
    conduit_subscriptions: bool = option(
        True, "conduitSubscriptions", "all consumers of a destination count as one", attribute=True
    )
    conduit_network_queue_subscriptions: bool = option(
        False, "conduitNetworkQueueSubscriptions", "also those that other bridges have made", attribute=True
    )
    use_virtual_dest_subs: bool = option(
        False, "useVirtualDestSubs", "consumers behind virtual destinations of the other broker are demand for these",
        attribute=True,
    )
    dynamic_only: bool = option(
        False, "dynamicOnly", "durable subscriptions are demand only while they are connected", attribute=True
    )
    static_bridge: bool = option(
        False, "staticBridge", "only statically included destinations, without advisories", attribute=True
    )
    sync_durable_subs: bool = option(
        False, "syncDurableSubs", "durable subscriptions are told when the bridge starts", attribute=True
    )
    dispatch_async: bool = ignored(True, "dispatchAsync", THREADS, attribute=True)
    decrease_network_consumer_priority: bool = option(
        True, "decreaseNetworkConsumerPriority", "nearer consumers are preferred", attribute=True
    )
    consumer_priority_base: int = option(
        -5, "consumerPriorityBase", "priority of the bridge as a consumer", unit="count", attribute=True
    )
    bridge_temp_destinations: bool = option(
        True, "bridgeTempDestinations", "replies reach temporary destinations elsewhere", attribute=True
    )
    prefetch_size: int = option(
        1000, "prefetchSize", "messages under way over the bridge", unit="count", minimum=1, attribute=True
    )
    advisory_prefetch_size: int = option(
        0, "advisoryPrefetchSize", "the same for advisories, 0 prefetchSize", unit="count", attribute=True
    )
    advisory_ack_percentage: int = option(
        75, "advisoryAckPercentage", "share of the prefetch after which advisories are acknowledged",
        unit="percent", minimum=1, maximum=100, attribute=True,
    )  # fmt: skip
    network_ttl: int = option(
        1, "networkTTL", "brokers that messages and demand may pass, -1 any number", unit="count", minimum=-1,
        attribute=True,
    )
    consumer_ttl: int | None = option(
        None, "consumerTTL", "of demand alone (networkTTL if absent)", unit="count", minimum=-1, attribute=True
    )
    message_ttl: int | None = option(
        None, "messageTTL", "of messages alone (networkTTL if absent)", unit="count", minimum=-1, attribute=True
    )
    user_name: str = option(
        "", "userName", "the user of the bridge in this broker, and in the other one without remoteUserName",
        attribute=True,
    )  # fmt: skip
    password: str = option("", "password", "that user's password", attribute=True)
    remote_user_name: str = option("", "remoteUserName", "the user at the other broker", attribute=True)
    remote_password: str = option("", "remotePassword", "that user's password", attribute=True)
    destination_filter: str | None = option(
        None, "destinationFilter", "advisory topics that are listened to, instead of all", attribute=True
    )
    client_id_token: str = option("_", "clientIdToken", "parts the words of the client id", attribute=True)
    suppress_duplicate_queue_subscriptions: bool = option(
        False, "suppressDuplicateQueueSubscriptions", "one way to a consumer where several lead there",
        attribute=True,
    )  # fmt: skip
    suppress_duplicate_topic_subscriptions: bool = option(
        True, "suppressDuplicateTopicSubscriptions", "the same for topics", attribute=True
    )
    always_sync_send: bool = option(
        True, "alwaysSyncSend", "non-persistent messages are confirmed by the other broker, too", attribute=True
    )
    use_compression: bool = option(False, "useCompression", "bodies are compressed for the way", attribute=True)
    advisory_for_failed_forward: bool = unbuilt(
        False, "advisoryForFailedForward", "no advisory tells of a message that cannot be sent: the log does",
        attribute=True,
    )  # fmt: skip
    use_broker_names_as_id_seed: bool = unbuilt(
        True, "useBrokerNamesAsIdSeed", "the ids of a bridge's connections do not follow it", attribute=True,
        also=("useBrokerNameAsIdSees",),
    )  # fmt: skip
    gc_destination_views: bool = ignored(True, "gcDestinationViews", JMX, attribute=True)
    gc_sweep_time_ms: int = ignored(60_000, "gcSweepTime", JMX, unit="ms", attribute=True)
    check_duplicate_messages_on_duplex: bool = ignored(
        False, "checkDuplicateMessagesOnDuplex", "repeats of a bridge are always dropped", attribute=True
    )
    replay_when_no_consumers: bool = option(
        True, "replayWhenNoConsumers", "messages whose consumers have gone return to brokers that they have passed",
        attribute=True,
    )  # fmt: skip
    replay_delay_ms: int = option(
        5000, "replayDelay", "how long a queue has no consumer before that", unit="ms", minimum=0, attribute=True
    )
    auto_start: bool = option(True, "autoStart", "false: not started with the broker", attribute=True)
    excluded: list[NetworkDestination] = field(default_factory=list)
    dynamically_included: list[NetworkDestination] = field(default_factory=list)
    statically_included: list[NetworkDestination] = field(default_factory=list)
    durable: list[NetworkDestination] = field(default_factory=list)
    way: NetworkWay = field(default_factory=NetworkWay)

    def hears(self) -> bool:
        """Returns whether it hears of brokers by multicast."""
        return bool(self.way.group)


def message_hops(config: NetworkConnectorConfig) -> int:
    """Returns the brokers that a message may pass, -1 any."""
    return config.network_ttl if config.message_ttl is None else config.message_ttl


def consumer_hops(config: NetworkConnectorConfig) -> int:
    """Returns the brokers that demand may pass, -1 any."""
    return config.network_ttl if config.consumer_ttl is None else config.consumer_ttl


def is_secure(scheme: str) -> bool:
    """Returns True if brokers are reached over TLS by that scheme."""
    return "ssl" in scheme.split("+")


def tls_name(config: NetworkConnectorConfig, target: NetworkTarget) -> str:
    """Returns the name under which the shell knows the TLS settings for an address of a connector.

    Addresses without options have those of the connector: all that were heard, whatever their URLs say.
    """
    return f"networks.{config.name} {target.host}:{target.port}" if target.params else f"networks.{config.name}"
