"""The registry of a node's addresses: creation, settings, rules, deletion and the sweep of unused ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import (
    ADDRESS_DOES_NOT_EXIST,
    ADDRESS_EXISTS,
    ILLEGAL_STATE,
    UNEXPECTED_ROUTING_TYPE,
    BrokerError,
)
from atalanta.kernel.journal import records
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.registry.temporary_destinations import TemporaryDestinationRegister
from atalanta.kernel.routing.address import Address
from atalanta.kernel.routing.address_rules import make_rules
from atalanta.kernel.routing.divert import DivertIndex
from atalanta.kernel.routing.retroactive_names import is_resource
from atalanta.kernel.routing.wildcard_addresses import WildcardAddresses
from atalanta.message.encoding.buffer import Writer

if TYPE_CHECKING:
    from atalanta.kernel.command import CurrentCommand
    from atalanta.kernel.memory.memory import Memory
    from atalanta.kernel.observer import Observer
    from atalanta.kernel.ports import JournalPort
    from atalanta.kernel.routing.divert import Divert
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.kernel.settings.repository import AddressSettingsRepository

IMPLIED_MAX: Final = 1_000  # a sender may use any number of names that a wildcard matches


class AddressRegistry:
    """The addresses by name, their links with wildcard addresses, and the diverts of each.

    `implied`: addresses that do not exist, but that diverts or wildcard addresses make routable. They are found again
    after each change.
    """

    def __init__(
        self,
        config: BrokerConfig,
        settings: AddressSettingsRepository,
        journal: JournalPort,
        memory: Memory,
        observers: list[Observer],
        command: CurrentCommand,
    ) -> None:
        self.config = config
        self.command = command
        self.settings = settings
        self.journal = journal
        self.memory = memory
        self.observers = observers
        self.by_name: dict[str, Address] = {}
        self.temporaries = TemporaryDestinationRegister(self.by_name, settings)
        settings.temporaries = self.temporaries
        self.wildcards = WildcardAddresses(
            config.wildcard,
            [config.management_address, config.management_notification_address],
            config.internal_naming_prefix,
        )
        self.diverts = DivertIndex()
        self.implied: dict[str, Address] = {}

    def routable(self, name: str) -> Address | None:
        """Returns the address that messages to the name are routed at; None if nothing is bound to it.

        A divert alone makes its address routable, and so does a wildcard address that matches
        (getBindingsForRoutingAddress). Such an address is in no list and not stored.
        """
        address = self.by_name.get(name)
        if address is None:
            address = self.implied.get(name)
        if address is not None:
            return address
        address = Address(name, False, False, True)
        self.wildcards.join(address)
        self.refresh_rules(address)
        if address.wildcards is None and (address.rules is None or not address.rules.divert()):
            return None
        if len(self.implied) >= IMPLIED_MAX:
            self.implied.clear()
        self.implied[name] = address
        return address

    def create(
        self,
        now: int,
        name: str,
        anycast: bool,
        multicast: bool,
        auto_created: bool,
        durable: bool = True,
    ) -> Address:
        """Creates an address. BrokerError ADDRESS_EXISTS; ILLEGAL_STATE for a name that cannot be used."""
        if name in self.by_name:
            raise BrokerError(ADDRESS_EXISTS, f"AMQ229204: address {name} already exists")
        if not name or "::" in name:
            raise BrokerError(ILLEGAL_STATE, f"{name!r} is not a name for an address")
        self.command.begin_change()
        address = Address(name, anycast, multicast, auto_created)
        address.created_at = now
        self.add(address)
        if durable:
            self.store(address)
        for observer in self.observers:
            observer.on_address_added(now, address)
        return address

    def ensure(
        self, now: int, name: str, routing_type: int, auto_created: bool, durable: bool
    ) -> Address:
        """Returns the address with that routing type, created or extended as needed."""
        address = self.by_name.get(name)
        if address is None:
            return self.create(
                now, name, routing_type == ANYCAST, routing_type != ANYCAST, auto_created, durable
            )
        self.command.begin_change()
        if address.add_routing_type(routing_type) and address.lsn > 0:
            self.store(address)
        return address

    def delete(self, now: int, name: str) -> None:
        """Deletes an address. BrokerError if it does not exist or still has queues.

        An address with queues of other nodes stays, but is no longer in the journal.
        """
        address = self.by_name.get(name)
        if address is None:
            raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"AMQ229203: address {name} does not exist")
        if address.queues():
            raise BrokerError(ILLEGAL_STATE, f"AMQ229205: address {name} still has queues")
        self.command.begin_change()
        if not address.remotes():
            self.remove(address)
        if address.lsn > 0:
            address.lsn = 0
            writer = Writer()
            writer.simple_string(name)
            self.journal.append(records.ADDRESS_DELETED, writer.getvalue())
        for observer in self.observers:
            observer.on_address_removed(now, address)

    def add(self, address: Address) -> None:
        """Adds an address with its settings and rules, and links it with wildcard addresses."""
        self.command.begin_change()
        self.by_name[address.name] = address
        self.implied.clear()
        self.apply_settings(address)
        self.wildcards.enter(address, self.by_name)

    def add_all(self, addresses: list[Address]) -> None:
        """Adds the addresses that a recovery has read."""
        self.command.begin_change()
        for address in addresses:
            self.by_name[address.name] = address
            self.apply_settings(address)
        self.wildcards.enter_all(addresses)

    def remove(self, address: Address) -> None:
        """Removes what `add` added."""
        self.command.begin_change()
        del self.by_name[address.name]
        address.gone = True
        self.memory.end_account(address.account)
        self.implied.clear()
        self.wildcards.leave(address, self.by_name)

    def store(self, address: Address) -> None:
        """Writes the address to the journal."""
        writer = Writer()
        writer.simple_string(address.name)
        writer.boolean(address.anycast)
        writer.boolean(address.multicast)
        writer.boolean(address.auto_created)
        address.lsn = self.journal.append(records.ADDRESS, writer.getvalue())

    # -- diverts ------------------------------------------------------------------------------------
    def add_divert(self, divert: Divert) -> None:
        """Adds a divert: the addresses that it covers divert to it from now on."""
        self.command.begin_change()
        self.diverts.add(divert)
        self._refresh_covered(divert)

    def remove_divert(self, divert: Divert) -> None:
        """Removes a divert from its addresses."""
        self.command.begin_change()
        self.diverts.remove(divert)
        self._refresh_covered(divert)

    def _refresh_covered(self, divert: Divert) -> None:
        self.implied.clear()
        exact = self.by_name.get(divert.address)
        if exact is not None:
            self.refresh_rules(exact)
        if divert.pattern is not None:
            for address in self.by_name.values():
                if address is not exact and divert.covers(address.name):
                    self.refresh_rules(address)

    # -- settings -----------------------------------------------------------------------------------
    def apply_settings(self, address: Address) -> None:
        """Applies memory limits and rules: of a new address, or after settings have changed."""
        account = address.account
        account.apply(self.settings.match(address.name))
        if address.internal:
            account.lift_policies()
        self.memory.apply_limits(account)
        self.refresh_rules(address)

    def refresh_rules(self, address: Address) -> None:
        """Sets the rules of one address to the present settings and diverts."""
        name = address.name
        # The copies of a retroactive address were diverted once, at the address they were sent to.
        diverts = self.diverts.of(name, not is_resource(self.config, name))
        if self.wildcards.hides(name):
            diverts = [divert for divert in diverts if not divert.automatic]
        address.set_rules(make_rules(self.settings.match(name), diverts))

    def kept_messages(self, name: str) -> int:
        """Returns `retroactive-message-count` of that address name; 0 for the broker's own addresses."""
        if name.startswith(self.config.internal_naming_prefix):
            return 0
        return self.settings.match(name).retroactive_message_count

    # -- the sweep ----------------------------------------------------------------------------------
    def is_bound(self, address: Address) -> bool:
        """Returns True if a queue, here or elsewhere, or a divert of exactly this address needs it."""
        return bool(address.groups) or self.diverts.has(address.name)

    def sweep_at_start(self, now: int) -> None:
        """Deletes automatic addresses without queues, used or not (PostOfficeImpl.reapAddresses(true))."""
        for address in list(self.by_name.values()):
            if self._is_automatic(address):
                self.delete(now, address.name)

    def sweep(self, now: int) -> None:
        """Deletes automatic addresses that were found unused twice (PostOfficeImpl.reapAddresses)."""
        for address in list(self.by_name.values()):
            if not self._is_unused(now, address):
                address.swept = False
            elif address.swept:
                self.delete(now, address.name)
            else:
                address.swept = True

    def delete_with_queue(self, now: int, address: Address) -> None:
        """Deletes an automatic address with its last queue.

        That is an address that a temporary queue has created, or one with `auto-delete-addresses-delay` 0.
        """
        if not address.auto_created or address.name not in self.by_name or self.is_bound(address):
            return
        settings = self.settings.match(address.name)
        at_once = settings.auto_delete_addresses and settings.auto_delete_addresses_delay_ms == 0
        if at_once or address.temporary:
            self.delete(now, address.name)

    def _is_automatic(self, address: Address) -> bool:
        if not address.auto_created or address.internal or self.is_bound(address):
            return False
        return self.settings.match(address.name).auto_delete_addresses

    def _is_unused(self, now: int, address: Address) -> bool:
        if not self._is_automatic(address):
            return False
        settings = self.settings.match(address.name)
        skip_usage = settings.auto_delete_addresses_skip_usage_check
        if not skip_usage and address.queue_left_at == 0:
            return False
        since = address.created_at if skip_usage else address.queue_left_at
        return now - since >= settings.auto_delete_addresses_delay_ms * 1_000_000


def check_routing_type(address: Address, routing_type: int) -> None:
    """Raises BrokerError UNEXPECTED_ROUTING_TYPE if the address does not have that routing type."""
    if routing_type in (ANYCAST, MULTICAST) and not address.supports(routing_type):
        kind = "ANYCAST" if routing_type == ANYCAST else "MULTICAST"
        raise BrokerError(
            UNEXPECTED_ROUTING_TYPE, f"address {address.name} does not support {kind}"
        )


def unsupported(address: Address, routing_type: int) -> str:
    """Returns the text of a refusal to create a queue, as the address has at most the other routing type."""
    kind, other = ("ANYCAST", "MULTICAST") if routing_type == ANYCAST else ("MULTICAST", "ANYCAST")
    return (
        f"AMQ229207: Can not create queue with routing type: {kind}, Supported routing types for address: "
        f"{address.name} are [{other if address.anycast or address.multicast else ''}]"
    )
