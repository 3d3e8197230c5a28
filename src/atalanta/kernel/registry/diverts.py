"""The registry of a node's diverts: configured ones, and those that management creates and the journal keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.registry.queues import parse_filter
from atalanta.kernel.routing.divert import Divert
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from collections.abc import Container

    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.settings.broker_config import BrokerConfig

KEY_PREFIX: Final = "divert."


class DivertRegistry:
    """The diverts of a node by name. A divert takes effect at once, and only on this node.

    `queues`: the queues by name, because diverts and queues share their names as Artemis' bindings do.
    """

    def __init__(
        self,
        config: BrokerConfig,
        addresses: AddressRegistry,
        queues: Container[str],
        values: NamedValues,
        trace: Trace,
    ) -> None:
        self.config = config
        self.addresses = addresses
        self.queues = queues
        self.values = values
        self.trace = trace
        self.by_name: dict[str, Divert] = {}

    def create(self, config: DivertConfig, stored: bool, automatic: bool = False) -> Divert:
        """Creates a divert; `stored` ones survive a restart (ActiveMQServerImpl.deployDivert).

        BrokerError says which part of the definition cannot be used.
        """
        if not config.name:
            raise BrokerError(ILLEGAL_STATE, "AMQ229015: a divert needs a name")
        if config.name in self.by_name or config.name in self.queues:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229235: a divert or queue {config.name} already exists")
        if not config.address:
            raise BrokerError(ILLEGAL_STATE, f"divert {config.name} needs an address")
        divert = Divert(
            config,
            parse_filter(config.filter_text),
            self.addresses.wildcards.pattern(config.address),
            automatic,
        )
        if not divert.targets:
            raise BrokerError(ILLEGAL_STATE, f"divert {config.name} needs a forwarding-address")
        for target in divert.targets:
            if split_fqqn(target)[0] == config.address:
                raise BrokerError(ILLEGAL_STATE, f"divert {config.name} leads to its own address")
        self._add(divert)
        if stored:
            divert.stored = True
            self.values.set(KEY_PREFIX + divert.name, encode(config))
        return divert

    def update(self, config: DivertConfig) -> Divert:
        """Changes the filter, forwarding address, routing type or headers; name, address and exclusiveness stay.

        Follows ActiveMQServerImpl.updateDivert. The change of a configured divert lasts until the next start.
        """
        known = self.by_name.get(config.name)
        if known is None:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229231: divert {config.name} does not exist")
        changed = replace(config, address=known.address, exclusive=known.exclusive)
        self._remove(known)
        try:
            return self.create(changed, known.stored, known.automatic)
        except BrokerError:
            self._add(known)
            raise

    def delete(self, now: int, name: str) -> None:
        """Deletes a divert. The next start creates a configured one again, as in Artemis."""
        divert = self.by_name.get(name)
        if divert is None:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229231: divert {name} does not exist")
        self._remove(divert)
        if divert.stored:
            self.values.forget(KEY_PREFIX + name)
        address = self.addresses.by_name.get(divert.address)
        if address is not None:
            address.queue_left_at = now

    def of(self, address: str) -> list[Divert]:
        """Returns the diverts of the address and of the wildcard addresses that match it."""
        return self.addresses.diverts.of(address, True)

    def deploy(self) -> None:
        """Creates the configured diverts, and the stored ones whose names the configuration does not use."""
        for config in self.config.diverts:
            if config.name not in self.by_name:
                self._deploy(config)
        for key in self.values.keys(KEY_PREFIX):
            definition = self.values.get(key)
            if definition is not None and key[len(KEY_PREFIX) :] not in self.by_name:
                divert = self._deploy(decode(definition))
                if divert is not None:
                    divert.stored = True

    def _deploy(self, config: DivertConfig) -> Divert | None:
        try:
            return self.create(config, False)
        except BrokerError as error:
            self.trace.event("divert_refused", {"divert": config.name, "why": error.text})
            return None

    def _add(self, divert: Divert) -> None:
        self.addresses.command.begin_change()
        self.by_name[divert.name] = divert
        self.addresses.add_divert(divert)

    def _remove(self, divert: Divert) -> None:
        self.addresses.command.begin_change()
        del self.by_name[divert.name]
        self.addresses.remove_divert(divert)


def encode(config: DivertConfig) -> bytes:
    """Encodes a divert as the value that the journal keeps."""
    writer = Writer()
    writer.simple_string(config.name)
    writer.simple_string(config.address)
    writer.simple_string(config.forwarding_address)
    writer.int8(config.routing_type)
    writer.boolean(config.exclusive)
    writer.nullable_simple_string(config.filter_text)
    writer.nullable_simple_string(config.routing_name)
    writer.int32(len(config.headers))
    for name, value in config.headers.items():
        writer.simple_string(name)
        writer.simple_string(value)
    return writer.getvalue()


def decode(data: bytes) -> DivertConfig:
    """Decodes a value that `encode` wrote; DecodeError names the field."""
    reader = Reader(data)
    config = DivertConfig()
    config.name = reader.simple_string("divert.name")
    config.address = reader.simple_string("divert.address")
    config.forwarding_address = reader.simple_string("divert.forwarding_address")
    config.routing_type = reader.int8("divert.routing_type")
    config.exclusive = reader.boolean("divert.exclusive")
    config.filter_text = reader.nullable_simple_string("divert.filter")
    config.routing_name = reader.nullable_simple_string("divert.routing_name")
    count = reader.int32("divert.headers")
    if count < 0:
        raise DecodeError("divert.headers", 0, f"count {count}")
    for _ in range(count):
        name = reader.simple_string("divert.header")
        config.headers[name] = reader.simple_string("divert.header_value")
    return config
