"""A forwarded message from another node, whose binding ids this node does not know (any more, or not yet).

A node between others that has just restarted learns the queues behind it only after its neighbours' first messages. A
real Artemis logs such a message and drops it (PostOfficeImpl.routeToQueues). Here an anycast message waits in a queue
of its address, as if it had been sent to this node, and is redistributed from there. If the queue itself was deleted,
such as the temporary queue of a client that left, the message is dropped with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.kernel.routing.router import Route, route
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.message.message import Message

LOST_WAYS_MAX: Final = 10_000


def route_stray(broker: Broker, now: int, message: Message, unknown: list[int]) -> list[Route]:
    """Routes the message by its address, or into a queue created for it if the settings allow that; else drops it.

    A full name (`address::queue`) means that queue alone. Other subscriptions of a multicast address have got their
    copies already: a subscription that was deleted is owed nothing.
    """
    name, queue_name = split_fqqn(message.address)
    address = broker.addresses.get(name)
    anycast = message.routing_type == ANYCAST or (address is not None and not address.multicast)
    if not anycast:
        return []
    routes = [] if address is None else route(address, message, ANYCAST, queue_name)
    if routes or not any(_way_was_lost(broker, binding_id) for binding_id in unknown):
        return routes
    settings = broker.settings.match(name)
    made = queue_name or name
    missing = address is None or not address.supports(ANYCAST)
    if missing and not settings.auto_create_addresses:
        return []
    if not settings.auto_create_queues or made in broker.queues:
        return []
    address = broker.address_registry.ensure(broker.now, name, ANYCAST, True, True)
    spec = QueueSpec(made, name, ANYCAST)
    spec.auto_created = True
    spec.take_defaults(settings)
    broker.queue_registry.create(now, spec, False)
    return route(address, message, ANYCAST, queue_name)


def _way_was_lost(broker: Broker, binding_id: int) -> bool:
    """Returns true for a binding of an earlier life of this node, or of a peer that has not announced it again."""
    return binding_id < broker.first_binding_id or binding_id in broker.lost_ways


def remember_lost_way(broker: Broker, binding_id: int) -> None:
    """Records that the remote binding was removed because its peer left; the queue behind may still exist."""
    if len(broker.lost_ways) >= LOST_WAYS_MAX:
        del broker.lost_ways[next(iter(broker.lost_ways))]
    broker.lost_ways[binding_id] = True
