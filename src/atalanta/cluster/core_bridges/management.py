"""Management of core bridges: BridgeControl, createBridge and destroyBridge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.cluster.core_bridges.bridge import STARTED
from atalanta.cluster.core_bridges.definition import config_of
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.request.json_text import encode_json
from atalanta.management.resources.bridge import BridgeRegistry, ListedBridge

if TYPE_CHECKING:
    from atalanta.cluster.core_bridges.bridge import CoreBridge
    from atalanta.cluster.core_bridges.bridges import CoreBridges


class Registry(BridgeRegistry):
    """The core bridges of a node, for management."""

    def __init__(self, bridges: CoreBridges) -> None:
        self.bridges = bridges

    def names(self) -> list[str]:
        return list(self.bridges.by_name)

    def find(self, name: str) -> ListedBridge | None:
        bridge = self.bridges.by_name.get(name)
        return None if bridge is None else Listed(bridge)

    def create(self, now: int, definition: dict[str, object]) -> None:
        config = config_of(definition)
        if config.name in self.bridges.settings.transforms:
            raise BrokerError(ILLEGAL_STATE, f"bridge {config.name} belongs to atalanta.toml")
        self.bridges.create(now, config)
        self.bridges.store(config)

    def destroy(self, now: int, name: str) -> None:
        self.bridges.destroy(now, name)


class Listed(ListedBridge):
    """BridgeControl of one bridge."""

    def __init__(self, bridge: CoreBridge) -> None:
        self.bridge = bridge

    def start(self, now: int) -> None:
        self.bridge.start(now)

    def stop(self, now: int) -> None:
        self.bridge.stop(now)

    def shown(self) -> dict[str, object]:
        bridge = self.bridge
        config = bridge.config
        properties = config.transformer_properties
        return {
            "Name": bridge.name,
            "QueueName": config.queue_name,
            "ForwardingAddress": config.forwarding_address,
            "FilterString": config.filter_text,
            "TransformerClassName": config.transformer_class,
            "TransformerProperties": dict(properties),
            "TransformerPropertiesAsJSON": encode_json(properties),
            "StaticConnectors": list(config.static_connectors),
            "DiscoveryGroupName": config.discovery_group,
            "RetryInterval": config.retry_interval_ms,
            "RetryIntervalMultiplier": config.retry_interval_multiplier,
            "MaxRetryInterval": config.max_retry_interval_ms,
            "ReconnectAttempts": config.reconnect_attempts,
            "UseDuplicateDetection": config.use_duplicate_detection,
            "HA": config.ha,
            "MessagesPendingAcknowledgement": bridge.sent,
            "MessagesAcknowledged": bridge.acknowledged,
            "Metrics": {
                "messagesPendingAcknowledgement": bridge.sent,
                "messagesAcknowledged": bridge.acknowledged,
            },
            "Connected": bridge.link is not None and bridge.link.connected,
            "Started": bridge.state == STARTED,
        }
