"""Diverts: their attributes (resource `divert.NAME`, DivertControl), their creation and removal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.routing.divert_config import ADD_HEADERS, ROUTING_TYPES, DivertConfig
from atalanta.kernel.routing.retroactive_names import is_resource
from atalanta.management.controls.control import Control
from atalanta.management.request.call import (
    Call,
    Operations,
    Parameters,
    flag_of,
    optional_text,
    text_of,
)
from atalanta.management.request.json_text import encode_json, read_object

if TYPE_CHECKING:
    from atalanta.kernel.registry.diverts import DivertRegistry
    from atalanta.kernel.routing.divert import Divert
    from atalanta.kernel.settings.broker_config import BrokerConfig


class DivertControl(Control):
    """The control of the diverts. `broker_operations` are operations of the resource `broker`."""

    def __init__(self, config: BrokerConfig, diverts: DivertRegistry) -> None:
        self.diverts = diverts
        super().__init__(
            {
                "UniqueName": lambda call: call.divert.name,
                "RoutingName": lambda call: call.divert.config.routing_name or call.divert.name,
                "Address": lambda call: call.divert.address,
                "ForwardingAddress": lambda call: call.divert.config.forwarding_address,
                "Filter": lambda call: call.divert.config.filter_text,
                "Exclusive": lambda call: call.divert.exclusive,
                "RoutingType": lambda call: routing_type_name(call.divert),
                "TransformerClassName": lambda call: (
                    ADD_HEADERS if call.divert.config.headers else None
                ),
                "TransformerProperties": lambda call: dict(call.divert.config.headers),
                "TransformerPropertiesAsJSON": lambda call: encode_json(call.divert.config.headers),
                "RetroactiveResource": lambda call: is_resource(config, call.divert.name),
            },
            {},
        )
        self.broker_operations: Operations = {
            "createDivert": [
                ("s", self.create_json),
                ("sSssbSS", self.create),
                ("sSssbSSm", self.create),
                ("sSssbSSS", self.create),
                ("sSssbSSmS", self.create),
                ("sSssbSSSS", self.create),
            ],
            "updateDivert": [("s", self.update_json), ("sSSSmS", self.update)],
            "destroyDivert": [("s", self.destroy)],
            "listDivertNames": [("", lambda call, given: list(self.diverts.by_name))],
        }

    def select(self, call: Call) -> bool:
        call.given_divert = self.diverts.by_name.get(call.name)
        return call.given_divert is not None

    def create(self, call: Call, given: Parameters) -> object:
        """Creates a divert.

        (name, routingName, address, forwardingAddress, exclusive, filter, transformerClassName [, properties
        [, routingType]]).
        """
        config = DivertConfig()
        config.name = text_of(given, 0)
        config.routing_name = optional_text(given, 1)
        config.address = text_of(given, 2)
        config.forwarding_address = text_of(given, 3)
        config.exclusive = flag_of(given, 4)
        config.filter_text = optional_text(given, 5)
        check_transformer(optional_text(given, 6))
        if len(given) > 7:
            config.headers = headers_of(given[7])
        if len(given) > 8:
            config.routing_type = routing_type_of(optional_text(given, 8))
        self.diverts.create(config, True)
        return None

    def create_json(self, call: Call, given: Parameters) -> object:
        """Creates a divert from DivertConfiguration as JSON."""
        definition = read_object(text_of(given, 0))
        config = DivertConfig()
        config.name = str(definition.get("name") or "")
        config.address = str(definition.get("address") or "")
        config.forwarding_address = str(definition.get("forwarding-address") or "")
        config.exclusive = str(definition.get("exclusive", False)).lower() == "true"
        take_definition(config, definition)
        self.diverts.create(config, True)
        return None

    def update(self, call: Call, given: Parameters) -> object:
        """Updates a divert: (name, forwardingAddress, filter, transformerClassName, properties, routingType).

        A null leaves every value but the filter unchanged (ActiveMQServerImpl.updateDivert).
        """
        config = self.known_config(text_of(given, 0))
        forwarding = optional_text(given, 1)
        if forwarding is not None:
            config.forwarding_address = forwarding
        config.filter_text = optional_text(given, 2)
        name = optional_text(given, 3)
        if name is not None and name.strip():
            check_transformer(name)
            config.headers = headers_of(given[4])
        routing_type = optional_text(given, 5)
        if routing_type is not None:
            config.routing_type = routing_type_of(routing_type)
        self.diverts.update(config)
        return None

    def update_json(self, call: Call, given: Parameters) -> object:
        """Updates a divert from DivertConfiguration as JSON. Defaults: no filter, routing type STRIP."""
        definition = read_object(text_of(given, 0))
        config = self.known_config(str(definition.get("name") or ""))
        forwarding = definition.get("forwarding-address")
        if forwarding is not None:
            config.forwarding_address = str(forwarding)
        take_definition(config, definition)
        self.diverts.update(config)
        return None

    def known_config(self, name: str) -> DivertConfig:
        """Returns a copy of the divert's configuration. Raises BrokerError if the divert does not exist."""
        divert = self.diverts.by_name.get(name)
        if divert is None:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229231: Divert Does Not Exist: {name}")
        return replace(divert.config, headers=dict(divert.config.headers))

    def destroy(self, call: Call, given: Parameters) -> object:
        self.diverts.delete(call.now, text_of(given, 0))
        return None


def routing_type_name(divert: Divert) -> str:
    for name, value in ROUTING_TYPES.items():
        if value == divert.routing_type:
            return name
    return str(divert.routing_type)


def routing_type_of(name: str | None) -> int:
    value = ROUTING_TYPES.get("STRIP" if name is None else name.upper())
    if value is None:
        raise BrokerError(ILLEGAL_STATE, f"a divert has no routing type {name}")
    return value


def check_transformer(name: str | None) -> None:
    if name is not None and name.strip() and name != ADD_HEADERS:
        raise BrokerError(
            ILLEGAL_STATE, f"the transformer {name} is a Java class: only {ADD_HEADERS} is supported"
        )


def take_definition(config: DivertConfig, definition: dict[str, object]) -> None:
    """Copies filter, routing type and transformer of a DivertConfiguration into `config`."""
    filter_text = definition.get("filter-string")
    config.filter_text = None if filter_text is None else str(filter_text)
    kind = definition.get("routing-type")
    config.routing_type = routing_type_of(None if kind is None else str(kind))
    described = definition.get("transformer-configuration")
    if isinstance(described, dict):
        check_transformer(str(described.get("class-name") or ""))
        config.headers = headers_of(described.get("properties"))


def headers_of(given: object) -> dict[str, str]:
    """Returns the properties of AddHeadersTransformer, given as a map or as JSON text."""
    if isinstance(given, str):
        given = read_object(given)
    if not isinstance(given, dict):
        return {}
    return {str(name): str(value) for name, value in given.items()}
