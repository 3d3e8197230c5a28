"""The JSON form of a bridge, for createBridge and for the journal (BridgeConfiguration.toJSON, fromJSON)."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any, Final

from atalanta.cluster.core_bridges.config import CoreBridgeConfig
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.routing.divert_config import ADD_HEADERS

# Names that differ between BridgeConfiguration and broker.xml.
RENAMED: Final = {
    "reconnect-attempts-same-node": "reconnect-attempts-on-same-node",
    "check-period": "client-failure-check-period",
}
IGNORED: Final = ("configuration-managed",)


def described() -> dict[str, Field[Any]]:
    """Returns the fields by JSON name."""
    found: dict[str, Field[Any]] = {}
    for entry in fields(CoreBridgeConfig):
        if entry.metadata:
            name = entry.metadata["xml"]
            found[RENAMED.get(name, name)] = entry
    return found


def definition_of(config: CoreBridgeConfig) -> dict[str, object]:
    """Returns the whole configuration, ready for JSON; the inverse of `config_of`."""
    made: dict[str, object] = {}
    for name, entry in described().items():
        value = getattr(config, entry.name)
        choices = entry.metadata["choices"]
        if choices is not None:
            value = next(text for text, meant in choices.items() if meant == value)
        if value is not None:
            made[name] = value
    if config.filter_text is not None:
        made["filter-string"] = config.filter_text
    if config.discovery_group is not None:
        made["discovery-group-name"] = config.discovery_group
    if config.static_connectors:
        made["static-connectors"] = list(config.static_connectors)
    if config.transformer_class is not None:
        made["transformer-configuration"] = {
            "class-name": config.transformer_class,
            "properties": dict(config.transformer_properties),
        }
    return made


def config_of(definition: dict[str, object]) -> CoreBridgeConfig:
    """Decodes a bridge. Raises BrokerError with the key that is unknown or has an invalid value."""
    config = CoreBridgeConfig()
    known = described()
    for key, value in definition.items():
        entry = known.get(key)
        if value is None or key in IGNORED:
            continue
        if entry is not None:
            setattr(config, entry.name, scalar(key, value, entry))
        elif key == "filter-string":
            config.filter_text = str(value)
        elif key == "discovery-group-name":
            config.discovery_group = str(value)
        elif key == "static-connectors":
            config.static_connectors = names(key, value)
        elif key == "transformer-configuration":
            set_transformer(config, value)
        else:
            raise BrokerError(ILLEGAL_STATE, f"a bridge has no {key}")
    return config


def scalar(key: str, value: object, entry: Field[Any]) -> object:
    """Decodes one value. Numbers and booleans may be texts, as in BridgeConfiguration.set."""
    metadata = entry.metadata
    choices = metadata["choices"]
    if choices is not None:
        if str(value).upper() not in choices:
            raise BrokerError(ILLEGAL_STATE, f"{key}: '{value}' is none of {', '.join(choices)}")
        return choices[str(value).upper()]
    kind = metadata["kind"]
    if kind == "str":
        return str(value)
    if kind == "bool":
        if isinstance(value, bool):
            return value
        return str(value).lower() == "true"
    try:
        number = int(str(value)) if kind == "int" else float(str(value))
    except ValueError as error:
        raise BrokerError(ILLEGAL_STATE, f"{key}: '{value}' is not a number") from error
    low, high = metadata["minimum"], metadata["maximum"]
    if number != number or (low is not None and number < low):
        raise BrokerError(ILLEGAL_STATE, f"{key}: {value} is less than {low}")
    above = metadata["above"]
    if above is not None and number <= above:
        raise BrokerError(ILLEGAL_STATE, f"{key}: {value} is not above {above}")
    if high is not None and number > high:
        raise BrokerError(ILLEGAL_STATE, f"{key}: {value} is more than {high}")
    return number


def names(key: str, value: object) -> list[str]:
    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return list(value)
    raise BrokerError(ILLEGAL_STATE, f"{key} is not a list of names")


def set_transformer(config: CoreBridgeConfig, value: object) -> None:
    if not isinstance(value, dict):
        raise BrokerError(ILLEGAL_STATE, "transformer-configuration is not an object")
    properties = value.get("properties") or {}
    if not isinstance(properties, dict):
        raise BrokerError(ILLEGAL_STATE, "transformer-configuration: properties is not an object")
    config.transformer_class = str(value.get("class-name") or "") or None
    config.transformer_properties = {str(key): str(text) for key, text in properties.items()}
    check_transformer(config.transformer_class)


def check_transformer(name: str | None) -> None:
    """Refuses Java transformers: a name from the wire must not load code."""
    if name is not None and name != ADD_HEADERS:
        raise BrokerError(
            ILLEGAL_STATE, f"the transformer {name} is Java: only {ADD_HEADERS} is known"
        )
