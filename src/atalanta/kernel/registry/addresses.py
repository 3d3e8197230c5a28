"""Registry of addresses: creation, settings, deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import (
    ADDRESS_DOES_NOT_EXIST,
    ADDRESS_EXISTS,
    ILLEGAL_STATE,
    UNEXPECTED_ROUTING_TYPE,
    BrokerError,
)
from atalanta.kernel.journal import records
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.routing.address import Address
from atalanta.kernel.routing.address_rules import refresh
from atalanta.message.encoding.buffer import Writer

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker


# -- addresses ------------------------------------------------------------------------------------
def create_address(
    broker: Broker,
    name: str,
    anycast: bool,
    multicast: bool,
    auto_created: bool,
    durable: bool = True,
) -> Address:
    """A new address, or BrokerError ADDRESS_EXISTS."""
    if name in broker.addresses:
        raise BrokerError(ADDRESS_EXISTS, f"address {name} already exists")
    if not name or "::" in name:
        raise BrokerError(ILLEGAL_STATE, f"{name!r} is not a name for an address")
    address = Address(name, anycast, multicast, auto_created)
    address.created_at = broker.now
    enter(broker, address)
    if durable:
        store_address(broker, address)
    for observer in broker.observers:
        observer.on_address_added(broker.now, address)
    return address


def enter(broker: Broker, address: Address) -> None:
    """The broker has the address from here on: with its rules, and linked with wildcard addresses."""
    broker.addresses[address.name] = address
    apply_settings(broker, address)
    broker.wildcards.enter(address, broker.addresses)


def leave(broker: Broker, address: Address) -> None:
    """The opposite of `enter`."""
    del broker.addresses[address.name]
    address.gone = True
    broker.wildcards.leave(address, broker.addresses)


def apply_settings(broker: Broker, address: Address) -> None:
    """Limits of its memory and rules for its messages: a new address, or changed settings."""
    account = address.account
    account.apply(broker.settings_of(address.name))
    if address.internal:
        account.shield()
    broker.memory.watch(account)
    refresh(broker, address)


def store_address(broker: Broker, address: Address) -> None:
    writer = Writer()
    writer.simple_string(address.name)
    writer.boolean(address.anycast)
    writer.boolean(address.multicast)
    writer.boolean(address.auto_created)
    address.lsn = broker.journal.append(records.ADDRESS, writer.getvalue())


def ensure_address(
    broker: Broker, name: str, routing_type: int, auto_created: bool, durable: bool
) -> Address:
    """The address with that routing type, created or extended as needed."""
    address = broker.addresses.get(name)
    if address is None:
        return create_address(
            broker, name, routing_type == ANYCAST, routing_type != ANYCAST, auto_created, durable
        )
    if address.add_routing_type(routing_type) and address.lsn > 0:
        store_address(broker, address)
    return address


def delete_address(broker: Broker, name: str) -> None:
    address = broker.addresses.get(name)
    if address is None:
        raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"address {name} does not exist")
    if address.queues():
        raise BrokerError(ILLEGAL_STATE, f"address {name} still has queues")
    if not address.remotes():
        leave(broker, address)
    if address.lsn > 0:
        address.lsn = 0
        writer = Writer()
        writer.simple_string(name)
        broker.journal.append(records.ADDRESS_DELETED, writer.getvalue())
    for observer in broker.observers:
        observer.on_address_removed(broker.now, address)


def check_routing_type(address: Address, routing_type: int) -> None:
    if routing_type in (ANYCAST, MULTICAST) and not address.supports(routing_type):
        kind = "ANYCAST" if routing_type == ANYCAST else "MULTICAST"
        raise BrokerError(
            UNEXPECTED_ROUTING_TYPE, f"address {address.name} does not support {kind}"
        )


def is_bound(broker: Broker, address: Address) -> bool:
    """Whether a queue, here or elsewhere, or a divert of exactly this address needs it."""
    return bool(address.groups) or broker.divert_index.has(address.name)


def _address_may_go(broker: Broker, now: int, address: Address) -> bool:
    settings = broker.settings_of(address.name)
    if not address.auto_created or address.internal or is_bound(broker, address):
        return False
    if not settings.auto_delete_addresses:
        return False
    skip_usage = settings.auto_delete_addresses_skip_usage_check
    if not skip_usage and address.queue_left_at == 0:
        return False
    since = address.created_at if skip_usage else address.queue_left_at
    return now - since >= settings.auto_delete_addresses_delay_ms * 1_000_000
