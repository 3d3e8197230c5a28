"""The queue that a SUBSCRIBE frame reads (StompSession.addSubscription).

An anycast address has a queue of its name. On a multicast address each subscription gets a queue of its own, which
ends with it unless it is durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.kernel.security.resource_limits import check_name
from atalanta.message.fqqn import join_fqqn, split_fqqn
from atalanta.wire.stomp.destination import Destination

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.settings.address_settings import AddressSettings

NEEDS_CLIENT_ID: Final = "AMQ339016: a durable subscription needs the header client-id in CONNECT"


class SubscriptionQueue:
    """A queue for a subscription. `selector` is the filter of its consumer; `own`: the queue ends with the consumer."""

    def __init__(self, name: str, selector: str | None, own: bool) -> None:
        self.name = name
        self.selector = selector
        self.own = own


def durable_queue_name(session: Session, name: str) -> str:
    """Returns the name of the queue of a durable subscription. BrokerError without a client id."""
    client_id = session.client.client_id
    if not client_id:
        raise BrokerError(ILLEGAL_STATE, NEEDS_CLIENT_ID)
    return f"{client_id}.{name}"


def queue_for(
    session: Session, now: int, destination: Destination, selector: str | None, durable_name: str | None
) -> SubscriptionQueue:
    """Returns the queue, created if need be. BrokerError if that is not allowed."""
    check_name(destination.name)
    address_name, queue_name = split_fqqn(destination.name)
    routing_type = _routing_type(session, destination, address_name)
    if queue_name:
        _create(session, now, QueueSpec(queue_name, address_name, routing_type))
        return SubscriptionQueue(join_fqqn(address_name, queue_name), selector, False)
    registry = session.services.queue_registry
    if routing_type == ANYCAST:
        if address_name not in registry.by_name:  # else perhaps at another address, as dead-letter queues are
            _create(session, now, QueueSpec(address_name, address_name, ANYCAST))
        return SubscriptionQueue(address_name, selector, False)
    if durable_name is not None:
        name = durable_queue_name(session, durable_name)
        _create_durable(session, now, name, address_name, selector)
        return SubscriptionQueue(name, None, False)
    spec = QueueSpec(registry.ids.uuid().hex(), address_name, MULTICAST)
    spec.set_temporary()
    spec.set_filter(selector)
    _create(session, now, spec)
    return SubscriptionQueue(spec.name, None, True)


def temporary_queue(session: Session, now: int) -> str:
    """Returns the name of a new queue that ends with the connection."""
    registry = session.services.queue_registry
    name = registry.ids.uuid().hex()
    spec = QueueSpec(name, name, ANYCAST)
    spec.set_temporary()
    spec.take_defaults(_settings(session, name))
    session.create_queue(now, spec)
    return name


def _routing_type(session: Session, destination: Destination, address_name: str) -> int:
    """Returns the routing type that was asked for, or that of the address; of both types anycast."""
    if destination.routing_type >= 0:
        return destination.routing_type
    addresses = session.services.queue_registry.addresses
    address = addresses.by_name.get(address_name)
    if address is None:
        return int(addresses.settings.match(address_name).default_address_routing_type)
    return ANYCAST if address.anycast else MULTICAST


def _create(session: Session, now: int, spec: QueueSpec) -> None:
    """Creates the queue unless it exists. BrokerError if queues or addresses are not created automatically."""
    registry = session.services.queue_registry
    if registry.get(join_fqqn(spec.address, spec.name)) is not None:
        return
    settings = _settings(session, spec.address)
    _check_address(session, spec.address)
    if not spec.temporary:
        if not settings.auto_create_queues:
            raise BrokerError(
                ADDRESS_DOES_NOT_EXIST, f"AMQ229203: address {spec.address} has no queue {spec.name}"
            )
        spec.set_origin(True, False)
    spec.take_defaults(settings)
    session.create_queue(now, spec)


def _create_durable(
    session: Session, now: int, name: str, address_name: str, selector: str | None
) -> None:
    """Creates the queue of a durable subscription. As in JMS, a changed selector or address replaces it."""
    registry = session.services.queue_registry
    known = registry.by_name.get(name)
    if known is not None:
        spec = known.spec
        if spec.address == address_name and (spec.filter_text or "") == (selector or ""):
            return
        session.delete_queue(now, name)
    fresh = QueueSpec(name, address_name, MULTICAST)
    fresh.set_filter(selector)
    _check_address(session, address_name)
    fresh.take_defaults(_settings(session, address_name))
    session.create_queue(now, fresh)


def _settings(session: Session, address_name: str) -> AddressSettings:
    addresses = session.services.queue_registry.addresses
    return addresses.settings.match(address_name)


def _check_address(session: Session, name: str) -> None:
    """Raises BrokerError unless the address exists or is created automatically."""
    addresses = session.services.queue_registry.addresses
    if name not in addresses.by_name and not _settings(session, name).auto_create_addresses:
        raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"AMQ229203: address {name} does not exist")
