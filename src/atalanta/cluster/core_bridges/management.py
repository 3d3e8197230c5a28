"""Management of core bridges: resource `bridge.NAME` (BridgeControl), their creation, removal and metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from atalanta.cluster.core_bridges.bridge import STARTED
from atalanta.cluster.core_bridges.definition import config_of
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.controls.control import Control
from atalanta.management.metrics_text import escape, head
from atalanta.management.request.call import (
    Attribute,
    Attributes,
    Call,
    Operations,
    Parameters,
    text_of,
)
from atalanta.management.request.json_text import encode_json, read_object

if TYPE_CHECKING:
    from atalanta.cluster.core_bridges.bridge import CoreBridge
    from atalanta.cluster.core_bridges.bridges import CoreBridges

Getter = Callable[["CoreBridge"], object]

ATTRIBUTES: Final[dict[str, Getter]] = {
    "Name": lambda bridge: bridge.name,
    "QueueName": lambda bridge: bridge.config.queue_name,
    "ForwardingAddress": lambda bridge: bridge.config.forwarding_address,
    "FilterString": lambda bridge: bridge.config.filter_text,
    "TransformerClassName": lambda bridge: bridge.config.transformer_class,
    "TransformerPropertiesAsJSON": lambda bridge: encode_json(bridge.config.transformer_properties),
    "TransformerProperties": lambda bridge: dict(bridge.config.transformer_properties),
    "StaticConnectors": lambda bridge: list(bridge.config.static_connectors),
    "DiscoveryGroupName": lambda bridge: bridge.config.discovery_group,
    "RetryInterval": lambda bridge: bridge.config.retry_interval_ms,
    "RetryIntervalMultiplier": lambda bridge: bridge.config.retry_interval_multiplier,
    "MaxRetryInterval": lambda bridge: bridge.config.max_retry_interval_ms,
    "ReconnectAttempts": lambda bridge: bridge.config.reconnect_attempts,
    "UseDuplicateDetection": lambda bridge: bridge.config.use_duplicate_detection,
    "HA": lambda bridge: bridge.config.ha,
    "MessagesPendingAcknowledgement": lambda bridge: bridge.sent,
    "MessagesAcknowledged": lambda bridge: bridge.acknowledged,
    "Metrics": lambda bridge: {
        "messagesPendingAcknowledgement": bridge.sent,
        "messagesAcknowledged": bridge.acknowledged,
    },
    "Connected": lambda bridge: connected(bridge),
    "Started": lambda bridge: bridge.state == STARTED,
    # Additions to Artemis: where it leads, and why it does not forward.
    "Target": lambda bridge: bridge.place(),
    "FailureReason": lambda bridge: bridge.failure_reason(),
}
FIGURES: Final[list[tuple[str, str, str, Callable[[CoreBridge], int]]]] = [
    ("bridge_connected", "1 while the bridge forwards messages", "gauge",
     lambda bridge: int(connected(bridge))),
    ("bridge_messages_sent_total", "messages sent, repeats too", "counter",
     lambda bridge: bridge.sent),
    ("bridge_messages_acknowledged_total", "messages that are safe at the target", "counter",
     lambda bridge: bridge.acknowledged),
]  # fmt: skip
# Parameters of createBridge in Artemis' order, by the names of its JSON form.
BEFORE_TRANSFORMER: Final = ("name", "queue-name", "forwarding-address", "filter-string")
RETRIES: Final = (
    "retry-interval",
    "retry-interval-multiplier",
    "initial-connect-attempts",
    "reconnect-attempts",
    "use-duplicate-detection",
    "confirmation-window-size",
)


def connected(bridge: CoreBridge) -> bool:
    return bridge.link is not None and bridge.link.connected


class BridgeControl(Control):
    """The control of the core bridges. `broker_operations` are operations of the resource `broker`."""

    def __init__(self, bridges: CoreBridges) -> None:
        self.bridges = bridges
        super().__init__(
            {name: self._attribute(getter) for name, getter in ATTRIBUTES.items()},
            {"start": [("", self.start)], "stop": [("", self.stop)]},
        )
        self.broker_attributes: Attributes = {"BridgeNames": lambda call: list(bridges.by_name)}
        self.broker_operations: Operations = {
            "createBridge": [
                ("s", self.create_json),
                ("ssSSSldiibilsbbSS", self.create_listed),
                ("ssSSSldiibiilsbbSS", self.create_listed),
                ("ssSSSmldiibiilsbbSS", self.create_listed),
                ("ssSSSSldiibiilsbbSS", self.create_listed),
            ],
            "destroyBridge": [("s", self.destroy)],
            "startBridge": [("s", self.start_named)],
            "stopBridge": [("s", self.stop_named)],
        }

    def select(self, call: Call) -> bool:
        return call.name in self.bridges.by_name

    def _attribute(self, getter: Getter) -> Attribute:
        return lambda call: getter(self.find(call.name))

    def find(self, name: str) -> CoreBridge:
        """Returns the bridge. Raises BrokerError if it does not exist."""
        found = self.bridges.by_name.get(name)
        if found is None:
            raise BrokerError(ILLEGAL_STATE, f"there is no bridge {name}")
        return found

    def start(self, call: Call, given: Parameters) -> object:
        bridge = self.find(call.name)
        call.command.begin_change()
        bridge.start(call.now)
        return None

    def stop(self, call: Call, given: Parameters) -> object:
        bridge = self.find(call.name)
        call.command.begin_change()
        bridge.stop(call.now)
        return None

    # -- operations of the broker ---------------------------------------------------------------
    def start_named(self, call: Call, given: Parameters) -> object:
        bridge = self.find(text_of(given, 0))
        call.command.begin_change()
        bridge.start(call.now)
        return None

    def stop_named(self, call: Call, given: Parameters) -> object:
        bridge = self.find(text_of(given, 0))
        call.command.begin_change()
        bridge.stop(call.now)
        return None

    def create_json(self, call: Call, given: Parameters) -> object:
        """Creates a bridge from BridgeConfiguration as JSON."""
        self.create(call.now, read_object(text_of(given, 0)))
        return None

    def create_listed(self, call: Call, given: Parameters) -> object:
        """Creates a bridge by a deprecated overload: 16 parameters, with producer window, or with properties."""
        definition: dict[str, object] = {}
        rest = list(given)
        for name in BEFORE_TRANSFORMER:
            definition[name] = rest.pop(0)
        transformer = rest.pop(0)
        properties: object = None
        if len(given) == 19:
            properties = rest.pop(0)
            if isinstance(properties, str):
                try:
                    properties = json.loads(properties)
                except (ValueError, RecursionError) as error:
                    raise BrokerError(ILLEGAL_STATE, f"properties are not JSON: {error}") from error
        if transformer:
            definition["transformer-configuration"] = {
                "class-name": transformer,
                "properties": properties,
            }
        for name in RETRIES:
            definition[name] = rest.pop(0)
        if len(given) > 17:
            definition["producer-window-size"] = rest.pop(0)
        definition["client-failure-check-period"] = rest.pop(0)
        where = rest.pop(0)
        by_discovery = rest.pop(0) is True
        definition["discovery-group-name" if by_discovery else "static-connectors"] = where
        for name in ("ha", "user", "password"):
            definition[name] = rest.pop(0)
        self.create(call.now, definition)
        return None

    def create(self, now: int, definition: dict[str, object]) -> None:
        """Creates and stores a bridge from the JSON form of BridgeConfiguration. Raises BrokerError with the reason."""
        config = config_of(definition)
        if config.name in self.bridges.settings.transforms:
            raise BrokerError(ILLEGAL_STATE, f"bridge {config.name} belongs to atalanta.toml")
        self.bridges.broker.command.begin_change()
        self.bridges.create(now, config)
        self.bridges.store(config)

    def destroy(self, call: Call, given: Parameters) -> object:
        call.command.begin_change()
        self.bridges.destroy(call.now, text_of(given, 0))
        return None

    def metrics(self) -> Iterator[str]:
        """Yields the metrics of core bridges. The waiting messages are in the metrics of the bridges' queues."""
        bridges = self.bridges
        broker = escape(bridges.broker.config.name)
        shown = list(bridges.by_name.values())
        for figure, why, kind, value in FIGURES if shown else ():
            yield head(figure, why, kind, "atalanta_")
            for bridge in shown:
                label = f'{{broker="{broker}",bridge="{escape(bridge.name)}"}}'
                yield f"atalanta_{figure}{label} {value(bridge)}\n"
