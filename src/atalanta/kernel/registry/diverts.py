"""Diverts come and go: those of the configuration, and those management creates, which the journal keeps."""

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
    from atalanta.kernel.broker.broker import Broker

KEY_PREFIX: Final = "divert."


def create_divert(
    broker: Broker, config: DivertConfig, stored: bool, automatic: bool = False
) -> Divert:
    """A divert takes effect at once; `stored` ones survive a restart. BrokerError says what is wrong.

    Follows ActiveMQServerImpl.deployDivert; names are shared with queues, as Artemis' bindings are.
    """
    if not config.name:
        raise BrokerError(ILLEGAL_STATE, "a divert needs a name")
    if config.name in broker.diverts or config.name in broker.queues:
        raise BrokerError(ILLEGAL_STATE, f"a divert or queue {config.name} already exists")
    if not config.address:
        raise BrokerError(ILLEGAL_STATE, f"divert {config.name} needs an address")
    divert = Divert(
        config,
        parse_filter(config.filter_text),
        broker.address_registry.wildcards.pattern(config.address),
        automatic,
    )
    if not divert.targets:
        raise BrokerError(ILLEGAL_STATE, f"divert {config.name} needs a forwarding-address")
    for target in divert.targets:
        if split_fqqn(target)[0] == config.address:
            raise BrokerError(ILLEGAL_STATE, f"divert {config.name} leads to its own address")
    _enter(broker, divert)
    if stored:
        divert.stored = True
        broker.values.set(KEY_PREFIX + divert.name, encode(config))
    _refresh(broker, divert)
    return divert


def update_divert(broker: Broker, config: DivertConfig) -> Divert:
    """Another filter, forwarding address, routing type or other headers; name, address and exclusiveness stay.

    Follows ActiveMQServerImpl.updateDivert. A change of one of the configuration lasts until the next start.
    """
    known = broker.diverts.get(config.name)
    if known is None:
        raise BrokerError(ILLEGAL_STATE, f"divert {config.name} does not exist")
    changed = replace(config, address=known.address, exclusive=known.exclusive)
    _leave(broker, known)
    try:
        return create_divert(broker, changed, known.stored, known.automatic)
    except BrokerError:
        _enter(broker, known)
        raise


def destroy_divert(broker: Broker, now: int, name: str) -> None:
    """It has no effect any more. One of the configuration is there again at the next start, as in Artemis."""
    divert = broker.diverts.get(name)
    if divert is None:
        raise BrokerError(ILLEGAL_STATE, f"divert {name} does not exist")
    _leave(broker, divert)
    if divert.stored:
        broker.values.forget(KEY_PREFIX + name)
    _refresh(broker, divert)
    address = broker.addresses.get(divert.address)
    if address is not None:
        address.queue_left_at = now


def deploy(broker: Broker) -> None:
    """At start: what the journal kept, and what the configuration says (which wins)."""
    for config in broker.config.diverts:
        if config.name not in broker.diverts:
            _deploy(broker, config)
    for key in broker.values.keys(KEY_PREFIX):
        definition = broker.values.get(key)
        if definition is not None and key[len(KEY_PREFIX) :] not in broker.diverts:
            divert = _deploy(broker, decode(definition))
            if divert is not None:
                divert.stored = True


def _deploy(broker: Broker, config: DivertConfig) -> Divert | None:
    try:
        return create_divert(broker, config, False)
    except BrokerError as error:
        broker.trace.event("divert_refused", {"divert": config.name, "why": error.text})
        return None


def _enter(broker: Broker, divert: Divert) -> None:
    broker.diverts[divert.name] = divert
    broker.address_registry.diverts.add(divert)


def _leave(broker: Broker, divert: Divert) -> None:
    del broker.diverts[divert.name]
    broker.address_registry.diverts.remove(divert)


def _refresh(broker: Broker, divert: Divert) -> None:
    exact = broker.addresses.get(divert.address)
    if exact is not None:
        broker.address_registry.refresh_rules(exact)
    if divert.pattern is not None:
        for address in broker.addresses.values():
            if address is not exact and divert.covers(address.name):
                broker.address_registry.refresh_rules(address)


def encode(config: DivertConfig) -> bytes:
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
    """The inverse of `encode`; DecodeError names the field."""
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
