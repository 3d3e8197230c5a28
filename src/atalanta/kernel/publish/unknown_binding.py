"""A message that another node forwarded, for queues that this node does not know (any more, or not yet).

A node between others that has just restarted learns what lies behind it only after its neighbours' first messages. A
real Artemis logs such a message and drops it (PostOfficeImpl.routeToQueues); here an anycast one waits in a queue
of its address, as if it had been sent to this node, and follows consumers from there. Where it is the queue that has
gone, such as the temporary one of a client that left, the message goes with it.
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
    """By its address, or into a queue that is made for it where settings allow that; else nowhere.

    A full name (`address::queue`) means that queue alone.

    Other subscriptions of a multicast address have got their copies already: one that is gone is owed nothing.
    """
    name, queue_name = split_fqqn(message.address)
    address = broker.addresses.get(name)
    anycast = message.routing_type == ANYCAST or (address is not None and not address.multicast)
    if not anycast:
        return []
    routes = [] if address is None else route(address, message, ANYCAST, queue_name)
    if routes or not any(_way_was_lost(broker, binding_id) for binding_id in unknown):
        return routes
    settings = broker.settings_of(name)
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
    """Of an earlier life of this node, or behind a peer that has not told of it again."""
    return binding_id < broker.first_binding_id or binding_id in broker.lost_ways


def remember_lost_way(broker: Broker, binding_id: int) -> None:
    """The remote binding goes because its peer did; the queue behind may well be there."""
    if len(broker.lost_ways) >= LOST_WAYS_MAX:
        del broker.lost_ways[next(iter(broker.lost_ways))]
    broker.lost_ways[binding_id] = True
