"""A forwarded message from another node, whose binding ids this node does not know (any more, or not yet).

A node between others that has just restarted learns the queues behind it only after its neighbours' first messages. A
real Artemis logs such a message and drops it (PostOfficeImpl.routeToQueues). Here an anycast message waits in a queue
of its address, as if it had been sent to this node, and is redistributed from there. If the queue itself was deleted,
such as the temporary queue of a client that left, the message is dropped with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.kernel.routing.router import Route, route
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.registry.bindings import BindingRegistry
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.settings.repository import AddressSettingsRepository
    from atalanta.message.message import Message


class UnknownBindings:
    """Routes messages whose binding ids this node does not know."""

    def __init__(
        self,
        addresses: AddressRegistry,
        queues: QueueRegistry,
        settings: AddressSettingsRepository,
        bindings: BindingRegistry,
    ) -> None:
        self.addresses = addresses
        self.queues = queues
        self.settings = settings
        self.bindings = bindings

    def route(self, now: int, message: Message, unknown: list[int]) -> list[Route]:
        """Routes the message by its address, or into a queue created for it if the settings allow that; else drops it.

        A full name (`address::queue`) means that queue alone. Other subscriptions of a multicast address have got their
        copies already: a subscription that was deleted is owed nothing.
        """
        name, queue_name = split_fqqn(message.address)
        address = self.addresses.routable(name)
        anycast = message.routing_type == ANYCAST or (
            address is not None and address.anycast and not address.multicast
        )
        if not anycast:
            return []
        routes = [] if address is None else route(address, message, ANYCAST, queue_name)
        if routes or not any(self.bindings.is_lost(binding_id) for binding_id in unknown):
            return routes
        settings = self.settings.match(name)
        made = queue_name or name
        missing = address is None or not address.supports(ANYCAST)
        if missing and not settings.auto_create_addresses:
            return []
        if not settings.auto_create_queues or made in self.queues.by_name:
            return []
        address = self.addresses.ensure(now, name, ANYCAST, True, True)
        spec = QueueSpec(made, name, ANYCAST)
        spec.auto_created = True
        spec.take_defaults(settings)
        self.queues.create(now, spec, False)
        return route(address, message, ANYCAST, queue_name)
