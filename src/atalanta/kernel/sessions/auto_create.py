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
from atalanta.kernel.registry import addresses
from atalanta.kernel.routing.bindings import ON_DEMAND, STRICT
from atalanta.kernel.sessions.session_queues import create_queue
from atalanta.message.fqqn import split_fqqn
from atalanta.message.message import ROUTE_TO

if TYPE_CHECKING:
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.sessions.session import Session
    from atalanta.message.message import Message

MAY_SEND_MAX: Final = 1_000  # cached permissions to send, per session


def prepare_address(session: Session, now: int, message: Message) -> None:
    """Checks the permission to send, and creates missing addresses and queues (ServerSessionImpl.checkAutoCreate).

    An address without any local queue gets its anycast queue with the message, even if it was deleted before.
    """
    try:
        _prepare_address(session, now, message)
    finally:
        if message.address in session.may_send:
            session.may_send[message.address] = session.broker.addresses.get(message.address)


def _prepare_address(session: Session, now: int, message: Message) -> None:
    name, queue_name = split_fqqn(message.address)
    if session.rules_version != session.broker.security.version:
        session.rules_version = session.broker.security.version
        session.may_send.clear()
    if message.address not in session.may_send:
        session.check("send", name)
        if len(session.may_send) >= MAY_SEND_MAX:
            session.may_send.clear()
        session.may_send[message.address] = None
        there = session.broker.addresses.get(name)
        if there is not None and there.lsn == 0 and not session.identity.cluster:
            session.broker.retroactive.adopt(now, there)
    if session.identity.cluster and message.has_property(ROUTE_TO):
        return  # routed to the queues that the message names, if they still exist
    routing_type = message.routing_type
    known = session.broker.queues.get(queue_name) if queue_name else None
    if known is not None and known.spec.address == name:
        # Artemis drops such a message without an error (LocalQueueBinding.isMatchRoutingType).
        if routing_type >= 0 and known.spec.routing_type != routing_type:
            raise BrokerError(
                UNEXPECTED_ROUTING_TYPE, f"queue {message.address} has the other routing type"
            )
        return
    address = _address_for(session, name, routing_type)
    if routing_type < 0 and address.auto_created and address.local_count == 0:
        routing_type = ANYCAST if address.anycast else MULTICAST
    if address.internal or session.identity.cluster:
        return
    if queue_name or (routing_type == ANYCAST and address.anycast_count == 0):
        _queue_for(session, now, address, queue_name, routing_type)


def _address_for(session: Session, name: str, routing_type: int) -> Address:
    """Returns the address, created or given the routing type if allowed; -1 means the default routing type."""
    broker = session.broker
    address = broker.addresses.get(name)
    settings = broker.settings.match(name)
    if address is not None and (routing_type < 0 or address.supports(routing_type)):
        return address
    if not settings.auto_create_addresses:
        if address is not None:
            addresses.check_routing_type(address, routing_type)
        raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"address {name} does not exist")
    session.check("createAddress", name)
    kind = routing_type if routing_type >= 0 else settings.default_address_routing_type
    return broker.address_registry.ensure(broker.now, name, kind, True, True)


def _queue_for(
    session: Session, now: int, address: Address, queue_name: str, routing_type: int
) -> None:
    """Creates the queue of an address without an anycast queue, even if it was deleted before."""
    broker = session.broker
    name = queue_name or address.name
    known = broker.queues.get(name)
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
    settings = broker.settings.match(address.name)
    if not settings.auto_create_queues:
        raise BrokerError(
            ADDRESS_DOES_NOT_EXIST, f"address {address.name} has no queue to take the message"
        )
    kind = routing_type if routing_type >= 0 else settings.default_queue_routing_type
    spec = QueueSpec(name, address.name, kind)
    spec.auto_created = True
    spec.take_defaults(settings)
    create_queue(session, now, spec)
