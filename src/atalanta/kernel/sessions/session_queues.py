"""The creation and deletion of queues by a session, with its permissions; temporary ones end with the connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, ILLEGAL_STATE, BrokerError
from atalanta.kernel.registry import addresses
from atalanta.kernel.security.resource_limits import limit_of

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.kernel.sessions.session import Session


def create_queue(session: Session, now: int, spec: QueueSpec) -> Queue:
    """Creates a queue; needs createDurableQueue or createNonDurableQueue, and createAddress for a new address."""
    session.check("createDurableQueue" if spec.durable else "createNonDurableQueue", spec.address)
    _check_address_of(session, spec)
    broker = session.broker
    user = session.identity.user
    limit = limit_of(broker.config.resource_limits, user)
    if limit is not None:
        limit.check_queues([queue.spec.user for queue in broker.queues.values()].count(user))
    spec.user = user
    # A leaving node creates queues that continue its own: these get no retained messages.
    queue = broker.queue_registry.create(now, spec, not session.identity.cluster)
    if spec.temporary:
        session.client.temporary_queues[queue.name] = queue
    if spec.transient:
        session.client.use_transient(queue)
    return queue


def _check_address_of(session: Session, spec: QueueSpec) -> None:
    """Checks that the user may create the address of the queue, or its routing type, if either is missing."""
    address = session.broker.addresses.get(spec.address)
    if address is not None and address.supports(spec.routing_type):
        return
    automatic = session.broker.settings.match(spec.address).auto_create_addresses
    if not automatic and not spec.temporary:
        if address is not None:
            addresses.check_routing_type(address, spec.routing_type)
        raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"address {spec.address} does not exist")
    # A temporary queue gets an address of its own even if addresses are not created automatically.
    if automatic or address is not None:
        session.check("createAddress", spec.address)


def delete_queue(session: Session, now: int, name: str) -> None:
    queue = session.broker.queue_registry.find(name)
    session.check(
        "deleteDurableQueue" if queue.durable else "deleteNonDurableQueue", queue.spec.address
    )
    if queue.consumer_count() > 0:
        raise BrokerError(ILLEGAL_STATE, f"queue {queue.name} still has consumers")
    session.client.temporary_queues.pop(queue.name, None)
    session.broker.queue_registry.delete(now, queue.name, "deleted")
