"""Core bridges: resource `bridge.NAME` (BridgeControl), their creation and removal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.controls.control import Control
from atalanta.management.request.call import Attribute, Call, Operations, Parameters, text_of
from atalanta.management.request.json_text import read_object

if TYPE_CHECKING:
    from atalanta.management.resources.bridge import ListedBridge
    from atalanta.management.resources.registry import ResourceRegistry

ATTRIBUTES: Final = (
    "Name",
    "QueueName",
    "ForwardingAddress",
    "FilterString",
    "TransformerClassName",
    "TransformerPropertiesAsJSON",
    "TransformerProperties",
    "StaticConnectors",
    "DiscoveryGroupName",
    "RetryInterval",
    "RetryIntervalMultiplier",
    "MaxRetryInterval",
    "ReconnectAttempts",
    "UseDuplicateDetection",
    "HA",
    "MessagesPendingAcknowledgement",
    "MessagesAcknowledged",
    "Metrics",
    "Connected",
    "Started",
)
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


class BridgeControl(Control):
    """The control of the core bridges. `broker_operations` are operations of the resource `broker`."""

    def __init__(self, resources: ResourceRegistry) -> None:
        self.resources = resources
        super().__init__(
            {name: self._reader(name) for name in ATTRIBUTES},
            {"start": [("", self.start)], "stop": [("", self.stop)]},
        )
        self.broker_operations: Operations = {
            "createBridge": [
                ("s", self.create_json),
                ("ssSSSldiibilsbbSS", self.create),
                ("ssSSSldiibiilsbbSS", self.create),
                ("ssSSSmldiibiilsbbSS", self.create),
                ("ssSSSSldiibiilsbbSS", self.create),
            ],
            "destroyBridge": [("s", self.destroy)],
            "startBridge": [("s", self.start_named)],
            "stopBridge": [("s", self.stop_named)],
        }

    def select(self, call: Call) -> bool:
        return self.resources.bridges.find(call.name) is not None

    def _reader(self, attribute: str) -> Attribute:
        return lambda call: self.find(call.name).shown()[attribute]

    def find(self, name: str) -> ListedBridge:
        """Returns the bridge. Raises BrokerError if it does not exist."""
        found = self.resources.bridges.find(name)
        if found is None:
            raise BrokerError(ILLEGAL_STATE, f"there is no bridge {name}")
        return found

    def start(self, call: Call, given: Parameters) -> object:
        self.find(call.name).start(call.now)
        return None

    def stop(self, call: Call, given: Parameters) -> object:
        self.find(call.name).stop(call.now)
        return None

    # -- operations of the broker ---------------------------------------------------------------
    def start_named(self, call: Call, given: Parameters) -> object:
        self.find(text_of(given, 0)).start(call.now)
        return None

    def stop_named(self, call: Call, given: Parameters) -> object:
        self.find(text_of(given, 0)).stop(call.now)
        return None

    def create_json(self, call: Call, given: Parameters) -> object:
        """Creates a bridge from BridgeConfiguration as JSON."""
        self.resources.bridges.create(call.now, read_object(text_of(given, 0)))
        return None

    def create(self, call: Call, given: Parameters) -> object:
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
        self.resources.bridges.create(call.now, definition)
        return None

    def destroy(self, call: Call, given: Parameters) -> object:
        self.resources.bridges.destroy(call.now, text_of(given, 0))
        return None
