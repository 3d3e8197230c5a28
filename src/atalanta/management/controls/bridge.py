"""Core bridges: resource `bridge.NAME` (BridgeControl), their creation and removal.

The kernel does not depend on bridges; the owner of the bridges sets `Management.bridges`.
"""

from __future__ import annotations

import json
from typing import Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.request.call import Attribute, Call, Operations, Parameters, text_of

NO_BRIDGES: Final = "this node has no bridges"
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


@mypyc_attr(allow_interpreted_subclasses=True)
class ListedBridge:
    """The interface of one bridge for management."""

    def shown(self) -> dict[str, object]:
        """Returns the attributes under the names of BridgeControl's getters, without get and is."""
        raise NotImplementedError

    def start(self, now: int) -> None:
        raise NotImplementedError

    def stop(self, now: int) -> None:
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class BridgeRegistry:
    """The bridges of the node; this base class has none."""

    def names(self) -> list[str]:
        return []

    def find(self, name: str) -> ListedBridge | None:
        return None

    def create(self, now: int, definition: dict[str, object]) -> None:
        """Creates a bridge from the JSON form of BridgeConfiguration. Raises BrokerError with the reason."""
        raise BrokerError(ILLEGAL_STATE, NO_BRIDGES)

    def destroy(self, now: int, name: str) -> None:
        raise BrokerError(ILLEGAL_STATE, f"there is no bridge {name}")


def bridge_of(call: Call) -> ListedBridge:
    return named(call, call.resource[len("bridge.") :])


def named(call: Call, name: str) -> ListedBridge:
    found = call.management.bridges.find(name)
    if found is None:
        raise BrokerError(ILLEGAL_STATE, f"there is no bridge {name}")
    return found


def shown_as(name: str) -> Attribute:
    return lambda call: bridge_of(call).shown()[name]


BRIDGE_ATTRIBUTES: Final[dict[str, Attribute]] = {
    name: shown_as(name)
    for name in (
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
}


def start(call: Call, given: Parameters) -> object:
    bridge_of(call).start(call.now)
    return None


def stop(call: Call, given: Parameters) -> object:
    bridge_of(call).stop(call.now)
    return None


BRIDGE_OPERATIONS: Final[Operations] = {"start": [("", start)], "stop": [("", stop)]}


def start_named(call: Call, given: Parameters) -> object:
    named(call, text_of(given, 0)).start(call.now)
    return None


def stop_named(call: Call, given: Parameters) -> object:
    named(call, text_of(given, 0)).stop(call.now)
    return None


def create_json(call: Call, given: Parameters) -> object:
    """Creates a bridge from BridgeConfiguration as JSON."""
    try:
        definition = json.loads(text_of(given, 0))
    except (ValueError, RecursionError) as error:
        raise BrokerError(ILLEGAL_STATE, f"not JSON: {error}") from error
    if not isinstance(definition, dict):
        raise BrokerError(ILLEGAL_STATE, "a JSON object is needed")
    call.management.bridges.create(call.now, definition)
    return None


def create(call: Call, given: Parameters) -> object:
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
    call.management.bridges.create(call.now, definition)
    return None


def destroy(call: Call, given: Parameters) -> object:
    call.management.bridges.destroy(call.now, text_of(given, 0))
    return None


BRIDGES_OPERATIONS: Final[Operations] = {
    "createBridge": [
        ("s", create_json),
        ("ssSSSldiibilsbbSS", create),
        ("ssSSSldiibiilsbbSS", create),
        ("ssSSSmldiibiilsbbSS", create),
        ("ssSSSSldiibiilsbbSS", create),
    ],
    "destroyBridge": [("s", destroy)],
    "startBridge": [("s", start_named)],
    "stopBridge": [("s", stop_named)],
}
