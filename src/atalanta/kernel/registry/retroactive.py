"""Retroactive addresses: they keep their last messages for queues that come later (retroactive-message-count).

Follows PostOfficeImpl.createRetroactiveResources: a divert of the address leads to an address of the broker's own,
below which two rings lie, one for each routing type; an ordinary message of an ordinary address notices nothing.
Differences: what is missing is made, and what is not wanted any more goes, also when settings change while the address
is there; an address that goes with a temporary queue keeps nothing; clustering does not tell the rings to peers, so
that each node keeps what was sent to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.observer import Observer
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.kernel.routing.divert_config import PASS, DivertConfig
from atalanta.kernel.routing.retroactive_names import SUFFIX, Retained, is_resource

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.settings.broker_config import BrokerConfig


class ResourceNames:
    """`<internal-naming-prefix><address>.(address|divert|queue.multicast|queue.anycast).retro` (ResourceNames)."""

    def __init__(self, config: BrokerConfig, address: str) -> None:
        delimiter = config.wildcard.delimiter
        begin = f"{config.internal_naming_prefix}{address}{delimiter}"
        end = f"{delimiter}{SUFFIX}"
        self.address = f"{begin}address{end}"
        self.divert = f"{begin}divert{end}"
        self.multicast = f"{begin}queue{delimiter}multicast{end}"
        self.anycast = f"{begin}queue{delimiter}anycast{end}"


def source_of(config: BrokerConfig, name: str) -> str | None:
    """The retroactive address whose messages the address `name` keeps."""
    delimiter = config.wildcard.delimiter
    end = f"{delimiter}address{delimiter}{SUFFIX}"
    if not is_resource(config, name) or not name.endswith(end):
        return None
    return name[len(config.internal_naming_prefix) : len(name) - len(end)]


class Retroactive(Observer):
    """Addresses come and go: with them what is made for them."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def on_address_added(self, now: int, address: Address) -> None:
        count = self.broker.address_registry.kept_messages(address.name)
        if count > 0 and address.lsn > 0:
            provide(self.broker, now, address, count)

    def on_address_removed(self, now: int, address: Address) -> None:
        if address.retained is not None:
            take_away(self.broker, now, address.name)


def deploy(broker: Broker, now: int) -> None:
    """At start and when settings have changed: every address as its settings say now."""
    for address in list(broker.addresses.values()):
        keep(broker, now, address)
    for name in list(broker.addresses):
        source = source_of(broker.config, name)
        if source is not None:
            owner = broker.addresses.get(source)
            if owner is None or _wanted(broker, owner) == 0:
                take_away(broker, now, source)


def keep(broker: Broker, now: int, address: Address) -> None:
    """As many messages as its settings say, if any."""
    count = _wanted(broker, address)
    if count > 0:
        provide(broker, now, address, count)


def adopt(broker: Broker, now: int, address: Address) -> None:
    """Somebody is going to send to an address that only peers have told of so far: it keeps that, too."""
    if address.lsn == 0 and not address.internal and address.remotes():
        count = broker.address_registry.kept_messages(address.name)
        if count > 0:
            provide(broker, now, address, count)


def _wanted(broker: Broker, address: Address) -> int:
    """Not of an address that goes with its temporary queue, or that only peers use."""
    if address.internal:
        return 0
    if address.lsn == 0 and not (address.remotes() and address.routed + address.unrouted > 0):
        return 0
    return broker.address_registry.kept_messages(address.name)


def provide(broker: Broker, now: int, address: Address, count: int) -> None:
    """The address keeps its last `count` messages from here on; what is there already stays."""
    if address.lsn == 0:
        broker.address_registry.store(address)
    names = ResourceNames(broker.config, address.name)
    try:
        _make_address(broker, names.address)
        multicast = _make_ring(broker, now, names.multicast, names.address, MULTICAST, count)
        anycast = _make_ring(broker, now, names.anycast, names.address, ANYCAST, count)
        address.retained = Retained(multicast, anycast)
        if names.divert not in broker.diverts.by_name:
            config = DivertConfig(
                name=names.divert,
                address=address.name,
                forwarding_address=names.address,
                routing_type=PASS,
            )
            broker.diverts.create(config, False, True)
    except BrokerError as error:
        broker.trace.event("retroactive_refused", {"address": address.name, "why": error.text})


def _make_address(broker: Broker, name: str) -> None:
    known = broker.addresses.get(name)
    if known is None:
        broker.address_registry.create(broker.now, name, True, True, False)
        return
    added = known.add_routing_type(ANYCAST)
    if known.add_routing_type(MULTICAST) or added or known.lsn == 0:
        broker.address_registry.store(known)


def _make_ring(
    broker: Broker, now: int, name: str, address: str, routing_type: int, count: int
) -> Queue:
    """Nobody may consume from it. What a smaller ring has no room for goes at once."""
    known = broker.queues.get(name)
    if known is None:
        spec = QueueSpec(name, address, routing_type)
        spec.take_defaults(broker.settings_of(address))
        spec.auto_delete = False
        spec.max_consumers = 0
        spec.ring_size = count
        return broker.queue_registry.create(now, spec)
    if known.spec.address != address or known.spec.routing_type != routing_type:
        raise BrokerError(ILLEGAL_STATE, f"queue {name} is a queue of {known.spec.address}")
    if known.spec.ring_size != count:
        changes = QueueChanges()
        changes.ring_size = count
        broker.queue_registry.update(now, name, changes)
    return known


def take_away(broker: Broker, now: int, name: str) -> None:
    """The address of that name, if it is there, keeps nothing any more."""
    address = broker.addresses.get(name)
    if address is not None:
        address.retained = None
    names = ResourceNames(broker.config, name)
    try:
        divert = broker.diverts.by_name.get(names.divert)
        if divert is not None and divert.automatic:
            broker.diverts.delete(now, names.divert)
        for queue in (names.multicast, names.anycast):
            if queue in broker.queues:
                broker.queue_registry.delete(now, queue, "its address keeps nothing any more")
        if names.address in broker.addresses:
            broker.address_registry.delete(broker.now, names.address)
    except BrokerError as error:
        broker.trace.event("retroactive_refused", {"address": name, "why": error.text})
