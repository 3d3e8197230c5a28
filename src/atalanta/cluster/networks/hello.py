"""The commands with which a network connector introduces itself, and the rules of its bridge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.networks.config import (
    NetworkConnectorConfig,
    NetworkDestination,
    consumer_hops,
    message_hops,
)
from atalanta.wire.openwire.commands.brokers import BrokerInfo
from atalanta.wire.openwire.commands.identifiers import BrokerId
from atalanta.wire.openwire.server.bridge.rules import BridgeNames, BridgeRules, DestinationList

if TYPE_CHECKING:
    from collections.abc import Iterable

# Options that a duplex bridge at the other end takes over, by their names in Classic.
PASSED_ON: Final = {
    "name": "name", "conduitSubscriptions": "conduit_subscriptions",
    "conduitNetworkQueueSubscriptions": "conduit_network_queue_subscriptions",
    "dynamicOnly": "dynamic_only", "staticBridge": "static_bridge", "syncDurableSubs": "sync_durable_subs",
    "decreaseNetworkConsumerPriority": "decrease_network_consumer_priority",
    "consumerPriorityBase": "consumer_priority_base", "bridgeTempDestinations": "bridge_temp_destinations",
    "prefetchSize": "prefetch_size", "advisoryPrefetchSize": "advisory_prefetch_size",
    "clientIdToken": "client_id_token", "alwaysSyncSend": "always_sync_send",
    "suppressDuplicateQueueSubscriptions": "suppress_duplicate_queue_subscriptions",
    "suppressDuplicateTopicSubscriptions": "suppress_duplicate_topic_subscriptions",
    "useCompression": "use_compression", "useVirtualDestSubs": "use_virtual_dest_subs",
}  # fmt: skip


def rules_of(config: NetworkConnectorConfig, local: str, remote: str) -> BridgeRules:
    """Returns the rules of the connector between brokers of these names."""
    return BridgeRules(
        names=BridgeNames(config.name, local, remote, config.client_id_token),
        conduit=config.conduit_subscriptions,
        conduit_network_queues=config.conduit_network_queue_subscriptions,
        dynamic_only=config.dynamic_only,
        lower_priority=config.decrease_network_consumer_priority,
        priority_base=config.consumer_priority_base,
        prefetch=config.prefetch_size,
        message_ttl=message_hops(config),
        consumer_ttl=consumer_hops(config),
        suppress_queues=config.suppress_duplicate_queue_subscriptions,
        suppress_topics=config.suppress_duplicate_topic_subscriptions,
        temporary=config.bridge_temp_destinations,
        always_sync_send=config.always_sync_send,
        compress=config.use_compression,
        virtual=config.use_virtual_dest_subs,
        replay_delay_ms=config.replay_delay_ms if config.replay_when_no_consumers else -1,
        excluded=_names(config.excluded),
        dynamic=_names(config.dynamically_included),
        static=_names(config.statically_included),
    )


def _names(destinations: Iterable[NetworkDestination]) -> DestinationList:
    return DestinationList([(each.queue, each.name) for each in destinations])


def greeting(config: NetworkConnectorConfig, node_id: str, name: str, url: str | None) -> BrokerInfo:
    """Returns the BrokerInfo with which the connector begins; a duplex bridge there reads the properties."""
    return BrokerInfo(
        BrokerId(node_id), url, None, name,
        duplex_connection=config.duplex, network_connection=True, network_properties=_properties(config),
    )  # fmt: skip


def _properties(config: NetworkConnectorConfig) -> str:
    """Returns the options as the text of a Java properties file. Users and passwords are not told."""
    values: dict[str, object] = {name: getattr(config, field) for name, field in PASSED_ON.items()}
    values["duplex"] = config.duplex
    values["messageTTL"] = message_hops(config)
    values["consumerTTL"] = consumer_hops(config)
    for key, destinations in (
        ("excludedDestinations", config.excluded),
        ("dynamicallyIncludedDestinations", config.dynamically_included),
        ("staticallyIncludedDestinations", config.statically_included),
    ):
        if destinations:
            names = [f"{'queue' if each.queue else 'topic'}://{each.name}" for each in destinations]
            values[key] = f"[{', '.join(names)}]"
    return "".join(f"{key}={_property(value)}\n" for key, value in values.items())


def _property(value: object) -> str:
    """Returns a value as properties files have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    for special in ("\\", ":", "=", "#", "!"):
        text = text.replace(special, f"\\{special}")
    return text.replace("\n", "\\n")
