"""The queue that a subscription reads, for protocols whose clients create no queues (STOMP, OpenWire).

An anycast address has a queue of its name. On a multicast address each subscription gets a queue of its own, which
ends with it unless it is durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, BrokerError
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.kernel.routing.temporary_names import NOTHING
from atalanta.message.fqqn import join_fqqn
from atalanta.message.selector.parser import any_of

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.settings.address_settings import AddressSettings

SELECTORS_MAX: Final = 100  # different ones, beyond which the queue of a virtual topic takes everything


class SubscriptionQueue:
    """A queue for a subscription. `selector` is the filter of its consumer; `own`: the queue ends with the consumer."""

    def __init__(self, name: str, selector: str | None, own: bool) -> None:
        self.name = name
        self.selector = selector
        self.own = own


def subscribed_queue(
    session: Session,
    now: int,
    address: str,
    queue: str,
    routing_type: int,
    selector: str | None,
    retroactive: bool = False,
) -> SubscriptionQueue:
    """Returns the queue of a subscription that is not durable, created if need be.

    `queue`: the queue that the client names, or "". `retroactive`: it asks for what the address has kept. BrokerError
    if the creation is not allowed.
    """
    if queue:
        _create(session, now, QueueSpec(queue, address, routing_type))
        return SubscriptionQueue(join_fqqn(address, queue), selector, False)
    registry = session.services.queue_registry
    if routing_type == ANYCAST:
        registry.delete_ownerless(now, address)
        if address not in registry.by_name:  # else perhaps at another address, as dead-letter queues are
            _create(session, now, QueueSpec(address, address, ANYCAST))
        return SubscriptionQueue(address, selector, False)
    spec = QueueSpec(registry.ids.uuid().hex(), address, MULTICAST)
    spec.set_temporary()
    spec.set_filter(selector)
    spec.ask_retained(retroactive)
    _create(session, now, spec)
    return SubscriptionQueue(spec.name, None, True)


def durable_queue(
    session: Session, now: int, name: str, address: str, selector: str | None, retroactive: bool = False
) -> SubscriptionQueue:
    """Returns the queue of a durable subscription. As in JMS, a changed selector or address replaces it.

    `retroactive` as in `subscribed_queue`.
    """
    registry = session.services.queue_registry
    registry.delete_ownerless(now, name)
    known = registry.by_name.get(name)
    if known is not None:
        spec = known.spec
        if spec.address == address and (spec.filter_text or "") == (selector or ""):
            return SubscriptionQueue(name, None, False)
        session.delete_queue(now, name)
    fresh = QueueSpec(name, address, MULTICAST)
    fresh.set_filter(selector)
    fresh.ask_retained(retroactive)
    _check_address(session, address)
    fresh.take_defaults(_settings(session, address))
    session.create_queue(now, fresh)
    return SubscriptionQueue(name, None, False)


def take_selectors(session: Session, now: int, name: str) -> None:
    """Makes the queue of a virtual topic take what its consumers select, behind the arrival of one (selectorAware).

    It stays so without them, as with Classic's virtualSelectorCacheBrokerPlugin: what they wait for is kept. A browser
    changes nothing.
    """
    registry = session.services.queue_registry
    queue = registry.by_name[name]
    texts: set[str] = set()
    for consumer in queue.consumers:
        if not consumer.browse_only:
            texts.add("" if consumer.selector is None else consumer.selector.text)
    everything = "" in texts or len(texts) > SELECTORS_MAX
    wanted = "" if everything else any_of(sorted(texts))
    if wanted != (queue.spec.filter_text or ""):
        changes = QueueChanges()
        changes.filter_text = wanted
        registry.update(now, name, changes)


def report_unkept(session: Session, address: str) -> None:
    """Reports a retroactive consumer of an address that keeps no messages for it: it gets only new ones."""
    services = session.services
    if services.queue_registry.addresses.kept_messages(address) <= 0:
        client_id = session.client.client_id or ""
        services.trace.event("retroactive_consumer_in_vain", {"address": address, "client": client_id})


def end_queue(session: Session, now: int, name: str) -> None:
    """Deletes the queue of a subscription with it; whoever may subscribe may do that."""
    session.services.queues.end(now, session.client, name)


def temporary_queue(session: Session, now: int, name: str, routing_type: int = ANYCAST) -> None:
    """Creates a temporary destination, which ends with the connection; MULTICAST: a topic. BrokerError if it exists."""
    addresses = session.services.queue_registry.addresses
    spec = QueueSpec(name, name, routing_type)
    spec.set_temporary()
    spec.take_defaults(addresses.settings.of_temporary(name))
    if routing_type == MULTICAST:
        spec.set_filter(NOTHING)
    session.create_queue(now, spec)


def _create(session: Session, now: int, spec: QueueSpec) -> None:
    """Creates the queue unless it exists. BrokerError if queues or addresses are not created automatically."""
    registry = session.services.queue_registry
    registry.delete_ownerless(now, spec.name)
    if registry.get(join_fqqn(spec.address, spec.name)) is not None:
        return
    settings = _settings(session, spec.address)
    _check_address(session, spec.address)
    if not spec.temporary:
        if not settings.auto_create_queues:
            raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"AMQ229203: address {spec.address} has no queue {spec.name}")
        spec.set_origin(True, False)
    spec.take_defaults(settings)
    session.create_queue(now, spec)


def _settings(session: Session, address: str) -> AddressSettings:
    addresses = session.services.queue_registry.addresses
    return addresses.settings.match(address)


def _check_address(session: Session, name: str) -> None:
    """Raises BrokerError unless the address exists or is created automatically."""
    addresses = session.services.queue_registry.addresses
    if name not in addresses.by_name and not _settings(session, name).auto_create_addresses:
        raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"AMQ229203: address {name} does not exist")
