"""The automatic creation of addresses and queues with the first message sent to them.

Follows ServerSessionImpl.checkAutoCreate. A user without the permission is refused before any change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import (
    ADDRESS_DOES_NOT_EXIST,
    UNEXPECTED_ROUTING_TYPE,
    BrokerError,
)
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.kernel.registry.addresses import check_routing_type
from atalanta.kernel.routing.bindings import ON_DEMAND, STRICT
from atalanta.message.fqqn import split_fqqn
from atalanta.message.message import ROUTE_TO

if TYPE_CHECKING:
    from atalanta.kernel.registry.retroactive_addresses import RetroactiveAddresses
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.security.security import Identity
    from atalanta.kernel.sessions.session_queues import QueueOwner, SessionQueues
    from atalanta.message.message import Message

SEND_ADDRESSES_MAX: Final = 1_000  # cached permissions to send, per session


class SendAddresses:
    """The addresses that a session may send to, by the name in its messages; None for an unknown one or an FQQN.

    They are valid for this version of the security rules.
    """

    def __init__(self, rules_version: int) -> None:
        self.by_name: dict[str, Address | None] = {}
        self.rules_version = rules_version


class AutoCreation:
    """Checks the permission to send, and creates missing addresses and queues."""

    def __init__(self, queues: SessionQueues, retroactive: RetroactiveAddresses) -> None:
        self.queues = queues
        self.queue_registry = queues.registry
        self.addresses = queues.addresses
        self.permissions = queues.permissions
        self.security = queues.permissions.security
        self.retroactive = retroactive

    def prepare(
        self,
        now: int,
        identity: Identity,
        owner: QueueOwner,
        known: SendAddresses,
        message: Message,
    ) -> Address | None:
        """Returns the address for the message's name, created if need be; None if the name is an FQQN.

        An address without any local queue gets its anycast queue with the message, even if it was deleted before.
        """
        name = message.address
        if known.rules_version != self.security.version:
            known.rules_version = self.security.version
            known.by_name.clear()
        try:
            self._prepare(now, identity, owner, known, message)
        finally:
            if name in known.by_name:
                known.by_name[name] = self.addresses.by_name.get(name)
        return known.by_name[name]

    def _prepare(
        self,
        now: int,
        identity: Identity,
        owner: QueueOwner,
        known: SendAddresses,
        message: Message,
    ) -> None:
        name, queue_name = split_fqqn(message.address)
        if message.address not in known.by_name:
            self._check_send(now, identity, message.address, name)
            if len(known.by_name) >= SEND_ADDRESSES_MAX:
                known.by_name.clear()
            known.by_name[message.address] = None
        routing_type = message.routing_type
        if message.special and message.has_property(ROUTE_TO):
            if not identity.cluster:
                self._address(now, identity, owner, name, routing_type)
            return  # routed to the queues that the message names, if they still exist
        queue = self.queue_registry.by_name.get(queue_name) if queue_name else None
        if queue is not None and queue.spec.address == name:
            # Artemis drops such a message without an error (LocalQueueBinding.isMatchRoutingType).
            if routing_type >= 0 and queue.spec.routing_type != routing_type:
                raise BrokerError(
                    UNEXPECTED_ROUTING_TYPE,
                    f"queue {message.address} has the other routing type",
                )
            return
        address = self._address(now, identity, owner, name, routing_type)
        if routing_type < 0 and address.auto_created and address.local_count == 0:
            routing_type = ANYCAST if address.anycast else MULTICAST
        if address.internal or identity.cluster:
            return
        if queue_name or (routing_type == ANYCAST and address.anycast_count == 0):
            self._create_queue(now, identity, owner, address, queue_name, routing_type)

    def _check_send(self, now: int, identity: Identity, destination: str, name: str) -> None:
        self.permissions.check(now, identity, "send", destination)
        address = self.addresses.by_name.get(name)
        if address is not None and address.lsn == 0 and not identity.cluster:
            self.retroactive.adopt(now, address)

    def _address(self, now: int, identity: Identity, owner: QueueOwner, name: str, routing_type: int) -> Address:
        """Returns the address, created or given the routing type if allowed; -1 means the default routing type."""
        address = self.addresses.by_name.get(name)
        settings = self.addresses.settings.match(name)
        if address is not None and (routing_type < 0 or address.supports(routing_type)):
            return address
        if not settings.auto_create_addresses:
            if address is not None:
                check_routing_type(address, routing_type)
            address = self.addresses.routable(name) if routing_type < 0 else None
            if address is not None:
                return address
            raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"AMQ229203: address {name} does not exist")
        self.permissions.check(now, identity, "createAddress", name)
        self.queues.check_name(now, identity, owner, name)
        kind = routing_type if routing_type >= 0 else settings.default_address_routing_type
        return self.addresses.ensure(now, name, kind, True, True)

    def _create_queue(
        self,
        now: int,
        identity: Identity,
        owner: QueueOwner,
        address: Address,
        queue_name: str,
        routing_type: int,
    ) -> None:
        """Creates the queue of an address without an anycast queue, even if it was deleted before."""
        name = queue_name or address.name
        known = self.queue_registry.by_name.get(name)
        group = address.groups.get(address.name)
        if not queue_name and group is not None:
            for remote in group.remotes:
                if remote.mode in (STRICT, ON_DEMAND):
                    return  # queues of other nodes take the message
        if known is not None:
            raise BrokerError(
                UNEXPECTED_ROUTING_TYPE,
                f"queue {name} cannot take the message: it is a queue of {known.spec.address} or not anycast",
            )
        settings = self.addresses.settings.match(address.name)
        if not settings.auto_create_queues:
            raise BrokerError(
                ADDRESS_DOES_NOT_EXIST, f"AMQ229203: address {address.name} has no queue to take the message"
            )
        kind = routing_type if routing_type >= 0 else settings.default_queue_routing_type
        spec = QueueSpec(name, address.name, kind)
        spec.auto_created = True
        spec.take_defaults(settings)
        self.queues.create(now, identity, owner, spec)
