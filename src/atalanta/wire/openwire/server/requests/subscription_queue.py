"""The queues that a consumer reads (AMQSession.createConsumer and AMQConsumer of Artemis).

A queue has its own name as address. On a topic each consumer gets a queue of its own, which ends with it unless the
subscription is durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.message.fqqn import join_fqqn
from atalanta.wire.openwire.conversion.destination import TEMPORARY_NAME, Target
from atalanta.wire.openwire.conversion.sent_message import CONNECTION_ID, MESSAGE_ID

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.settings.address_settings import AddressSettings

JMS_MESSAGE_ID: Final = "JMSMessageID"


class SubscriptionQueue:
    """A queue for a consumer. `selector` is the filter of its consumer; `own`: the queue ends with the consumer."""

    def __init__(self, name: str, selector: str | None, own: bool) -> None:
        self.name = name
        self.selector = selector
        self.own = own


def queue_for(session: Session, now: int, target: Target, selector: str | None) -> SubscriptionQueue:
    """Returns the queue of a consumer that is not durable, created if need be. BrokerError if that is not allowed."""
    if target.queue:
        _create(session, now, QueueSpec(target.queue, target.address, target.routing_type))
        return SubscriptionQueue(join_fqqn(target.address, target.queue), selector, False)
    if target.routing_type == ANYCAST:
        check_exists(session, target)
        _create(session, now, QueueSpec(target.address, target.address, ANYCAST))
        return SubscriptionQueue(target.address, selector, False)
    registry = session.services.queue_registry
    spec = QueueSpec(registry.ids.uuid().hex(), target.address, MULTICAST)
    spec.set_temporary()
    spec.set_filter(selector)
    _create(session, now, spec)
    return SubscriptionQueue(spec.name, None, True)


def durable_queue(session: Session, now: int, target: Target, name: str, selector: str | None) -> SubscriptionQueue:
    """Returns the queue of a durable subscription. As in JMS, a changed selector or topic replaces it.

    BrokerError: the subscription has a consumer already.
    """
    registry = session.services.queue_registry
    known = registry.by_name.get(name)
    if known is not None:
        if known.consumer_count() > 0:
            raise BrokerError(ILLEGAL_STATE, f"Durable consumer is in use: subscription {name} has a consumer")
        spec = known.spec
        if spec.address == target.address and (spec.filter_text or "") == (selector or ""):
            return SubscriptionQueue(name, None, False)
        session.delete_queue(now, name)
    fresh = QueueSpec(name, target.address, MULTICAST)
    fresh.set_filter(selector)
    _check_address(session, target.address)
    fresh.take_defaults(_settings(session, target.address))
    session.create_queue(now, fresh)
    return SubscriptionQueue(name, None, False)


def temporary_queue(session: Session, now: int, name: str) -> None:
    """Creates a temporary queue, whose name the client made. BrokerError if it exists."""
    spec = QueueSpec(name, name, ANYCAST)
    spec.set_temporary()
    spec.take_defaults(_settings(session, name))
    session.create_queue(now, spec)


def check_exists(session: Session, target: Target) -> None:
    """Raises BrokerError for a temporary destination that has ended: nothing creates it again."""
    if target.temporary or target.address.startswith(TEMPORARY_NAME):
        registry = session.services.queue_registry
        if target.address not in registry.addresses.by_name:
            raise BrokerError(
                ADDRESS_DOES_NOT_EXIST, f"temporary destination {target.address} does not exist: its connection ended"
            )


def selector_text(selector: str | None, no_local: bool, client_id: str) -> str | None:
    """Returns the broker's filter for the selector of a consumer; `no_local`: not what its own connection sends."""
    text = selector.strip() if selector is not None else ""
    if JMS_MESSAGE_ID in text:
        text = _with_message_id(text)
    if no_local:
        quoted = client_id.replace("'", "''")
        own = f"({CONNECTION_ID} IS NULL OR {CONNECTION_ID} <> '{quoted}')"
        text = f"({text}) AND {own}" if text else own
    return text or None


def _with_message_id(text: str) -> str:
    """Returns the selector with the property of OpenWire's ids instead of JMSMessageID, outside of literals."""
    pieces = text.split("'")
    for index in range(0, len(pieces), 2):
        pieces[index] = pieces[index].replace(JMS_MESSAGE_ID, MESSAGE_ID)
    return "'".join(pieces)


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


def _settings(session: Session, address_name: str) -> AddressSettings:
    addresses = session.services.queue_registry.addresses
    return addresses.settings.match(address_name)


def _check_address(session: Session, name: str) -> None:
    """Raises BrokerError unless the address exists or is created automatically."""
    addresses = session.services.queue_registry.addresses
    if name not in addresses.by_name and not _settings(session, name).auto_create_addresses:
        raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"AMQ229203: address {name} does not exist")
