"""The queue that a SUBSCRIBE frame reads (StompSession.addSubscription)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.security.resource_limits import check_name
from atalanta.kernel.sessions.subscription_queue import (
    SubscriptionQueue,
    durable_queue,
    subscribed_queue,
)
from atalanta.message.fqqn import split_fqqn
from atalanta.wire.stomp.destination import Destination

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session

NEEDS_CLIENT_ID: Final = "AMQ339016: a durable subscription needs the header client-id in CONNECT"


def durable_queue_name(session: Session, name: str) -> str:
    """Returns the name of the queue of a durable subscription. BrokerError without a client id."""
    client_id = session.client.client_id
    if not client_id:
        raise BrokerError(ILLEGAL_STATE, NEEDS_CLIENT_ID)
    return f"{client_id}.{name}"


def queue_for(
    session: Session,
    now: int,
    destination: Destination,
    selector: str | None,
    plain_selector: str | None,
    durable_name: str | None,
    retroactive: bool,
) -> SubscriptionQueue:
    """Returns the queue, created if need be. BrokerError if that is not allowed.

    `plain_selector`: as the client writes it. A durable subscription of an older version, which has it so, goes on.
    `retroactive`: it asks for what its topic has kept.
    """
    check_name(destination.name)
    address, queue = split_fqqn(destination.name)
    routing_type = routing_type_of(session, destination, address)
    if durable_name is not None and routing_type == MULTICAST and not queue:
        name = durable_queue_name(session, durable_name)
        known = session.services.queue_registry.by_name.get(name)
        if known is not None and plain_selector and known.spec.filter_text == plain_selector:
            selector = plain_selector
        return durable_queue(session, now, name, address, selector, retroactive)
    return subscribed_queue(session, now, address, queue, routing_type, selector, retroactive)


def routing_type_of(session: Session, destination: Destination, address_name: str) -> int:
    """Returns the routing type that was asked for, or that of the address; of both types anycast."""
    if destination.routing_type >= 0:
        return destination.routing_type
    addresses = session.services.queue_registry.addresses
    address = addresses.by_name.get(address_name)
    if address is None:
        return int(addresses.settings.match(address_name).default_address_routing_type)
    return ANYCAST if address.anycast else MULTICAST
