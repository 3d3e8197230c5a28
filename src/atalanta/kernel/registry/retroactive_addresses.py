"""Retroactive addresses keep their last messages for queues that are created later (retroactive-message-count).

Follows PostOfficeImpl.createRetroactiveResources: a divert leads from the address to an internal address with two
ring queues, one for each routing type. Ordinary addresses are not affected.
Differences from Artemis: the resources are also created and deleted when settings change while the address exists.
The address of a temporary queue keeps no messages. The cluster does not announce the rings to peers, so that
each node keeps the messages that were sent to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.observer import Observer
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.kernel.routing.divert_config import PASS, DivertConfig
from atalanta.kernel.routing.retroactive_names import MARK, SUFFIX, Retained, is_resource

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.registry.diverts import DivertRegistry
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.kernel.settings.repository import AddressSettingsRepository


class ResourceNames:
    """Artemis' names: `<internal-naming-prefix><address>.(address|divert|queue.multicast|queue.anycast).retro`."""

    def __init__(self, config: BrokerConfig, address: str) -> None:
        delimiter = config.wildcard.delimiter
        begin = f"{config.internal_naming_prefix}{address}{delimiter}"
        end = f"{delimiter}{SUFFIX}"
        self.address = f"{begin}address{end}"
        self.divert = f"{begin}divert{end}"
        self.multicast = f"{begin}queue{delimiter}multicast{end}"
        self.anycast = f"{begin}queue{delimiter}anycast{end}"


def source_of(config: BrokerConfig, name: str) -> str | None:
    """Returns the retroactive address whose messages the address `name` keeps."""
    delimiter = config.wildcard.delimiter
    end = f"{delimiter}address{delimiter}{SUFFIX}"
    if not is_resource(config, name) or not name.endswith(end):
        return None
    return name[len(config.internal_naming_prefix) : len(name) - len(end)]


class RetroactiveAddresses(Observer):
    """Creates and deletes the retroactive resources together with their addresses."""

    def __init__(
        self,
        config: BrokerConfig,
        addresses: AddressRegistry,
        queues: QueueRegistry,
        diverts: DivertRegistry,
        settings: AddressSettingsRepository,
        trace: Trace,
    ) -> None:
        self.config = config
        self.addresses = addresses
        self.queues = queues
        self.diverts = diverts
        self.settings = settings
        self.trace = trace

    def on_address_added(self, now: int, address: Address) -> None:
        count = self.addresses.kept_messages(address.name)
        if count > 0 and address.lsn > 0:
            self._provide(now, address, count)

    def on_address_removed(self, now: int, address: Address) -> None:
        if address.retained is not None:
            self._remove(now, address.name)

    def deploy(self, now: int) -> None:
        """Adjusts every address to its settings, at the start and after settings have changed."""
        by_name = self.addresses.by_name
        for address in list(by_name.values()):
            self.keep(now, address)
        for name in list(by_name):
            source = source_of(self.config, name)
            if source is not None:
                owner = by_name.get(source)
                if owner is None or self._wanted(owner) == 0:
                    self._remove(now, source)

    def keep(self, now: int, address: Address) -> None:
        """Makes the address keep as many messages as its settings say, if any."""
        count = self._wanted(address)
        if count > 0:
            self._provide(now, address, count)

    def adopt(self, now: int, address: Address) -> None:
        """Makes an address that only peers used keep its messages too, because a local sender is about to use it."""
        if address.lsn == 0 and not address.internal and address.remotes():
            count = self.addresses.kept_messages(address.name)
            if count > 0:
                self._provide(now, address, count)

    def _wanted(self, address: Address) -> int:
        """Returns the number of messages to keep; 0 for the address of a temporary queue, or one that only peers use.
        """
        if address.internal:
            return 0
        used = address.routed + address.unrouted > 0
        if address.lsn == 0 and not (address.remotes() and used):
            return 0
        return self.addresses.kept_messages(address.name)

    def _provide(self, now: int, address: Address, count: int) -> None:
        """Makes the address keep its last `count` messages from now on; existing resources stay."""
        if address.lsn == 0:
            self.addresses.store(address)
        names = ResourceNames(self.config, address.name)
        try:
            self._make_address(now, names.address)
            multicast = self._make_ring(now, names.multicast, names.address, MULTICAST, count)
            anycast = self._make_ring(now, names.anycast, names.address, ANYCAST, count)
            address.retained = Retained(multicast, anycast)
            marked_only = self.settings.match(address.name).retroactive_marked_only
            config = DivertConfig(
                name=names.divert,
                address=address.name,
                forwarding_address=names.address,
                routing_type=PASS,
                marked_by=MARK if marked_only else "",
            )
            known = self.diverts.by_name.get(names.divert)
            if known is None:
                self.diverts.create(config, False, True)
            elif known.automatic and known.marked_by != config.marked_by:
                self.diverts.update(config)
        except BrokerError as error:
            self._report(address.name, error)

    def _make_address(self, now: int, name: str) -> None:
        known = self.addresses.by_name.get(name)
        if known is None:
            self.addresses.create(now, name, True, True, False)
            return
        added = known.add_routing_type(ANYCAST)
        if known.add_routing_type(MULTICAST) or added or known.lsn == 0:
            self.addresses.store(known)

    def _make_ring(
        self, now: int, name: str, address: str, routing_type: int, count: int
    ) -> Queue:
        """Creates a ring queue that no client may consume from. A smaller ring drops its surplus messages at once."""
        known = self.queues.by_name.get(name)
        if known is None:
            spec = QueueSpec(name, address, routing_type)
            spec.take_defaults(self.settings.match(address))
            spec.auto_delete = False
            spec.max_consumers = 0
            spec.ring_size = count
            return self.queues.create(now, spec)
        if known.spec.address != address or known.spec.routing_type != routing_type:
            raise BrokerError(ILLEGAL_STATE, f"queue {name} is a queue of {known.spec.address}")
        if known.spec.ring_size != count:
            changes = QueueChanges()
            changes.ring_size = count
            self.queues.update(now, name, changes)
        return known

    def _remove(self, now: int, name: str) -> None:
        """Removes the retroactive resources of the address, if it exists."""
        address = self.addresses.by_name.get(name)
        if address is not None:
            address.retained = None
        names = ResourceNames(self.config, name)
        try:
            divert = self.diverts.by_name.get(names.divert)
            if divert is not None and divert.automatic:
                self.diverts.delete(now, names.divert)
            for queue in (names.multicast, names.anycast):
                if queue in self.queues.by_name:
                    self.queues.delete(now, queue, "its address keeps nothing any more")
            if names.address in self.addresses.by_name:
                self.addresses.delete(now, names.address)
        except BrokerError as error:
            self._report(name, error)

    def _report(self, address: str, error: BrokerError) -> None:
        self.trace.event("retroactive_refused", {"address": address, "why": error.text})
